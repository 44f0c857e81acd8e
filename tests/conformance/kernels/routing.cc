// Routing of rows to experts.
#include "model/routing.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/spec.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

// The weights of all rows, in the order of the recorded experts: by logit,
// where the library's is by number. An expert that was not chosen has -1.
std::vector<float> Weights(const KernelCase& c, const Context& context,
                           bool renormalize) {
  MoeSpec moe;
  moe.experts = c.count("experts");
  moe.top_k = c.count("top_k");
  moe.renormalize = renormalize;
  const KernelArray& logits = c.input("logits");
  const KernelArray& indices = c.output("indices");
  std::vector<float> weights;
  for (size_t r = 0; r < logits.rows() && r < indices.rows(); ++r) {
    std::vector<float> row(logits.row(r), logits.row(r) + logits.width);
    std::vector<IndexedValue> routes(moe.top_k);
    RouteRow(context.target(), moe, row.data(), routes.data());
    for (size_t i = 0; i < indices.width; ++i) {
      const auto route = std::find_if(
          routes.begin(), routes.end(), [&](const IndexedValue& candidate) {
            return static_cast<float>(candidate.index) == indices.row(r)[i];
          });
      weights.push_back(route == routes.end() ? -1.0f : route->value);
    }
  }
  return weights;
}

}  // namespace

bool CheckRouting(const KernelCase& c, const Context& context,
                  CaseReport* report) {
  const auto compare = [&](const char* output, bool renormalize) {
    CompareElements(
        {c.name(), output}, Weights(c, context, renormalize),
        c.output(output).values, [](size_t) { return 1e-6; }, report);
  };
  compare("softmax_topk", false);
  compare("softmax_topk_renorm", true);
  compare("topk_softmax", true);  // the same by another order
  return true;
}

}  // namespace lanewise
