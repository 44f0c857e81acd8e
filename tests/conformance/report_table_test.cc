// The three forms of a report, from rows made here.
#include "tests/conformance/report_table.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

SuiteCase Case(const std::string& name) {
  SuiteCase one;
  one.name = name;
  one.architecture = "LlamaForCausalLM";
  return one;
}

CaseReport Report(const std::string& failure, double error) {
  CaseReport report;
  report.weights = "Q4_K, Q6_K";
  report.comparisons.push_back({"single", "logits", error, 1e-3, failure});
  report.comparisons.back().relative = true;
  return report;
}

TEST(ReportTable, RowsSayWhyACaseFails) {
  EXPECT_EQ(MakeRow(Case("a"), Report("", 1e-6), 0).state, CaseState::kPassed);
  CaseRow row = MakeRow(Case("a"), Report("error 2 above 0.001", 2), 0);
  EXPECT_EQ(row.state, CaseState::kFailed);
  EXPECT_EQ(row.reason, "single: logits: error 2 above 0.001");
  row = MakeRow(Case("a"), absl::NotFoundError("no such file"), 0);
  EXPECT_EQ(row.state, CaseState::kFailed);
  EXPECT_EQ(row.reason, "no such file");
  // What compares nothing, or leaves a run out, has not passed.
  row = MakeRow(Case("a"), CaseReport(), 0);
  EXPECT_EQ(row.state, CaseState::kFailed);
  EXPECT_EQ(row.reason, "nothing was compared");
  CaseReport skipped = Report("", 0);
  skipped.skipped.push_back("beam4");
  row = MakeRow(Case("a"), skipped, 0);
  EXPECT_EQ(row.state, CaseState::kFailed);
  EXPECT_EQ(row.reason, "run beam4 was not done");
}

TEST(ReportTable, TotalsCountWhatRan) {
  SuiteCase absent = Case("c");
  absent.not_run = "no weights";
  const std::vector<CaseRow> rows = {MakeRow(Case("a"), Report("", 0), 0),
                                     MakeRow(Case("b"), Report("x", 0), 0),
                                     NotRunRow(absent)};
  const CaseTotals totals = Total(rows);
  EXPECT_EQ(totals.passed, 1u);
  EXPECT_EQ(totals.run, 2u);
  EXPECT_EQ(TotalLine(totals), "1 of 2 cases pass (1 not run)");
  EXPECT_EQ(TotalLine(Total({rows[0]})), "1 of 1 cases pass");
}

TEST(ReportTable, LinesAreAlignedAndOneEach) {
  const std::vector<SuiteCase> cases = {Case("a"), Case("a/much/longer/name")};
  const ReportTable table(cases);
  const std::string heading = table.Heading();
  const std::string pass = table.Line(MakeRow(cases[0], Report("", 2e-6), 0));
  const std::string fail =
      table.Line(MakeRow(cases[1], Report("first\nsecond\x1b[2J", kNan), 0));
  EXPECT_EQ(heading.find("result"), pass.find("PASS"));
  EXPECT_EQ(heading.find("result"), fail.find("FAIL: single: logits: first\n"));
  EXPECT_TRUE(absl::StrContains(pass, " Q4_K, Q6_K ")) << pass;
  EXPECT_TRUE(absl::StrContains(pass, " 2.0e-06 ")) << pass;
  EXPECT_TRUE(absl::StrContains(fail, " nan ")) << fail;
  for (const std::string& line : {heading, pass, fail}) {
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  }
}

TEST(ReportTable, JsonHasAllComparisonsAndNoNan) {
  const CaseRow row = MakeRow(Case("a"), Report("not a\nnumber \xff", kNan), 2);
  const json report =
      json::parse(JsonReport({"suite", "AVX2", 3}, {row}), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["target"], "AVX2");
  EXPECT_EQ(report["threads"], 3);
  EXPECT_EQ(report["passed"], 0);
  const json& one = report["cases"][0];
  EXPECT_EQ(one["seconds"], 2.0);
  EXPECT_TRUE(one["largest_error"].is_null());
  EXPECT_TRUE(one["comparisons"][0]["error"].is_null());
  EXPECT_EQ(one["comparisons"][0]["relative"], true);
  EXPECT_TRUE(absl::StartsWith(
      one["comparisons"][0]["failure"].get<std::string>(), "not a\nnumber"));
}

TEST(ReportTable, MarkdownCellsCannotBreakTheTable) {
  const CaseRow row = MakeRow(Case("a|b"), Report("x | y <img>\nz", 1), 0);
  const std::string text = MarkdownReport({"suite", "AVX2", 1}, {row});
  size_t rows = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, "| a")) continue;
    ++rows;
    EXPECT_EQ(line,
              "| a\\|b | LlamaForCausalLM | Q4_K, Q6_K | 1 | 1.0e+00 | FAIL: "
              "single: logits: x \\| y &lt;img> |");
  }
  EXPECT_EQ(rows, 1u);
}

}  // namespace
}  // namespace lanewise
