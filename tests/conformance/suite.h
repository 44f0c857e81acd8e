// The cases of a conformance suite, by its folders.
//
//   SuiteOptions options;
//   options.root = "golden";
//   for (const SuiteCase& one : ListCases(options)) {
//     absl::StatusOr<CaseReport> report = one.run(context);
//   }
//
// Folders: models/NAME or models/KIND/NAME, gguf/NAME, tokenizers/NAME (or
// tokenizer/NAME), vocab/NAME.gguf, templates/NAME.jinja, kernels/TOPIC.json,
// real/NAME. What is not there has no cases.
#ifndef LANEWISE_TESTS_CONFORMANCE_SUITE_H_
#define LANEWISE_TESTS_CONFORMANCE_SUITE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

struct SuiteOptions {
  std::string root;
  std::string filter;  // only cases whose name holds it
  // Where the weights of real models are: a folder that holds them by the name
  // of the case, and for what is not there files of cases ("real/NAME").
  std::string models;
  std::map<std::string, std::string> weights;
};

struct SuiteCase {
  std::string name;          // "models/decoder/llama"
  std::string architecture;  // as case.json says; "" where it says nothing
  std::string not_run;       // why it cannot be run here; empty: it can
  std::function<absl::StatusOr<CaseReport>(const Context& context)> run;
};

// In the order of the folders above, each sorted by name.
std::vector<SuiteCase> ListCases(const SuiteOptions& options);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_SUITE_H_
