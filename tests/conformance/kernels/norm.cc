// Norms, softmax and log-softmax.
#include "simd/norm.h"

#include <cmath>
#include <limits>
#include <vector>

#include "simd/vector_ops.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

// How many standard deviations the mean of a row is from zero: what LayerNorm
// subtracts, in units of what it leaves.
double Offset(const float* row, size_t width, double eps) {
  double mean = 0, variance = 0;
  for (size_t i = 0; i < width; ++i) mean += row[i];
  mean /= static_cast<double>(width);
  for (size_t i = 0; i < width; ++i) {
    variance += (row[i] - mean) * (row[i] - mean);
  }
  variance /= static_cast<double>(width);
  return std::abs(mean) / std::sqrt(variance + eps);
}

const float* DataOrNull(const KernelArray& array) {
  return array.empty() ? nullptr : array.values.data();
}

}  // namespace

bool CheckNorm(const KernelCase& c, const Context& context,
               CaseReport* report) {
  const KernelArray& x = c.input("x");
  std::vector<float> factors = c.input("weight").values;
  if (c.Is("rms_norm_plus_one")) {
    for (float& factor : factors) factor += 1.0f;
  }
  const float* weight = factors.empty() ? nullptr : factors.data();
  const float eps = static_cast<float>(c.number("eps"));
  const bool layer_norm = c.Is("layer_norm");
  std::vector<float> found(x.values.size());
  std::vector<double> offsets(x.rows());
  for (size_t r = 0; r < x.rows(); ++r) {
    float* out = found.data() + r * x.width;
    if (layer_norm) {
      LayerNorm(context.target(), x.row(r), weight, DataOrNull(c.input("bias")),
                eps, x.width, out);
      offsets[r] = Offset(x.row(r), x.width, eps);
    } else {
      RmsNorm(context.target(), x.row(r), weight, eps, x.width, out);
    }
  }
  // The mean is a float: its rounding, a few units of 2^-24, is scaled like the
  // row.
  const std::vector<float>& y = c.output("y").values;
  const auto allowed = [&](size_t i) {
    const size_t column = i % x.width;
    const double factor = weight == nullptr ? 1.0 : std::abs(weight[column]);
    return 2e-6 * (1 + std::abs(y[i])) +
           factor * offsets[i / x.width] * 4 * 0x1p-24;
  };
  CompareElements({c.name(), "y"}, found, y, allowed, report);
  return true;
}

bool CheckSoftmax(const KernelCase& c, const Context& context,
                  CaseReport* report) {
  const KernelArray& x = c.input("x");
  std::vector<float> probabilities = x.values;
  std::vector<double> logs(x.values.size()), sums(x.rows());
  for (size_t r = 0; r < x.rows(); ++r) {
    sums[r] = LogSumExp(context.target(), x.row(r), x.width);
    Softmax(context.target(), x.width, probabilities.data() + r * x.width);
    for (size_t i = 0; i < x.width; ++i) {
      logs[r * x.width + i] = x.row(r)[i] - sums[r];
    }
  }
  // x − max is rounded to 2^-24 of at most 88 where p is not 0.
  const std::vector<float>& expected = c.output("softmax").values;
  CompareElements(
      {c.name(), "softmax"}, probabilities, expected,
      [&](size_t i) { return 6e-6 * expected[i] + 1.2e-38; }, report);
  // The sum is a double as large as the row's maximum.
  const std::vector<float>& wanted = c.output("log_softmax").values;
  const auto allowed = [&](size_t i) {
    const double sum = sums[i / x.width];
    if (std::isinf(wanted[i]) || std::isinf(sum)) {
      return std::numeric_limits<double>::infinity();
    }
    return 1e-6 + std::abs(wanted[i]) * 0x1p-24 + std::abs(sum) * 0x1p-52;
  };
  CompareElements({c.name(), "log_softmax"}, absl::MakeConstSpan(logs), wanted,
                  allowed, report);
  return true;
}

}  // namespace lanewise
