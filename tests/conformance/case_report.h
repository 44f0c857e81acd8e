// What comes out of checking one case of the conformance suite.
//
//   CaseReport report;
//   CompareToReference({"batch", "logits"}, found, expected, &report);
//   CompareIds({"greedy", "sequences"}, ids, wanted_ids, &report);
//   if (!report.passed()) std::cerr << report.Failures();
#ifndef LANEWISE_TESTS_CONFORMANCE_CASE_REPORT_H_
#define LANEWISE_TESTS_CONFORMANCE_CASE_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace lanewise {

struct Comparison {
  std::string run;     // "greedy"
  std::string output;  // "step_logits"
  double error = 0;    // largest difference, in units of the tolerance's scale
  double tolerance = 0;
  std::string failure;  // empty: passed
  // Whether the scale is the standard deviation of the reference's values.
  bool relative = false;
  size_t outputs = 1;  // that were compared
};

// Lines of a file, compared one by one.
struct LineCount {
  size_t cases = 0;
  size_t equal = 0;
  std::string differences;  // the first few, for people
};

struct CaseReport {
  std::string name;
  std::string architecture;
  std::string weights;  // storage types, e.g. "Q4_K, Q6_K, F32"
  std::vector<Comparison> comparisons;
  std::vector<std::string> skipped;  // runs of kinds that were not asked for
  std::string note;                  // what a reader of a report should know

  bool passed() const;
  std::string Failures() const;  // one a line

  size_t Outputs() const;

  // Over the comparisons that are relative to the reference's standard
  // deviation; NaN when one of them is.
  double LargestError() const;
};

// Tolerances of the suite: of logits and hidden states, in standard deviations
// of the reference's values.
inline constexpr double kRelativeTolerance = 1e-3;

// What a comparison is of.
struct OutputName {
  std::string run;
  std::string name;
};

// Absolute differences, at most `tolerance`.
void CompareAbsolute(const OutputName& output, absl::Span<const float> found,
                     absl::Span<const float> expected, double tolerance,
                     CaseReport* report);

// Differences in units of `deviation`, at most kRelativeTolerance.
void CompareRelative(const OutputName& output, absl::Span<const float> found,
                     absl::Span<const float> expected, double deviation,
                     CaseReport* report);

// The same with the expected values' own standard deviation. Values that are
// all equal have the unit 1.
void CompareToReference(const OutputName& output, absl::Span<const float> found,
                        absl::Span<const float> expected, CaseReport* report);

void CompareIds(const OutputName& output, absl::Span<const int32_t> found,
                absl::Span<const int32_t> expected, CaseReport* report);

// Bit for bit.
void CompareBits(const OutputName& output, absl::Span<const float> found,
                 absl::Span<const float> expected, CaseReport* report);

// An exact comparison whose outcome is known; `failure` empty: equal.
void AddExact(const OutputName& output, std::string failure,
              CaseReport* report);

// Passes when all lines are equal and there are any.
void AddLines(const OutputName& output, const LineCount& count,
              CaseReport* report);

double StandardDeviation(absl::Span<const float> values);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_CASE_REPORT_H_
