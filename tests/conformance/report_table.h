// The rows of a conformance report, and the three forms they take: lines of an
// aligned table, Markdown, JSON.
#ifndef LANEWISE_TESTS_CONFORMANCE_REPORT_TABLE_H_
#define LANEWISE_TESTS_CONFORMANCE_REPORT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/conformance/case_report.h"
#include "tests/conformance/suite.h"

namespace lanewise {

enum class CaseState { kPassed, kFailed, kNotRun };

struct CaseRow {
  std::string name;
  std::string architecture;
  CaseState state = CaseState::kNotRun;
  std::string reason;  // of a failure or of not being run; else a note
  double seconds = 0;
  CaseReport report;  // empty when the case could not be run
};

// How and on what a suite ran.
struct ReportHeader {
  std::string suite;
  std::string target;
  size_t threads = 0;
};

CaseRow MakeRow(const SuiteCase& one, absl::StatusOr<CaseReport> report,
                double seconds);
CaseRow NotRunRow(const SuiteCase& one);

// Of the rows that ran.
struct CaseTotals {
  size_t passed = 0;
  size_t run = 0;
  size_t not_run = 0;
};
CaseTotals Total(const std::vector<CaseRow>& rows);

// "12 of 14 cases pass" and, where some were not run, how many.
std::string TotalLine(const CaseTotals& totals);

// Widths are fixed by the cases, so that rows can be written one at a time.
class ReportTable {
 public:
  explicit ReportTable(const std::vector<SuiteCase>& cases);
  std::string Heading() const;  // one line
  std::string Line(const CaseRow& row) const;

 private:
  size_t name_width_;
  size_t architecture_width_;
};

std::string MarkdownReport(const ReportHeader& header,
                           const std::vector<CaseRow>& rows);
std::string JsonReport(const ReportHeader& header,
                       const std::vector<CaseRow>& rows);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_REPORT_TABLE_H_
