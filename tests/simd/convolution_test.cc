// Convolutions against plain loops. Against recorded values:
// //tests/conformance/kernels.
#include "simd/convolution.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "simd/matmul.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

// The golden README: relative to the largest output.
constexpr double kTolerance = 1e-5;

PackedMatrix Packed(const Context& context, const float* w, size_t n,
                    size_t k) {
  std::vector<const uint8_t*> rows;
  for (size_t row = 0; row < n; ++row) {
    rows.push_back(reinterpret_cast<const uint8_t*>(w + row * k));
  }
  auto matrix = Pack(context, DType::kF32, k, rows);
  EXPECT_TRUE(matrix.ok()) << matrix.status();
  return std::move(*matrix);
}

// w [out, in, kernel], ready for products.
PackedMatrix PackedConv1d(const Context& context, const std::vector<float>& w,
                          const Conv1dShape& shape) {
  const size_t out = w.size() / shape.Columns();
  std::vector<float> reordered(w.size());
  ReorderConv1dWeights(reinterpret_cast<const uint8_t*>(w.data()),
                       sizeof(float), shape, out,
                       reinterpret_cast<uint8_t*>(reordered.data()));
  return Packed(context, reordered.data(), out, shape.Columns());
}

// y [OutputRows, out] of padded rows, `part` rows of it at a time.
std::vector<float> Conv1d(const Context& context, const Conv1dShape& shape,
                          const std::vector<float>& padded,
                          const PackedMatrix& w, const float* bias,
                          size_t part) {
  const size_t n = w.rows();
  const size_t rows =
      shape.OutputRows(padded.size() / shape.in_channels - 2 * shape.padding);
  std::vector<float> y(rows * n, 7.0f);
  Activations activations;
  EXPECT_TRUE(activations.Reserve(part, shape.Columns()).ok());
  for (size_t first = 0; first < rows; first += part) {
    PrepareConv1d(context, shape,
                  padded.data() + first * shape.stride * shape.in_channels,
                  std::min(part, rows - first), Representation::kF32,
                  &activations);
    MatMul(context, activations, ActivationType::kF32, w, y.data() + first * n,
           n, {bias});
  }
  return y;
}

void ExpectNear(const std::vector<float>& found,
                const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (const double value : expected) {
    largest = std::max(largest, std::fabs(value));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], kTolerance * largest) << i;
  }
}

// y[t][n] = sum over taps j and channels c of x[t * stride + j − padding][c] ·
// w[n][c][j].
std::vector<double> Reference(const Conv1dShape& shape,
                              const std::vector<float>& x,
                              const std::vector<float>& w) {
  const size_t channels = shape.in_channels, rows = x.size() / channels;
  const size_t out = w.size() / shape.Columns();
  std::vector<double> y;
  for (size_t t = 0; t < shape.OutputRows(rows); ++t) {
    for (size_t n = 0; n < out; ++n) {
      double sum = 0;
      for (size_t j = 0; j < shape.kernel; ++j) {
        const size_t row = t * shape.stride + j;
        if (row < shape.padding || row >= shape.padding + rows) continue;
        for (size_t c = 0; c < channels; ++c) {
          sum += double{x[(row - shape.padding) * channels + c]} *
                 w[(n * channels + c) * shape.kernel + j];
        }
      }
      y.push_back(sum);
    }
  }
  return y;
}

