// The program `report`: a conformance suite, case by case, as a table.
#ifndef LANEWISE_TESTS_CONFORMANCE_REPORT_H_
#define LANEWISE_TESTS_CONFORMANCE_REPORT_H_

#include <string>

#include "tools/cli.h"

namespace lanewise {

// `suite_file`: path within the runfiles of a file in a folder of the suite
// that is run when none is named. Returns the exit code: 0 when all cases pass,
// 1 when one does not or an output cannot be written, 2 for wrong usage.
int Report(const Invocation& call, const std::string& suite_file);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_REPORT_H_
