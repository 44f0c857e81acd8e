// Vector polynomials in explicit MulAdd: the same bits on every target with
// fused multiply-add. Included by kernel files only, after highway.h.
#if defined(LANEWISE_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_MATH_INL_H_
#undef LANEWISE_SIMD_MATH_INL_H_
#else
#define LANEWISE_SIMD_MATH_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// e^x for f32 lanes. exp(0) = 1 and exp(-inf) = 0 exactly; +0 where the result
// would be denormal (x < -87.33), +inf above 88.72; NaN stays NaN. Error
// below 1.5 units in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V kLowest = hn::Set(d, -87.33654475f);
  const V kHighest = hn::Set(d, 88.72283173f);
  // Clamped for the integer conversion; Min and Max see no NaN, which the masks
  // below bring back.
  const auto is_nan = hn::IsNaN(x);
  const V safe = hn::IfThenZeroElse(is_nan, x);
  const V clamped = hn::Min(hn::Max(safe, kLowest), kHighest);
  // x = n ln 2 + r, |r| <= ln 2 / 2
  const V n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504088896341f)));
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(hn::Mul(r, r), p, r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  // 2^n in two factors, since n reaches 128.
  const auto ni = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(ni);
  const auto bias = hn::Set(di, 127);
  const V scale0 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V scale1 =
      hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(ni, half), bias)));
  V result = hn::Mul(hn::Mul(p, scale0), scale1);
  result = hn::IfThenZeroElse(hn::Lt(safe, kLowest), result);
  result = hn::IfThenElse(hn::Gt(safe, kHighest), hn::Inf(d), result);
  return hn::IfThenElse(is_nan, x, result);
}

}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_MATH_INL_H_
