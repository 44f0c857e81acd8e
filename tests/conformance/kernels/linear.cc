// Matrix products with float weights.
#include <cstdint>
#include <vector>

#include "simd/matmul.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

// y [m, n] = x [m, k] Wᵀ + b; w [n, k]. Empty when memory is short.
std::vector<float> Linear(const Context& context, const KernelArray& x,
                          const std::vector<float>& w,
                          const KernelArray& bias) {
  const size_t k = x.width, m = x.rows(), n = k == 0 ? 0 : w.size() / k;
  std::vector<const uint8_t*> rows;
  for (size_t row = 0; row < n; ++row) {
    rows.push_back(reinterpret_cast<const uint8_t*>(w.data() + row * k));
  }
  const auto matrix = Pack(context, DType::kF32, k, rows);
  Activations activations;
  if (!matrix.ok() || !activations.Reserve(m, k).ok()) return {};
  activations.Prepare(context, x.values.data(), k, m, k, Representation::kF32);
  std::vector<float> y(m * n);
  MatMulEpilogue epilogue;
  epilogue.bias = bias.empty() ? nullptr : bias.values.data();
  MatMul(context, activations, ActivationType::kF32, *matrix, y.data(), n,
         epilogue);
  return y;
}

std::vector<float> Transposed(const KernelArray& w) {
  std::vector<float> out(w.values.size());
  for (size_t r = 0; r < w.rows(); ++r) {
    for (size_t c = 0; c < w.width; ++c) out[c * w.rows() + r] = w.row(r)[c];
  }
  return out;
}

}  // namespace

bool CheckLinear(const KernelCase& c, const Context& context,
                 CaseReport* report) {
  const bool transposed = c.Is("conv1d_layout_");
  if (!transposed && !c.Is("linear_")) return false;
  const std::vector<float> w =
      transposed ? Transposed(c.input("w_io")) : c.input("w").values;
  CompareToLargest({c.name(), "y"},
                   Linear(context, c.input("x"), w, c.input("b")),
                   c.output("y").values, 1e-5, report);
  return true;
}

}  // namespace lanewise
