// Activations and the division of a product into tasks.
#include "simd/matmul.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "simd/matmul_layout.h"

namespace lanewise {
namespace {

using PanelFunction = void (*)(const Target&, const PanelProduct&);

PanelFunction NativeFunction(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return &PanelQ4_0Int8;
    case DType::kQ4_1:
      return &PanelQ4_1Int8;
    case DType::kQ8_0:
      return &PanelQ8_0Int8;
    case DType::kQ4_K:
      return &PanelQ4_KInt8;
    case DType::kQ6_K:
      return &PanelQ6_KInt8;
    case DType::kBF16:
      return &PanelBF16;
    case DType::kF16:
      return &PanelF16;
    default:
      return &PanelF32;
  }
}

PanelFunction F32Function(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return &PanelQ4_0F32;
    case DType::kQ4_1:
      return &PanelQ4_1F32;
    case DType::kQ8_0:
      return &PanelQ8_0F32;
    case DType::kQ4_K:
      return &PanelQ4_KF32;
    case DType::kQ6_K:
      return &PanelQ6_KF32;
    case DType::kBF16:
      return &PanelBF16F32;
    case DType::kF16:
      return &PanelF16;
    default:
      return &PanelF32;
  }
}

// Multiplications below which waking another thread costs more than it saves.
constexpr size_t kSerialWork = size_t{1} << 18;
// Multiplications of a task, at least.
constexpr size_t kTaskWork = size_t{1} << 17;

size_t DivideUp(size_t a, size_t b) { return a / b + (a % b != 0); }

// A product as tasks of some panels times some rows.
struct Division {
  size_t rows, panels;            // of a task
  size_t row_tasks, panel_tasks;  // how many
};

Division Divide(size_t m, size_t k, size_t panels, size_t threads) {
  Division division;
  // Equal shares, a multiple of the largest tile.
  const size_t row_tasks = DivideUp(m, kMaxTaskRows);
  division.rows =
      std::min(kMaxTaskRows, DivideUp(DivideUp(m, row_tasks), 8) * 8);
  division.row_tasks = DivideUp(m, division.rows);
  const size_t panel_work = std::min(m, division.rows) * k * kPanelColumns;
  const size_t enough = DivideUp(kTaskWork, std::max<size_t>(1, panel_work));
  division.panel_tasks = DivideUp(panels, enough);
  // The same number for each thread where there are few.
  if (division.row_tasks == 1) {
    division.panel_tasks = DivideUp(division.panel_tasks, threads) * threads;
  }
  division.panels = DivideUp(panels, std::min(panels, division.panel_tasks));
  division.panel_tasks = DivideUp(panels, division.panels);
  return division;
}

template <class T>
bool Grow(size_t count, hwy::AlignedFreeUniquePtr<T[]>* out) {
  *out = nullptr;
  *out = hwy::AllocateAligned<T>(count);
  return *out != nullptr;
}

}  // namespace

Representation RepresentationFor(ActivationType activations, DType weights) {
  if (activations == ActivationType::kF32) return Representation::kF32;
  switch (weights) {
    case DType::kBF16:
      return Representation::kBF16;
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ8_0:
    case DType::kQ4_K:
    case DType::kQ6_K:
      return Representation::kInt8;
    default:
      return Representation::kF32;
  }
}

Activations::Activations() : storage_(std::make_unique<Storage>()) {}
Activations::~Activations() = default;
Activations::Activations(Activations&&) noexcept = default;
Activations& Activations::operator=(Activations&&) noexcept = default;

absl::Status Activations::Reserve(size_t m, size_t k) {
  Storage& s = *storage_;
  m = std::max(m, s.max_m);
  k = std::max(k, s.max_k);
  if (m == s.max_m && k == s.max_k) return absl::OkStatus();
  constexpr size_t kMaxElements = std::numeric_limits<size_t>::max() / 16;
  if (k > kMaxElements - 128 || m > kMaxElements / (k + 128)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("activations: ", m, " rows of ", k, " are too many"));
  }
  m_ = k_ = 0;
  s.max_m = s.max_k = 0;
  if (!Grow(m * Storage::FloatStride(k), &s.f32) ||
      !Grow(m * Storage::FloatStride(k), &s.bf16) ||
      !Grow(m * Storage::ByteStride(k), &s.q) ||
      !Grow(m * Storage::BlockStride(k), &s.blocks)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("activations: no memory for ", m, " rows of ", k));
  }
  s.max_m = m;
  s.max_k = k;
  return absl::OkStatus();
}

