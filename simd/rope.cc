#include "simd/rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/rope.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target.h
#include <cstring>

#include "hwy/highway.h"
#include "simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;  // so that a buffer holds two vectors
using VF = hn::Vec<DF>;

HWY_INLINE VF RotatedFirst(VF a, VF b, VF cos, VF sin) {
  return hn::NegMulAdd(b, sin, hn::Mul(a, cos));
}
HWY_INLINE VF RotatedSecond(VF a, VF b, VF cos, VF sin) {
  return hn::MulAdd(a, sin, hn::Mul(b, cos));
}

// Bound by loads and stores: 4 loads and 2 stores for 4 operations.
void RotateHalves(float* HWY_RESTRICT x, size_t half,
                  const float* HWY_RESTRICT cos,
                  const float* HWY_RESTRICT sin) {
  const DF d;
  const size_t n = hn::Lanes(d);
  size_t i = 0;
  for (; i + n <= half; i += n) {
    const VF a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + half + i);
    const VF c = hn::LoadU(d, cos + i), s = hn::LoadU(d, sin + i);
    hn::StoreU(RotatedFirst(a, b, c, s), d, x + i);
    hn::StoreU(RotatedSecond(a, b, c, s), d, x + half + i);
  }
  if (i == half) return;
  const size_t rest = half - i;
  const VF a = hn::LoadN(d, x + i, rest), b = hn::LoadN(d, x + half + i, rest);
  const VF c = hn::LoadN(d, cos + i, rest), s = hn::LoadN(d, sin + i, rest);
  hn::StoreN(RotatedFirst(a, b, c, s), d, x + i, rest);
  hn::StoreN(RotatedSecond(a, b, c, s), d, x + half + i, rest);
}

HWY_INLINE void RotatePairs(float* HWY_RESTRICT x, VF c, VF s) {
  const DF d;
  VF a, b;
  hn::LoadInterleaved2(d, x, a, b);
  hn::StoreInterleaved2(RotatedFirst(a, b, c, s), RotatedSecond(a, b, c, s), d,
                        x);
}

void RotateInterleaved(float* HWY_RESTRICT x, size_t half,
                       const float* HWY_RESTRICT cos,
                       const float* HWY_RESTRICT sin) {
  const DF d;
  const size_t n = hn::Lanes(d);
  size_t i = 0;
  for (; i + n <= half; i += n) {
    RotatePairs(x + 2 * i, hn::LoadU(d, cos + i), hn::LoadU(d, sin + i));
  }
  if (i == half) return;
  const size_t rest = half - i;
  HWY_ALIGN float pairs[32] = {};
  std::memcpy(pairs, x + 2 * i, 2 * rest * sizeof(float));
  RotatePairs(pairs, hn::LoadN(d, cos + i, rest), hn::LoadN(d, sin + i, rest));
  std::memcpy(x + 2 * i, pairs, 2 * rest * sizeof(float));
}

void ApplyRopeImpl(float* x, size_t heads, size_t head_stride,
                   size_t rotary_dim, RopePairing pairing, const float* cos,
                   const float* sin) {
  const size_t half = rotary_dim / 2;
  for (size_t h = 0; h < heads; ++h, x += head_stride) {
    if (pairing == RopePairing::kHalves) {
      RotateHalves(x, half, cos, sin);
    } else {
      RotateInterleaved(x, half, cos, sin);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {
HWY_EXPORT(ApplyRopeImpl);

void ApplyRope(const Target& target, float* x, size_t heads, size_t head_stride,
               size_t rotary_dim, RopePairing pairing, const float* cos,
               const float* sin) {
  LANEWISE_DISPATCH(target, ApplyRopeImpl)
  (x, heads, head_stride, rotary_dim, pairing, cos, sin);
}

}  // namespace lanewise
#endif  // HWY_ONCE
