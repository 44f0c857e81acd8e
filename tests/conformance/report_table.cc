#include "tests/conformance/report_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tools/escaped.h"

namespace lanewise {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kWeightsWidth = 16;
constexpr size_t kMaxReason = 160;  // bytes in a table
constexpr size_t kMaxTypes = 3;

const char* StateName(CaseState state) {
  switch (state) {
    case CaseState::kPassed:
      return "PASS";
    case CaseState::kFailed:
      return "FAIL";
    case CaseState::kNotRun:
      return "not run";
  }
  return "";
}

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

// "Q4_K, F32", or how many where there are too many for a column.
std::string Weights(const CaseReport& report) {
  const std::vector<std::string> types = absl::StrSplit(report.weights, ", ");
  return types.size() <= kMaxTypes ? OrDash(report.weights)
                                   : absl::StrCat(types.size(), " types");
}

// "3.1e-06", or "-" where nothing is relative to a reference's deviation.
std::string ErrorText(const CaseReport& report) {
  const bool any =
      std::any_of(report.comparisons.begin(), report.comparisons.end(),
                  [](const Comparison& c) { return c.relative; });
  return any ? absl::StrFormat("%.1e", report.LargestError()) : "-";
}

std::string Result(const CaseRow& row) {
  std::string text = StateName(row.state);
  if (!row.reason.empty()) {
    const char* between = row.state == CaseState::kPassed ? "; " : ": ";
    const std::string first = row.reason.substr(0, row.reason.find('\n'));
    absl::StrAppend(&text, between, OneLine(first, kMaxReason));
  }
  return text;
}

// The first failure, and how many more there are.
std::string FailureText(const CaseReport& report) {
  std::string text;
  size_t more = 0;
  for (const Comparison& c : report.comparisons) {
    if (c.failure.empty()) continue;
    if (text.empty()) {
      text = absl::StrCat(c.run, ": ", c.output, ": ", c.failure);
    } else {
      ++more;
    }
  }
  if (more > 0) text = absl::StrCat(more + 1, " comparisons fail: ", text);
  return text;
}

std::string Cell(const std::string& text) {
  return absl::StrReplaceAll(text, {{"|", "\\|"}, {"<", "&lt;"}});
}

Json ComparisonJson(const Comparison& c) {
  Json json;
  json["run"] = c.run;
  json["output"] = c.output;
  json["outputs"] = c.outputs;
  // A NaN becomes null.
  json["error"] = c.error;
  json["tolerance"] = c.tolerance;
  json["relative"] = c.relative;
  json["passed"] = c.failure.empty();
  if (!c.failure.empty()) json["failure"] = c.failure;
  return json;
}

Json RowJson(const CaseRow& row) {
  Json json;
  json["case"] = row.name;
  json["architecture"] = row.architecture;
  json["weights"] = row.report.weights;
  json["result"] = StateName(row.state);
  json["reason"] = row.reason;
  json["outputs"] = row.report.Outputs();
  json["largest_error"] = row.report.LargestError();
  json["seconds"] = row.seconds;
  Json& comparisons = json["comparisons"] = Json::array();
  for (const Comparison& c : row.report.comparisons) {
    comparisons.push_back(ComparisonJson(c));
  }
  return json;
}

}  // namespace

CaseRow MakeRow(const SuiteCase& one, absl::StatusOr<CaseReport> report,
                double seconds) {
  CaseRow row{one.name, one.architecture, CaseState::kFailed, "", seconds, {}};
  if (!report.ok()) {
    row.reason = std::string(report.status().message());
    return row;
  }
  row.report = *std::move(report);
  if (row.architecture.empty()) row.architecture = row.report.architecture;
  if (row.report.comparisons.empty()) {
    row.reason = "nothing was compared";
  } else if (!row.report.skipped.empty()) {
    row.reason = absl::StrCat("run ", row.report.skipped[0], " was not done");
  } else if (!row.report.passed()) {
    row.reason = FailureText(row.report);
  } else {
    row.state = CaseState::kPassed;
    row.reason = row.report.note;
  }
  return row;
}

CaseRow NotRunRow(const SuiteCase& one) {
  return {one.name, one.architecture, CaseState::kNotRun, one.not_run, 0, {}};
}

CaseTotals Total(const std::vector<CaseRow>& rows) {
  CaseTotals totals;
  for (const CaseRow& row : rows) {
    totals.passed += row.state == CaseState::kPassed;
    totals.run += row.state != CaseState::kNotRun;
    totals.not_run += row.state == CaseState::kNotRun;
  }
  return totals;
}

std::string TotalLine(const CaseTotals& totals) {
  std::string line =
      absl::StrCat(totals.passed, " of ", totals.run, " cases pass");
  if (totals.not_run > 0) {
    absl::StrAppend(&line, " (", totals.not_run, " not run)");
  }
  return line;
}

ReportTable::ReportTable(const std::vector<SuiteCase>& cases)
    : name_width_(4), architecture_width_(12) {
  for (const SuiteCase& one : cases) {
    name_width_ = std::max(name_width_, one.name.size());
    architecture_width_ =
        std::max(architecture_width_, one.architecture.size());
  }
}

std::string ReportTable::Heading() const {
  return absl::StrFormat("%-*s  %-*s  %-*s  %7s  %13s  %s\n", name_width_,
                         "case", architecture_width_, "architecture",
                         kWeightsWidth, "weights", "outputs", "largest error",
                         "result");
}

std::string ReportTable::Line(const CaseRow& row) const {
  return absl::StrFormat("%-*s  %-*s  %-*s  %7d  %13s  %s\n", name_width_,
                         row.name, architecture_width_,
                         OrDash(row.architecture), kWeightsWidth,
                         Weights(row.report), row.report.Outputs(),
                         ErrorText(row.report), Result(row));
}

std::string MarkdownReport(const ReportHeader& header,
                           const std::vector<CaseRow>& rows) {
  std::string text = absl::StrCat(
      "# Conformance report\n\n", TotalLine(Total(rows)), ". Target ",
      header.target,
      ", activations and cache f32. Errors are the largest difference of a\n"
      "logit or hidden value from the reference, in standard deviations of "
      "the reference's values;\nthe tolerance is ",
      absl::StrFormat("%.0e", kRelativeTolerance),
      ". Token ids, texts and tensors are equal or fail.\n\n"
      "| case | architecture | weights | outputs | largest error | result |\n"
      "| --- | --- | --- | ---: | ---: | --- |\n");
  for (const CaseRow& row : rows) {
    absl::StrAppend(
        &text, "| ", Cell(row.name), " | ", Cell(OrDash(row.architecture)),
        " | ", OrDash(row.report.weights), " | ", row.report.Outputs(), " | ",
        ErrorText(row.report), " | ", Cell(Result(row)), " |\n");
  }
  return text;
}

std::string JsonReport(const ReportHeader& header,
                       const std::vector<CaseRow>& rows) {
  const CaseTotals totals = Total(rows);
  Json json;
  json["suite"] = header.suite;
  json["target"] = header.target;
  json["threads"] = header.threads;
  json["passed"] = totals.passed;
  json["total"] = totals.run;
  json["not_run"] = totals.not_run;
  Json& cases = json["cases"] = Json::array();
  for (const CaseRow& row : rows) cases.push_back(RowJson(row));
  return absl::StrCat(
      json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

}  // namespace lanewise
