#include "tests/conformance/kernels/kernel_checks.h"

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Check = bool (*)(const KernelCase& c, const Context& context,
                       CaseReport* report);

const std::map<std::string, Check>& Checks() {
  static const auto& checks = *new std::map<std::string, Check>{
      {"attention", CheckAttention}, {"audio", CheckAudio},
      {"ffn", CheckFeedForward},     {"image", CheckImage},
      {"linear", CheckLinear},       {"moe", CheckRouting},
      {"norm", CheckNorm},           {"pooling", CheckPooling},
      {"position", CheckPosition},   {"sampling", CheckSampling},
      {"softmax", CheckSoftmax},
  };
  return checks;
}

}  // namespace

absl::StatusOr<CaseReport> RunKernelTopic(const std::string& folder,
                                          const std::string& topic,
                                          const Context& context) {
  const auto check = Checks().find(topic);
  if (check == Checks().end()) {
    return absl::UnimplementedError(
        absl::StrCat("nothing checks the topic ", topic));
  }
  LANEWISE_ASSIGN_OR_RETURN(const KernelTopic opened,
                            KernelTopic::Open(folder + "/" + topic));
  CaseReport report;
  report.name = topic;
  std::vector<std::string> absent;
  for (const nlohmann::json& one : opened.cases()) {
    const KernelCase c(opened, one);
    const size_t before = report.comparisons.size();
    if (!check->second(c, context, &report)) {
      absent.push_back(c.name());
    } else if (report.comparisons.size() == before) {
      AddExact({c.name(), "case"}, "nothing was compared", &report);
    }
  }
  if (!absent.empty()) {
    report.note =
        absl::StrCat("no such operation here: ", absl::StrJoin(absent, ", "));
  }
  return report;
}

}  // namespace lanewise
