// Checks a chat template against recorded conversations.
#ifndef LANEWISE_TESTS_CONFORMANCE_TEMPLATE_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_TEMPLATE_RUNNER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// The clock of all expected values: 2026-03-14 15:09:26.
inline constexpr int64_t kTemplateClock = 1773500966;

// NAME.jinja with NAME.jsonl beside it, one conversation a line: the text that
// the reference renders, or an error where it raises one.
absl::StatusOr<LineCount> CompareTemplate(const std::string& path);

absl::StatusOr<CaseReport> RunTemplateCase(const std::string& path);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_TEMPLATE_RUNNER_H_
