// Attention over a page of keys: its tiles put together, for any number of
// panels and columns. Included by attention_block.cc only, after highway.h.
#if defined(LANEWISE_SIMD_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_ATTENTION_INL_H_
#undef LANEWISE_SIMD_ATTENTION_INL_H_
#else
#define LANEWISE_SIMD_ATTENTION_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "simd/attention_block.h"
#include "simd/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

// ScoreTile for panels [begin, end) of a page.
template <size_t R, class T>
HWY_INLINE void ScorePage(const float* HWY_RESTRICT q, const T* HWY_RESTRICT k,
                          size_t dims, float scale, size_t begin, size_t end,
                          float* HWY_RESTRICT s) {
  constexpr size_t kPanels = ScorePanels<R>();
  const VF vscale = hn::Set(DF(), scale);
  size_t panel = begin;
  for (; panel + kPanels <= end; panel += kPanels) {
    ScoreTile<R, kPanels>(q, k + panel * dims * kAttentionLanes, dims, vscale,
                          s + panel * kAttentionLanes);
  }
  for (; kPanels > 1 && panel < end; ++panel) {
    ScoreTile<R, 1>(q, k + panel * dims * kAttentionLanes, dims, vscale,
                    s + panel * kAttentionLanes);
  }
}

// ValueTile for all columns. Vector c of a row of o holds columns
// [min(c·N, v_dim − N), …): the last one overlaps its neighbour rather than
// reading past the end, and both hold the same bits there.
template <size_t R, class T>
HWY_INLINE void ValuePage(const float* HWY_RESTRICT p,
                          const float* HWY_RESTRICT factor,
                          const T* HWY_RESTRICT v, size_t v_dim, size_t begin,
                          size_t end, float* HWY_RESTRICT o, size_t stride) {
  const size_t n = Lanes();
  if (v_dim < n) {
    ValueTile<R, 1, true>(p, factor, v, v_dim, {0, 0, v_dim}, begin, end, o,
                          stride);
    return;
  }
  const size_t vectors = (v_dim + n - 1) / n;
  size_t c = 0;
#if !HWY_HAVE_SCALABLE
  constexpr size_t kWide = R * 8 <= kAccumulators   ? 8
                           : R * 4 <= kAccumulators ? 4
                           : R * 2 <= kAccumulators ? 2
                                                    : 1;
  for (; c + kWide <= vectors; c += kWide) {
    const size_t last = HWY_MIN((c + kWide - 1) * n, v_dim - n);
    ValueTile<R, kWide, false>(p, factor, v, v_dim, {c * n, last, n}, begin,
                               end, o + c * n, stride);
  }
  if constexpr (kWide > 4) {
    for (; c + 4 <= vectors; c += 4) {
      const size_t last = HWY_MIN((c + 3) * n, v_dim - n);
      ValueTile<R, 4, false>(p, factor, v, v_dim, {c * n, last, n}, begin, end,
                             o + c * n, stride);
    }
  }
  if constexpr (kWide > 2) {
    for (; c + 2 <= vectors; c += 2) {
      const size_t last = HWY_MIN((c + 1) * n, v_dim - n);
      ValueTile<R, 2, false>(p, factor, v, v_dim, {c * n, last, n}, begin, end,
                             o + c * n, stride);
    }
  }
#endif
  for (; c < vectors; ++c) {
    const size_t column = HWY_MIN(c * n, v_dim - n);
    ValueTile<R, 1, false>(p, factor, v, v_dim, {column, column, n}, begin, end,
                           o + c * n, stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_ATTENTION_INL_H_
