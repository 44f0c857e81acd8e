// The program `report`: a conformance suite, case by case, as a table.
#ifndef LANEWISE_TESTS_CONFORMANCE_REPORT_H_
#define LANEWISE_TESTS_CONFORMANCE_REPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/cli.h"

namespace lanewise {

// What a program carries: paths within its runfiles.
struct ReportData {
  // A file in a folder of the suite that is run when none is named.
  std::string suite_file;
  // Weights of real models: the name of the case, and the file of the model, or
  // config.json of its folder.
  std::vector<std::pair<std::string, std::string>> models;
};

// Of this program: each links one of two definitions (BUILD).
ReportData CarriedData();

// Returns the exit code: 0 when all cases pass, 1 when one does not or an
// output cannot be written, 2 for wrong usage.
int Report(const Invocation& call, const ReportData& data);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_REPORT_H_
