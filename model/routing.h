// Which experts of a mixture a row goes to, and with what weights (Shazeer et
// al., arXiv:1701.06538; Jiang et al., arXiv:2401.04088).
//
//   IndexedValue routes[kMaxExpertsPerToken];
//   RouteRow(target, moe, logits, routes);
//   for (size_t i = 0; i < moe.top_k; ++i) {
//     // Expert routes[i].index counts routes[i].value.
//   }
#ifndef LANEWISE_MODEL_ROUTING_H_
#define LANEWISE_MODEL_ROUTING_H_

#include "model/spec.h"
#include "simd/target.h"
#include "simd/vector_ops.h"

namespace lanewise {

// routes [top_k]: the experts of the largest logits [experts], of equal ones
// the lower, in ascending order. Their weights are a softmax over the chosen
// ones (moe.renormalize: the same as one over all, divided by the sum of the
// chosen), else what a softmax over all gives them. 0 < top_k <= experts. May
// overwrite the logits.
void RouteRow(const Target& target, const MoeSpec& moe, float* logits,
              IndexedValue* routes);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_ROUTING_H_
