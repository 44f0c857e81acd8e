// What counts as equal to a reference, and what does not.
#include "tests/conformance/case_report.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(CaseReport, ErrorsAreRelativeToTheReferencesDeviation) {
  CaseReport report;
  const std::vector<float> expected = {-2, 2, -2, 2};  // deviation 2
  CompareToReference({"run", "logits"}, {-2, 2, -2, 2.001f}, expected, &report);
  EXPECT_NEAR(report.comparisons[0].error, 0.0005, 1e-6);
  EXPECT_TRUE(report.passed());
  CompareToReference({"run", "logits"}, {-2, 2, -2, 2.003f}, expected, &report);
  EXPECT_FALSE(report.passed());
  EXPECT_NEAR(report.LargestError(), 0.0015, 1e-6);
  // No deviation: the unit is 1.
  CompareToReference({"run", "constant"}, {3.0f, 3.0005f}, {3, 3}, &report);
  EXPECT_TRUE(report.comparisons[2].failure.empty());
}

TEST(CaseReport, NotANumberIsAnError) {
  for (const size_t at : {0, 1, 2}) {
    CaseReport report;
    std::vector<float> found = {1, 2, 3};
    found[at] = kNan;
    CompareToReference({"run", "logits"}, found, {1, 2, 3}, &report);
    EXPECT_FALSE(report.passed());
    EXPECT_TRUE(std::isnan(report.LargestError()));
    CaseReport absolute;
    CompareAbsolute({"run", "nll"}, found, {1, 2, 3}, 1e9, &absolute);
    EXPECT_FALSE(absolute.passed());
  }
}

TEST(CaseReport, SizesMustAgree) {
  CaseReport report;
  CompareAbsolute({"run", "a"}, {1}, {1, 1}, 1, &report);
  CompareBits({"run", "b"}, {1}, {1, 1}, &report);
  CompareIds({"run", "c"}, {1}, {1, 1}, &report);
  CompareIds({"run", "d"}, {1, 1}, {1}, &report);
  for (const Comparison& c : report.comparisons) {
    EXPECT_FALSE(c.failure.empty()) << c.output;
  }
  EXPECT_EQ(report.comparisons[2].failure,
            "expected 2 ids, found 1; at 1: expected 1, found none");
}

TEST(CaseReport, BitsTellZerosApart) {
  CaseReport report;
  CompareBits({"run", "bits"}, {0.0f}, {0.0f}, &report);
  EXPECT_TRUE(report.passed());
  CompareBits({"run", "bits"}, {-0.0f}, {0.0f}, &report);
  EXPECT_FALSE(report.passed());
}

TEST(CaseReport, LinesCountAsOutputs) {
  CaseReport report;
  AddLines({"tokenizer", "encode"}, {5, 5, ""}, &report);
  EXPECT_EQ(report.Outputs(), 5u);
  EXPECT_TRUE(report.passed());
  AddLines({"tokenizer", "pairs"}, {3, 2, "one"}, &report);
  EXPECT_EQ(report.comparisons[1].failure, "1 of 3 differ\none");
  AddLines({"tokenizer", "bytes"}, {0, 0, ""}, &report);
  EXPECT_FALSE(report.comparisons[2].failure.empty());  // tests nothing
}

}  // namespace
}  // namespace lanewise
