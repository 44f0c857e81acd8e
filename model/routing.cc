#include "model/routing.h"

#include <algorithm>

#include "model/limits.h"

namespace lanewise {

void RouteRow(const Target& target, const MoeSpec& moe, float* logits,
              IndexedValue* routes) {
  TopK(target, logits, moe.experts, moe.top_k, routes);
  std::sort(routes, routes + moe.top_k,
            [](const IndexedValue& a, const IndexedValue& b) {
              return a.index < b.index;
            });
  if (moe.renormalize) {
    float weights[kMaxExpertsPerToken];
    for (size_t i = 0; i < moe.top_k; ++i) weights[i] = routes[i].value;
    Softmax(target, moe.top_k, weights);
    for (size_t i = 0; i < moe.top_k; ++i) routes[i].value = weights[i];
  } else {
    Softmax(target, moe.experts, logits);
    for (size_t i = 0; i < moe.top_k; ++i) {
      routes[i].value = logits[routes[i].index];
    }
  }
}

}  // namespace lanewise
