#include "simd/norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/norm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/elementwise-inl.h"
#include "simd/lanes16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

void RmsNormImpl(const float* x, const float* weight, float eps, size_t width,
                 float* out) {
  const LaneTag dl;
  const float squares = Accumulate16(
      dl, x, width, 0.0f,
      [](auto sum, auto v) HWY_ATTR { return hn::MulAdd(v, v, sum); });
  const float mean = squares / static_cast<float>(width);
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, 1.0f / std::sqrt(mean + eps));
  if (weight == nullptr) {
    ForEachVector(d, width, out,
                  [&](auto load) HWY_ATTR { return hn::Mul(load(x), scale); });
  } else {
    ForEachVector(d, width, out, [&](auto load) HWY_ATTR {
      return hn::Mul(hn::Mul(load(x), scale), load(weight));
    });
  }
}

void LayerNormImpl(const float* x, const float* weight, const float* bias,
                   float eps, size_t width, float* out) {
  const LaneTag dl;
  const float sum = Accumulate16(dl, x, width, 0.0f,
                                 [](auto lanes, auto v)
                                     HWY_ATTR { return hn::Add(lanes, v); });
  const float mean = sum / static_cast<float>(width);
  const auto mean_lanes = hn::Set(dl, mean);
  const float squares =
      Accumulate16(dl, x, width, mean, [&](auto lanes, auto v) HWY_ATTR {
        const auto difference = hn::Sub(v, mean_lanes);
        return hn::MulAdd(difference, difference, lanes);
      });
  const float variance = squares / static_cast<float>(width);
  const hn::ScalableTag<float> d;
  const auto mean_v = hn::Set(d, mean);
  const auto scale = hn::Set(d, 1.0f / std::sqrt(variance + eps));
  ForEachVector(d, width, out, [&](auto load) HWY_ATTR {
    const auto t = hn::Mul(hn::Sub(load(x), mean_v), scale);
    if (weight != nullptr) {
      return bias != nullptr ? hn::MulAdd(t, load(weight), load(bias))
                             : hn::Mul(t, load(weight));
    }
    return bias != nullptr ? hn::Add(t, load(bias)) : t;
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(RmsNormImpl);
HWY_EXPORT(LayerNormImpl);

void RmsNorm(const Target& target, const float* x, const float* weight,
             float eps, size_t width, float* out) {
  LANEWISE_DISPATCH(target, RmsNormImpl)(x, weight, eps, width, out);
}

void LayerNorm(const Target& target, const float* x, const float* weight,
               const float* bias, float eps, size_t width, float* out) {
  LANEWISE_DISPATCH(target, LayerNormImpl)(x, weight, bias, eps, width, out);
}

}  // namespace lanewise
#endif  // HWY_ONCE
