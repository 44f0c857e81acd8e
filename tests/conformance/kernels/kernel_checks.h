// The topics of single operations, and what of the library each is checked
// with.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       CaseReport report,
//       RunKernelTopic("tests/data/kernels", "norm", context));
#ifndef LANEWISE_TESTS_CONFORMANCE_KERNELS_KERNEL_CHECKS_H_
#define LANEWISE_TESTS_CONFORMANCE_KERNELS_KERNEL_CHECKS_H_

#include <string>

#include "absl/status/statusor.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"
#include "tests/conformance/kernels/kernel_case.h"

namespace lanewise {

// Each adds the comparisons of one case, each output one; false: the library
// has no such operation.
bool CheckAttention(const KernelCase& c, const Context& context,
                    CaseReport* report);
bool CheckAudio(const KernelCase& c, const Context& context,
                CaseReport* report);
bool CheckFeedForward(const KernelCase& c, const Context& context,
                      CaseReport* report);
bool CheckImage(const KernelCase& c, const Context& context,
                CaseReport* report);
bool CheckLinear(const KernelCase& c, const Context& context,
                 CaseReport* report);
bool CheckNorm(const KernelCase& c, const Context& context, CaseReport* report);
bool CheckPooling(const KernelCase& c, const Context& context,
                  CaseReport* report);
bool CheckPosition(const KernelCase& c, const Context& context,
                   CaseReport* report);
bool CheckRouting(const KernelCase& c, const Context& context,
                  CaseReport* report);
bool CheckSampling(const KernelCase& c, const Context& context,
                   CaseReport* report);
bool CheckSoftmax(const KernelCase& c, const Context& context,
                  CaseReport* report);

// All cases of a topic; those that the library has no operation for are named
// in the note, and a case without any comparison fails. UNIMPLEMENTED for a
// topic that nothing here checks.
absl::StatusOr<CaseReport> RunKernelTopic(const std::string& folder,
                                          const std::string& topic,
                                          const Context& context);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_KERNELS_KERNEL_CHECKS_H_
