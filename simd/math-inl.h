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
// below 1.1 units in the last place.
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

// 1 / (1 + e^-x): 0 at -inf, 1 at +inf, NaN stays NaN. Error below 2.5 units in
// the last place down to x = -87, then +0 or denormal.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

// tanh x: odd, ±0 stays ±0, ±1 at ±inf, NaN stays NaN. Error below 1.5 units
// in the last place.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V magnitude = hn::Abs(x);
  // |x| < 5/8: x + x³ P(x²), interpolated at Chebyshev nodes.
  const V z = hn::Mul(magnitude, magnitude);
  V p = hn::Set(d, -6.09671418e-3f);
  p = hn::MulAdd(p, z, hn::Set(d, 2.09971797e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, -5.38509078e-2f));
  p = hn::MulAdd(p, z, hn::Set(d, 0.133327693f));
  p = hn::MulAdd(p, z, hn::Set(d, -0.333333284f));
  const V small = hn::MulAdd(hn::Mul(magnitude, z), p, magnitude);
  // Otherwise 1 − 2 / (e^2|x| + 1).
  const V one = hn::Set(d, 1.0f);
  const V two = hn::Set(d, 2.0f);
  const V e = Exp(d, hn::Add(magnitude, magnitude));
  const V large = hn::Sub(one, hn::Div(two, hn::Add(e, one)));
  const auto is_small = hn::Lt(magnitude, hn::Set(d, 0.625f));
  return hn::CopySign(hn::IfThenElse(is_small, small, large), x);
}

// Φ(x) = (1 + erf(x / √2)) / 2, the distribution function of the normal
// distribution; computed as a tail, so that the relative error stays below 7
// units in the last place for negative x too (without fused multiply-add
// x²/2 more). +0 below -13.2 (where it would be denormal), 1 at +inf, NaN stays
// NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V NormalCdf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V limit = hn::Set(d, 15.0f);
  const V magnitude = hn::Abs(x);
  const V a = hn::IfThenElse(hn::Gt(magnitude, limit), limit, magnitude);
  // Φ(-a) = e^(-a²/2) t Q(t), t = 1 / (1 + a/4), Q interpolated at Chebyshev
  // nodes over 0 <= a <= 13.3.
  const V t = hn::Div(one, hn::MulAdd(a, hn::Set(d, 0.25f), one));
  V q = hn::Set(d, 1.48279853e-2f);
  q = hn::MulAdd(q, t, hn::Set(d, -5.31848595e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, 2.88008749e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, 5.93209490e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, -1.33836363e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, 0.100927681f));
  q = hn::MulAdd(q, t, hn::Set(d, 6.69556335e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, 9.66253206e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, 9.93547961e-2f));
  q = hn::MulAdd(q, t, hn::Set(d, 9.97552574e-2f));
  // e^(-a²/2), with the rounding error of a² put back.
  const V half = hn::Set(d, 0.5f);
  const V square = hn::Mul(a, a);
  const V error = hn::MulSub(a, a, square);
  V e = Exp(d, hn::Neg(hn::Mul(square, half)));
  e = hn::NegMulAdd(hn::Mul(e, half), error, e);
  const V tail = hn::Mul(e, hn::Mul(t, q));
  const V far =
      hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(one, tail), tail);
  // |x| < 1: ½ + x P(x²).
  V p = hn::Set(d, -7.66053836e-6f);
  p = hn::MulAdd(p, square, hn::Set(d, 1.13502298e-4f));
  p = hn::MulAdd(p, square, hn::Set(d, -1.18634396e-3f));
  p = hn::MulAdd(p, square, hn::Set(d, 9.97332856e-3f));
  p = hn::MulAdd(p, square, hn::Set(d, -6.64903596e-2f));
  p = hn::MulAdd(p, square, hn::Set(d, 0.398942292f));
  const V near = hn::MulAdd(x, p, half);
  return hn::IfThenElse(hn::Lt(magnitude, one), near, far);
}

}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_MATH_INL_H_
