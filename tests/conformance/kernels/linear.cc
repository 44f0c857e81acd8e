// Matrix products with float weights, and convolutions, which are such products
// of gathered rows.
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "simd/convolution.h"
#include "simd/matmul.h"
#include "simd/status_macros.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

absl::StatusOr<PackedMatrix> Packed(const Context& context,
                                    const std::vector<float>& w, size_t k) {
  std::vector<const uint8_t*> rows;
  for (size_t row = 0; k > 0 && row < w.size() / k; ++row) {
    rows.push_back(reinterpret_cast<const uint8_t*>(w.data() + row * k));
  }
  return Pack(context, DType::kF32, k, rows);
}

// y [m, w.rows()] = prepared activations · wᵀ + bias.
std::vector<float> Product(const Context& context, const PackedMatrix& w,
                           const Activations& activations, size_t m,
                           const KernelArray& bias) {
  std::vector<float> y(m * w.rows());
  MatMulEpilogue epilogue;
  epilogue.bias = bias.empty() ? nullptr : bias.values.data();
  MatMul(context, activations, ActivationType::kF32, w, y.data(), w.rows(),
         epilogue);
  return y;
}

// x [m, k].
absl::StatusOr<std::vector<float>> Linear(const Context& context,
                                          const std::vector<float>& x,
                                          const std::vector<float>& w, size_t k,
                                          const KernelArray& bias) {
  if (k == 0) return absl::InvalidArgumentError("arrays of other shapes");
  LANEWISE_ASSIGN_OR_RETURN(const PackedMatrix packed, Packed(context, w, k));
  const size_t m = x.size() / k;
  Activations activations;
  LANEWISE_RETURN_IF_ERROR(activations.Reserve(m, k));
  activations.Prepare(context, x.data(), k, m, k, Representation::kF32);
  return Product(context, packed, activations, m, bias);
}

std::vector<float> Transposed(const float* w, size_t rows, size_t columns) {
  std::vector<float> out(rows * columns);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      out[c * rows + r] = w[r * columns + c];
    }
  }
  return out;
}

// x [batch, in, length], w [out, in, kernel], y [batch, out, positions].
absl::StatusOr<std::vector<float>> Conv1d(const Context& context,
                                          const KernelCase& c) {
  const KernelArray &x = c.input("x"), &w = c.input("w"), &b = c.input("b");
  if (w.shape.size() != 3 || x.empty() || c.count("stride") == 0) {
    return absl::InvalidArgumentError("arrays of other shapes");
  }
  const Conv1dShape shape{w.shape[1], w.shape[2], c.count("stride"), 1};
  const size_t out = w.shape[0], length = x.width;
  std::vector<float> reordered(w.values.size());
  ReorderConv1dWeights(reinterpret_cast<const uint8_t*>(w.values.data()),
                       sizeof(float), shape, out,
                       reinterpret_cast<uint8_t*>(reordered.data()));
  LANEWISE_ASSIGN_OR_RETURN(const PackedMatrix packed,
                            Packed(context, reordered, shape.Columns()));
  const size_t rows = shape.OutputRows(length);
  Activations activations;
  LANEWISE_RETURN_IF_ERROR(activations.Reserve(rows, shape.Columns()));
  std::vector<float> y;
  for (size_t first = 0; first < x.rows(); first += shape.in_channels) {
    std::vector<float> padded(shape.PaddedRows(length) * shape.in_channels);
    PadColumns(x.row(first), length, shape, padded.data());
    PrepareConv1d(context, shape, padded.data(), rows, Representation::kF32,
                  &activations);
    const std::vector<float> found = Transposed(
        Product(context, packed, activations, rows, b).data(), rows, out);
    y.insert(y.end(), found.begin(), found.end());
  }
  return y;
}

// x [batch, channels, height, width], w [out, channels, patch, patch], y
// [batch, out, patches].
absl::StatusOr<std::vector<float>> PatchEmbedding(const Context& context,
                                                  const KernelCase& c) {
  const KernelArray &x = c.input("x"), &w = c.input("w");
  if (x.shape.size() != 4 || w.shape.size() != 4) {
    return absl::InvalidArgumentError("arrays of other shapes");
  }
  const PatchShape shape{x.shape[1], x.shape[2], x.shape[3], w.shape[2],
                         w.shape[3]};
  const size_t pixels = x.values.size() / x.shape[0];
  std::vector<float> y;
  for (size_t i = 0; i < x.shape[0]; ++i) {
    std::vector<float> rows(shape.Patches() * shape.Size());
    GatherPatches(x.values.data() + i * pixels, shape, 0, shape.Patches(),
                  rows.data());
    LANEWISE_ASSIGN_OR_RETURN(
        const std::vector<float> found,
        Linear(context, rows, w.values, shape.Size(), c.input("b")));
    const std::vector<float> by_channel =
        Transposed(found.data(), shape.Patches(), w.shape[0]);
    y.insert(y.end(), by_channel.begin(), by_channel.end());
  }
  return y;
}

absl::StatusOr<std::vector<float>> Run(const Context& context,
                                       const KernelCase& c) {
  if (c.Is("conv1d_k")) return Conv1d(context, c);
  if (c.Is("patch_embed")) return PatchEmbedding(context, c);
  const KernelArray &x = c.input("x"), &w_io = c.input("w_io");
  return Linear(context, x.values,
                w_io.empty()
                    ? c.input("w").values
                    : Transposed(w_io.values.data(), w_io.rows(), w_io.width),
                x.width, c.input("b"));
}

}  // namespace

bool CheckLinear(const KernelCase& c, const Context& context,
                 CaseReport* report) {
  const absl::StatusOr<std::vector<float>> found = Run(context, c);
  if (!found.ok()) {
    AddExact({c.name(), "y"}, found.status().ToString(), report);
    return true;
  }
  CompareToLargest({c.name(), "y"}, *found, c.output("y").values, 1e-5, report);
  return true;
}

}  // namespace lanewise
