#include "tests/conformance/report.h"

int main(int argc, char** argv) {
  return lanewise::Report(lanewise::MakeInvocation("report", argc, argv, ""),
                          lanewise::CarriedData());
}
