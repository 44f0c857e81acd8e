// Sinusoids and buckets of relative positions against the standard library's
// functions and by what must hold of them. Against recorded values:
// //tests/conformance/kernels.
#include "model/position_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

constexpr int64_t kFarthest = std::numeric_limits<int64_t>::max();
constexpr int64_t kNearest = std::numeric_limits<int64_t>::min();

// What kClosed rounds matters far out: the reference's own steps, in float.
TEST(PositionTables, ClosedSpacingRoundsAsTheReference) {
  const size_t width = 384, pairs = width / 2;
  const SinusoidTable table(
      {width, SinusoidLayout::kHalves, SinusoidSpacing::kClosed});
  std::vector<float> row(width);
  for (const size_t position : {1u, 777u, 1499u, 100000u}) {
    table.Fill(position, row.data());
    size_t different = 0;
    for (size_t i = 0; i < pairs; ++i) {
      const float step = static_cast<float>(std::log(10000.0) /
                                            static_cast<double>(pairs - 1));
      const float frequency = std::exp(static_cast<float>(i) * -step);
      const float angle = static_cast<float>(position) * frequency;
      const double sine = std::sin(static_cast<double>(angle));
      const double cosine = std::cos(static_cast<double>(angle));
      // Libraries differ in the last place of exp.
      const bool near = std::fabs(row[i] - sine) < 1e-7 &&
                        std::fabs(row[pairs + i] - cosine) < 1e-7;
      different += near ? 0 : 1;
    }
    EXPECT_LE(different, pairs / 50) << position;
  }
}

TEST(PositionTables, OddWidths) {
  std::vector<float> row(7);
  const auto fill = [&](SinusoidLayout layout, SinusoidSpacing spacing,
                        size_t width) {
    row.assign(width + 1, 99.0f);
    SinusoidTable({width, layout, spacing}).Fill(3, row.data());
    EXPECT_EQ(row[width], 99.0f) << "wrote beyond the row";
  };
  using Layout = SinusoidLayout;
  using Spacing = SinusoidSpacing;
  const auto angle = [](double pair) {
    return 3.0 / std::pow(10000.0, 2.0 * pair / 5.0);
  };
  fill(Layout::kHalves, Spacing::kOpen, 5);  // three sines, two cosines
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(row[i], std::sin(angle(i)), 1e-7);
  for (int i = 0; i < 2; ++i) EXPECT_NEAR(row[3 + i], std::cos(angle(i)), 1e-7);
  fill(Layout::kInterleaved, Spacing::kOpen, 5);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(row[2 * i], std::sin(angle(i)), 1e-7);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(row[2 * i + 1], std::cos(angle(i)), 1e-7);
  }
  fill(Layout::kHalves, Spacing::kClosed, 5);  // two each, then zero
  EXPECT_NEAR(row[0], std::sin(3.0), 1e-7);
  EXPECT_NEAR(row[1], std::sin(3e-4), 1e-7);
  EXPECT_NEAR(row[2], std::cos(3.0), 1e-7);
  EXPECT_NEAR(row[3], std::cos(3e-4), 1e-7);
  EXPECT_EQ(row[4], 0.0f);
  fill(Layout::kHalves, Spacing::kClosed, 2);  // one frequency: 1
  EXPECT_NEAR(row[0], std::sin(3.0), 1e-7);
  EXPECT_NEAR(row[1], std::cos(3.0), 1e-7);
  fill(Layout::kHalves, Spacing::kClosed, 1);
  EXPECT_EQ(row[0], 0.0f);
  fill(Layout::kHalves, Spacing::kOpen, 1);
  EXPECT_NEAR(row[0], std::sin(3.0), 1e-7);
  fill(Layout::kHalves, Spacing::kOpen, 0);
}

// Row and column 0 of a 10 × 10 table, as the report lists them.
TEST(PositionTables, M1EncoderBucketsOfTenByTen) {
  const std::vector<int64_t> row = {0, 17, 18, 19, 20, 21, 22, 23, 24, 24};
  const std::vector<int64_t> column = {0, 1, 2, 3, 4, 5, 6, 7, 8, 8};
  for (int64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(RelativeBucket(i, {}), row[static_cast<size_t>(i)]);
    EXPECT_EQ(RelativeBucket(-i, {}), column[static_cast<size_t>(i)]);
  }
}

TEST(PositionTables, BucketsAscendWithTheDistance) {
  for (const bool bidirectional : {false, true}) {
    for (const int64_t count : {2, 3, 5, 8, 31, 32, 320}) {
      for (const int64_t farthest : {20, 128, 1000, 100000}) {
        const RelativeBuckets buckets{count, farthest, bidirectional};
        int64_t last = 0;
        for (int64_t d = 0; d < 3000; ++d) {
          const int64_t bucket = RelativeBucket(-d, buckets);
          ASSERT_GE(bucket, last) << d;
          last = bucket;
        }
        if (farthest <= 1000) {
          EXPECT_EQ(last, (bidirectional ? count / 2 : count) - 1);
        }
      }
    }
  }
}

// Sizes come from files.
TEST(PositionTables, AnySizesGiveABucketOfTheTable) {
  const std::vector<int64_t> values = {kNearest, -1, 0,  1,       2,        3,
                                       4,        7,  16, 1 << 20, kFarthest};
  for (const int64_t count : values) {
    for (const int64_t farthest : values) {
      for (const int64_t distance : values) {
        for (const bool bidirectional : {false, true}) {
          const int64_t bucket =
              RelativeBucket(distance, {count, farthest, bidirectional});
          ASSERT_GE(bucket, 0);
          ASSERT_LT(bucket, std::max<int64_t>(count, 1))
              << distance << " of " << count << " up to " << farthest;
        }
        const int64_t log = LogBucket(distance, count, farthest);
        if (distance != kNearest) {
          ASSERT_EQ(LogBucket(-distance, count, farthest), -log);
        }
        ASSERT_GE(distance < 0 ? -log : log, 0);
      }
    }
  }
}

TEST(PositionTables, LogBucketsEndAtTheLongestDistance) {
  EXPECT_EQ(LogBucket(511, 256, 512), 255);
  EXPECT_EQ(LogBucket(-511, 256, 512), -255);
  EXPECT_EQ(LogBucket(128, 256, 512), 128);
  EXPECT_GT(LogBucket(513, 256, 512), 255);
  EXPECT_EQ(LogBucket(9, 2, 512), 1);   // no room: clamped
  EXPECT_EQ(LogBucket(-9, 16, 9), -9);  // max_position too small
  EXPECT_EQ(LogBucket(-99, 16, 9), -15);
}

}  // namespace
}  // namespace lanewise
