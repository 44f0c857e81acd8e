// Matrix products with float weights against values computed in double
// (tests/data/kernels/linear.*).
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "simd/matmul.h"
#include "tests/simd/golden_topic.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

// The golden README: relative to the largest output.
constexpr double kTolerance = 1e-5;

// y [m, n] = x [m, k] Wᵀ + b by the library; w [n, k].
std::vector<float> Linear(const Target& target, const GoldenArray& x,
                          const std::vector<float>& w, const float* bias) {
  const auto context = MakeContext(target);
  const size_t k = x.width, m = x.rows(), n = w.size() / k;
  std::vector<const uint8_t*> rows;
  for (size_t row = 0; row < n; ++row) {
    rows.push_back(reinterpret_cast<const uint8_t*>(w.data() + row * k));
  }
  auto matrix = Pack(*context, DType::kF32, k, rows);
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  Activations activations;
  EXPECT_TRUE(activations.Reserve(m, k).ok());
  activations.Prepare(*context, x.values.data(), k, m, k, Representation::kF32);
  std::vector<float> y(m * n);
  MatMulEpilogue epilogue;
  epilogue.bias = bias;
  MatMul(*context, activations, ActivationType::kF32, *matrix, y.data(), n,
         epilogue);
  return y;
}

std::vector<float> Transposed(const GoldenArray& w) {
  std::vector<float> out(w.values.size());
  for (size_t r = 0; r < w.rows(); ++r) {
    for (size_t c = 0; c < w.width; ++c) out[c * w.rows() + r] = w.row(r)[c];
  }
  return out;
}

TEST(LinearGolden, LinearAndConv1dLayout) {
  const GoldenTopic topic("linear");
  ForEachTarget([&](const Target& target) {
    size_t compared = 0;
    for (const auto& golden : topic.cases()) {
      const std::string name = golden["name"];
      SCOPED_TRACE(name);
      const bool transposed = name.rfind("conv1d_layout_", 0) == 0;
      // Convolutions of audio and images: convolution_test.
      if (!transposed && name.rfind("linear_", 0) != 0) continue;
      const GoldenArray* x = topic.Find(golden, "inputs", "x");
      const GoldenArray* w =
          topic.Find(golden, "inputs", transposed ? "w_io" : "w");
      const GoldenArray* y = topic.Find(golden, "outputs", "y");
      ASSERT_TRUE(x != nullptr && w != nullptr && y != nullptr);
      const GoldenArray* bias = topic.Find(golden, "inputs", "b");
      const std::vector<float> found =
          Linear(target, *x, transposed ? Transposed(*w) : w->values,
                 bias == nullptr ? nullptr : bias->values.data());
      ASSERT_EQ(found.size(), y->values.size());
      double largest = 0, error = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        largest = std::max(largest, std::fabs(double{y->values[i]}));
        error = std::max(error, std::fabs(double{found[i]} - y->values[i]));
      }
      EXPECT_LE(error, kTolerance * largest);
      ++compared;
    }
    EXPECT_EQ(compared, 16u);
  });
}

}  // namespace
}  // namespace lanewise
