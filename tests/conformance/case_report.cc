#include "tests/conformance/case_report.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lanewise {
namespace {

Comparison Compare(const OutputName& output, absl::Span<const float> found,
                   absl::Span<const float> expected, double scale,
                   double tolerance) {
  Comparison c{output.run, output.name, 0, tolerance, ""};
  if (found.size() != expected.size()) {
    c.failure = absl::StrCat("expected ", expected.size(), " values, found ",
                             found.size());
    return c;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const double error =
        std::fabs(double{found[i]} - double{expected[i]}) / scale;
    // A NaN counts as an error, and stays one.
    if (!(error <= c.error)) c.error = error;
    if (std::isnan(error)) break;
  }
  if (!(c.error <= tolerance)) {
    c.failure = absl::StrCat("error ", c.error, " above ", tolerance);
  }
  return c;
}

}  // namespace

bool CaseReport::passed() const {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& c) { return c.failure.empty(); });
}

std::string CaseReport::Failures() const {
  std::string out;
  for (const Comparison& c : comparisons) {
    if (c.failure.empty()) continue;
    absl::StrAppend(&out, name, ": ", c.run, ": ", c.output, ": ", c.failure,
                    "\n");
  }
  return out;
}

size_t CaseReport::Outputs() const {
  size_t outputs = 0;
  for (const Comparison& c : comparisons) outputs += c.outputs;
  return outputs;
}

double CaseReport::LargestError() const {
  double largest = 0;
  for (const Comparison& c : comparisons) {
    if (!c.relative || c.error <= largest) continue;
    largest = c.error;
    if (std::isnan(largest)) break;
  }
  return largest;
}

void CompareAbsolute(const OutputName& output, absl::Span<const float> found,
                     absl::Span<const float> expected, double tolerance,
                     CaseReport* report) {
  report->comparisons.push_back(
      Compare(output, found, expected, 1.0, tolerance));
}

void CompareRelative(const OutputName& output, absl::Span<const float> found,
                     absl::Span<const float> expected, double deviation,
                     CaseReport* report) {
  report->comparisons.push_back(Compare(output, found, expected,
                                        deviation > 0 ? deviation : 1.0,
                                        kRelativeTolerance));
  report->comparisons.back().relative = true;
}

void CompareToReference(const OutputName& output, absl::Span<const float> found,
                        absl::Span<const float> expected, CaseReport* report) {
  CompareRelative(output, found, expected, StandardDeviation(expected), report);
}

void CompareIds(const OutputName& output, absl::Span<const int32_t> found,
                absl::Span<const int32_t> expected, CaseReport* report) {
  std::string failure;
  const auto [a, b] = std::mismatch(found.begin(), found.end(),
                                    expected.begin(), expected.end());
  if (a != found.end() || b != expected.end()) {
    const auto id = [](auto it, auto end) {
      return it == end ? std::string("none") : absl::StrCat(*it);
    };
    failure =
        absl::StrCat("expected ", expected.size(), " ids, found ", found.size(),
                     "; at ", a - found.begin(), ": expected ",
                     id(b, expected.end()), ", found ", id(a, found.end()));
  }
  AddExact(output, std::move(failure), report);
}

void CompareBits(const OutputName& output, absl::Span<const float> found,
                 absl::Span<const float> expected, CaseReport* report) {
  std::string failure;
  if (found.size() != expected.size()) {
    failure = absl::StrCat("expected ", expected.size(), " values, found ",
                           found.size());
  } else if (!found.empty() && std::memcmp(found.data(), expected.data(),
                                           found.size() * sizeof(float)) != 0) {
    failure = "other bits";
  }
  AddExact(output, std::move(failure), report);
}

void AddExact(const OutputName& output, std::string failure,
              CaseReport* report) {
  report->comparisons.push_back(
      {output.run, output.name, 0, 0, std::move(failure)});
}

void AddLines(const OutputName& output, const LineCount& count,
              CaseReport* report) {
  Comparison c{output.run, output.name, 0, 0, ""};
  c.outputs = count.cases;
  if (count.cases == 0) {
    c.failure = "nothing to compare";
  } else if (count.equal < count.cases) {
    c.failure = absl::StrCat(count.cases - count.equal, " of ", count.cases,
                             " differ\n", count.differences);
  }
  report->comparisons.push_back(std::move(c));
}

double StandardDeviation(absl::Span<const float> values) {
  if (values.empty()) return 0;
  double sum = 0, squares = 0;
  for (const float v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (const float v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

}  // namespace lanewise
