// Loop over the elements of rows, whole vectors first. Included by kernel files
// only, after highway.h.
#if defined(LANEWISE_SIMD_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_ELEMENTWISE_INL_H_
#undef LANEWISE_SIMD_ELEMENTWISE_INL_H_
#else
#define LANEWISE_SIMD_ELEMENTWISE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out[i] = body(load), i < n, where load(p) gives the elements p[i] of any row
// p, and what it gives beyond n is zero and not stored:
//
//   ForEachVector(d, n, out, [&](auto load) HWY_ATTR {
//     return hn::Mul(load(x), load(weight));
//   });
//
// out may be one of the rows.
template <class D, class Body>
HWY_INLINE void ForEachVector(D d, size_t n, float* out, Body body) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  const auto load_all = [&](const float* p)
                            HWY_ATTR { return hn::LoadU(d, p + i); };
  for (; i + lanes <= n; i += lanes) hn::StoreU(body(load_all), d, out + i);
  if (i == n) return;
  const auto load_rest = [&](const float* p)
                             HWY_ATTR { return hn::LoadN(d, p + i, n - i); };
  hn::StoreN(body(load_rest), d, out + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_ELEMENTWISE_INL_H_
