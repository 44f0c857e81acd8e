#include "tests/conformance/report.h"
#include "tests/conformance/suite_file.h"

int main(int argc, char** argv) {
  return lanewise::Report(lanewise::MakeInvocation("report", argc, argv, ""),
                          lanewise::kSuiteFile);
}
