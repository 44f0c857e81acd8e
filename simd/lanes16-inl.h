// Reductions in the 16 virtual lanes of docs/design.md, section 2: element i
// belongs to lane i mod 16, and lanes are added as l[i] + l[i+8], then +4, +2,
// +1. Included by kernel files only, after highway.h.
#if defined(LANEWISE_SIMD_LANES16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_LANES16_INL_H_
#undef LANEWISE_SIMD_LANES16_INL_H_
#else
#define LANEWISE_SIMD_LANES16_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kVirtualLanes = 16;

// Vectors that divide the 16 lanes. Scalable vectors are capped at 128 bits:
// their types cannot be sized at compile time otherwise.
#if HWY_HAVE_SCALABLE
using LaneTag = hn::CappedTag<float, 4>;
#else
using LaneTag = hn::CappedTag<float, kVirtualLanes>;
#endif

// Registers that hold the 16 lanes: 1, 2 or 4. HWY_SCALAR, with one float each,
// has 4 as well and so an order of its own.
inline constexpr size_t kLaneRegisters =
    HWY_MAX_LANES_D(LaneTag) == 1 ? 4
                                  : kVirtualLanes / HWY_MAX_LANES_D(LaneTag);

// (l[0] + l[2]) + (l[1] + l[3]) of a vector of four lanes.
template <class V>
HWY_INLINE float SumLanes4(V v) {
#if HWY_TARGET != HWY_SCALAR
  v = hn::Add(v, hn::Shuffle1032(v));
  v = hn::Add(v, hn::Shuffle2301(v));
#endif
  return hn::GetLane(v);
}

// The fixed tree over the lanes in registers r0, r1, … (those beyond
// kLaneRegisters are ignored).
template <class D, class V = hn::Vec<D>>
HWY_INLINE float SumLanes16(D d, V r0, V r1, V r2, V r3) {
  if constexpr (kLaneRegisters == 4) {
    r0 = hn::Add(r0, r2);
    r1 = hn::Add(r1, r3);
  }
  if constexpr (kLaneRegisters >= 2) r0 = hn::Add(r0, r1);
  // A register that holds lanes i to i + 15 or i + 7 has halves to add.
  constexpr size_t kLanes = HWY_MAX_LANES_D(D);
  if constexpr (kLanes == 16) {
    const hn::Half<D> d8;
    const hn::Half<decltype(d8)> d4;
    const auto v8 = hn::Add(hn::LowerHalf(d8, r0), hn::UpperHalf(d8, r0));
    return SumLanes4(hn::Add(hn::LowerHalf(d4, v8), hn::UpperHalf(d4, v8)));
  } else if constexpr (kLanes == 8) {
    const hn::Half<D> d4;
    return SumLanes4(hn::Add(hn::LowerHalf(d4, r0), hn::UpperHalf(d4, r0)));
  } else {
    return SumLanes4(r0);
  }
}

// Sum over x[i], i < n: each lane starts at +0 and becomes step(lane, x[i]) for
// its elements in ascending order. The last block of 16 is filled up with
// `identity`, for which step must not change the lane.
template <class D, class Step>
HWY_INLINE float Accumulate16(D d, const float* x, size_t n, float identity,
                              Step step) {
  constexpr size_t kLanes = HWY_MAX_LANES_D(D);
  auto r0 = hn::Zero(d);
  auto r1 = hn::Zero(d);
  auto r2 = hn::Zero(d);
  auto r3 = hn::Zero(d);
  const auto add_block = [&](const float* p) HWY_ATTR {
    for (size_t j = 0; j < kVirtualLanes; j += kLaneRegisters * kLanes) {
      r0 = step(r0, hn::LoadU(d, p + j));
      if constexpr (kLaneRegisters >= 2) {
        r1 = step(r1, hn::LoadU(d, p + j + kLanes));
      }
      if constexpr (kLaneRegisters == 4) {
        r2 = step(r2, hn::LoadU(d, p + j + 2 * kLanes));
        r3 = step(r3, hn::LoadU(d, p + j + 3 * kLanes));
      }
    }
  };
  size_t i = 0;
  for (; i + kVirtualLanes <= n; i += kVirtualLanes) add_block(x + i);
  if (i < n) {
    HWY_ALIGN float rest[kVirtualLanes];
    for (size_t j = 0; j < kVirtualLanes; ++j) {
      rest[j] = i + j < n ? x[i + j] : identity;
    }
    add_block(rest);
  }
  return SumLanes16(d, r0, r1, r2, r3);
}

}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_LANES16_INL_H_