void Activations::Prepare(const Context& context, const float* x, size_t stride,
                          size_t m, size_t k, Representation representation) {
  Storage& s = *storage_;
  m_ = m;
  k_ = k;
  const size_t float_stride = Storage::FloatStride(k);
  const auto prepare_row = [&](size_t row) {
    const float* in = x + row * stride;
    switch (representation) {
      case Representation::kF32: {
        float* out = s.f32.get() + row * float_stride;
        std::copy(in, in + k, out);
        std::fill(out + k, out + float_stride, 0.0f);
        break;
      }
      case Representation::kBF16: {
        float* out = s.bf16.get() + row * float_stride;
        RoundRowToBF16(context.target(), in, k, out);
        std::fill(out + k, out + float_stride, 0.0f);
        break;
      }
      case Representation::kInt8:
        QuantizeRow(context.target(), in, k,
                    s.q.get() + row * Storage::ByteStride(k),
                    s.blocks.get() + row * Storage::BlockStride(k));
        break;
    }
  };
  // An element costs about as much as 16 multiplications.
  const size_t rows = std::max<size_t>(
      1, std::min(DivideUp(kTaskWork / 16, std::max<size_t>(1, k)),
                  DivideUp(m, context.threads())));
  const size_t tasks = m * k < kSerialWork / 16 ? 1 : DivideUp(m, rows);
  const size_t rows_per_task = tasks == 1 ? m : rows;
  context.ParallelFor(tasks, [&](size_t task, size_t) {
    const size_t end = std::min(m, (task + 1) * rows_per_task);
    for (size_t row = task * rows_per_task; row < end; ++row) prepare_row(row);
  });
}

void MatMul(const Context& context, const Activations& a,
            ActivationType activations, const PackedMatrix& b, float* c,
            size_t ldc, const MatMulEpilogue& epilogue) {
  const size_t m = a.rows(), n = b.rows(), k = b.cols();
  if (m == 0 || n == 0) return;
  const Activations::Storage& s = a.storage();
  const Representation representation =
      RepresentationFor(activations, b.type());
  const PanelFunction multiply = activations == ActivationType::kF32
                                     ? F32Function(b.type())
                                     : NativeFunction(b.type());
  const size_t panels = DivideUp(n, kPanelColumns);
  const bool serial = m * k < kSerialWork / n;
  const Division division =
      Divide(m, k, panels, serial ? 1 : context.threads());
  const auto run = [&](size_t row, size_t rows, size_t panel) {
    const size_t column = panel * kPanelColumns;
    PanelProduct product;
    product.panel = b.panel(panel);
    product.k = k;
    product.rows = rows;
    if (representation == Representation::kInt8) {
      product.q_stride = Activations::Storage::ByteStride(k);
      product.q = s.q.get() + row * product.q_stride;
      product.block_stride = Activations::Storage::BlockStride(k);
      product.blocks = s.blocks.get() + row * product.block_stride;
    } else {
      const float* x =
          (representation == Representation::kBF16 ? s.bf16 : s.f32).get();
      product.x_stride = Activations::Storage::FloatStride(k);
      product.x = x + row * product.x_stride;
    }
    product.c = c + row * ldc + column;
    product.ldc = ldc;
    product.columns = std::min(kPanelColumns, n - column);
    if (epilogue.bias != nullptr) product.bias = epilogue.bias + column;
    product.accumulate = epilogue.accumulate;
    multiply(context.target(), product);
  };
  // Panels vary fastest: the rows of a task stay in the second-level cache.
  const auto run_task = [&](size_t task, size_t) {
    const size_t row = task / division.panel_tasks * division.rows;
    const size_t first = task % division.panel_tasks * division.panels;
    const size_t last = std::min(panels, first + division.panels);
    for (size_t panel = first; panel < last; ++panel) {
      run(row, std::min(division.rows, m - row), panel);
    }
  };
  const size_t tasks = division.row_tasks * division.panel_tasks;
  if (serial) {
    for (size_t task = 0; task < tasks; ++task) run_task(task, 0);
  } else {
    context.ParallelFor(tasks, run_task);
  }
}

}  // namespace lanewise