TEST(Convolution, AnyShapeInAnyPartsGivesTheSameBits) {
  const std::vector<Conv1dShape> shapes = {{1, 1, 1, 0},  {3, 2, 1, 1},
                                           {5, 3, 2, 1},  {7, 5, 3, 2},
                                           {17, 3, 1, 4}, {33, 4, 4, 0}};
  std::vector<std::vector<float>> first;
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target, 2);
    TestRandom random(11);
    std::vector<std::vector<float>> results;
    for (const Conv1dShape& shape : shapes) {
      for (const size_t rows : {1, 4, 19, 40}) {
        const size_t channels = shape.in_channels, stride = channels + 3;
        const std::vector<float> x = random.Uniforms(rows * channels);
        const std::vector<float> w = random.Uniforms(21 * shape.Columns());
        std::vector<float> apart(rows * stride, 7.0f);
        for (size_t r = 0; r < rows; ++r) {
          for (size_t c = 0; c < channels; ++c) {
            apart[r * stride + c] = x[r * channels + c];
          }
        }
        std::vector<float> padded(shape.PaddedRows(rows) * channels, 7.0f);
        PadRows(apart.data(), stride, rows, shape, padded.data());
        const PackedMatrix packed = PackedConv1d(*context, w, shape);
        const std::vector<float> whole =
            Conv1d(*context, shape, padded, packed, nullptr, 100);
        ExpectNear(whole, Reference(shape, x, w));
        for (const size_t part : {1, 3, 8}) {
          ASSERT_EQ(Conv1d(*context, shape, padded, packed, nullptr, part),
                    whole);
        }
        results.push_back(whole);
      }
    }
    if (first.empty()) first = results;
    if (target.has_fma()) {
      EXPECT_EQ(results, first);
    }
  });
}

TEST(Convolution, OutputRows) {
  EXPECT_EQ((Conv1dShape{8, 3, 1, 1}.OutputRows(10)), 10u);
  EXPECT_EQ((Conv1dShape{8, 3, 2, 1}.OutputRows(10)), 5u);
  EXPECT_EQ((Conv1dShape{8, 3, 2, 1}.OutputRows(11)), 6u);
  EXPECT_EQ((Conv1dShape{8, 3, 1, 0}.OutputRows(3)), 1u);
  EXPECT_EQ((Conv1dShape{8, 3, 1, 0}.OutputRows(2)), 0u);
  EXPECT_EQ((Conv1dShape{8, 3, 1, 1}.OutputRows(0)), 0u);
}

TEST(Convolution, ColumnsBecomeRows) {
  TestRandom random(12);
  const Conv1dShape shape{5, 3, 1, 2};
  for (const size_t length : {0, 1, 15, 16, 17, 50}) {
    const std::vector<float> x = random.Uniforms(5 * length);  // [5, length]
    std::vector<float> out(shape.PaddedRows(length) * 5, 7.0f);
    PadColumns(x.data(), length, shape, out.data());
    for (size_t row = 0; row < length + 4; ++row) {
      for (size_t c = 0; c < 5; ++c) {
        const bool inside = row >= 2 && row < length + 2;
        ASSERT_EQ(out[row * 5 + c], inside ? x[c * length + row - 2] : 0.0f);
      }
    }
  }
}

// Weights of two bytes are moved as they are.
TEST(Convolution, ReordersElementsOfAnySize) {
  const std::vector<uint16_t> w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<uint16_t> out(w.size());
  ReorderConv1dWeights(reinterpret_cast<const uint8_t*>(w.data()), 2, {2, 3}, 2,
                       reinterpret_cast<uint8_t*>(out.data()));
  EXPECT_EQ(out, (std::vector<uint16_t>{1, 4, 2, 5, 3, 6,  //
                                        7, 10, 8, 11, 9, 12}));
}

TEST(Convolution, PatchesOfAnImageWithARest) {
  // Two channels of 5 × 7 in patches of 2 × 3: 2 × 2 patches.
  const PatchShape shape{2, 5, 7, 2, 3};
  EXPECT_EQ(shape.Patches(), 4u);
  EXPECT_EQ(shape.Size(), 12u);
  std::vector<float> pixels(70);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i);
  std::vector<float> out(2 * 12 + 1, -1.0f);
  GatherPatches(pixels.data(), shape, 1, 2, out.data());
  const std::vector<float> expected = {
      3,  4,  5,  10, 11, 12, 38, 39, 40, 45, 46, 47,  // right of the first
      14, 15, 16, 21, 22, 23, 49, 50, 51, 56, 57, 58,  // below it
      -1};
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace lanewise
