#include "simd/pooling.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/pooling.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/elementwise-inl.h"
#include "simd/lanes16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

// out = step(… step(step(x[0], x[1], 1), x[2], 2) …), column by column.
template <class Step>
HWY_INLINE void FoldRows(const PoolingRows& x, float* out, Step step) {
  std::memmove(out, x.data, x.width * sizeof(float));
  for (size_t r = 1; r < x.rows; ++r) {
    const float* row = x.data + r * x.stride;
    ForEachVector(hn::ScalableTag<float>(), x.width, out,
                  [&](auto load)
                      HWY_ATTR { return step(load(out), load(row), r); });
  }
}

void PoolImpl(RowPooling pooling, const PoolingRows& x, float* out) {
  const hn::ScalableTag<float> d;
  float divisor = static_cast<float>(x.rows);
  if (pooling == RowPooling::kMax) {
    FoldRows(x, out, [](auto maximum, auto v, size_t) HWY_ATTR {
      const auto keep = hn::Or(hn::Le(v, maximum), hn::IsNaN(maximum));
      return hn::IfThenElse(keep, maximum, v);
    });
    return;
  }
  if (pooling == RowPooling::kWeightedMean) {
    FoldRows(x, out, [&](auto sum, auto v, size_t r) HWY_ATTR {
      return hn::MulAdd(v, hn::Set(d, static_cast<float>(r + 1)), sum);
    });
    divisor = static_cast<float>(x.rows * (x.rows + 1) / 2);
  } else {
    FoldRows(x, out,
             [](auto sum, auto v, size_t) HWY_ATTR { return hn::Add(sum, v); });
    if (pooling == RowPooling::kMeanSqrtLength) divisor = std::sqrt(divisor);
  }
  const auto divisors = hn::Set(d, divisor);
  ForEachVector(d, x.width, out, [&](auto load) HWY_ATTR {
    return hn::Div(load(out), divisors);
  });
}

void L2NormalizeImpl(float* x, size_t n) {
  const LaneTag dl;
  const float squares = Accumulate16(
      dl, x, n, 0.0f,
      [](auto sum, auto v) HWY_ATTR { return hn::MulAdd(v, v, sum); });
  float length = std::sqrt(squares);
  if (length < 1e-12f) length = 1e-12f;
  const hn::ScalableTag<float> d;
  const auto lengths = hn::Set(d, length);
  ForEachVector(d, n, x,
                [&](auto load) HWY_ATTR { return hn::Div(load(x), lengths); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(PoolImpl);
HWY_EXPORT(L2NormalizeImpl);

void Pool(const Target& target, RowPooling pooling, const PoolingRows& x,
          float* out) {
  if (x.rows == 0) {
    std::fill_n(out, x.width, 0.0f);
  } else if (pooling == RowPooling::kFirst || pooling == RowPooling::kLast) {
    const size_t row = pooling == RowPooling::kFirst ? 0 : x.rows - 1;
    std::memmove(out, x.data + row * x.stride, x.width * sizeof(float));
  } else {
    LANEWISE_DISPATCH(target, PoolImpl)(pooling, x, out);
  }
}

void L2Normalize(const Target& target, float* x, size_t n) {
  LANEWISE_DISPATCH(target, L2NormalizeImpl)(x, n);
}

}  // namespace lanewise
#endif  // HWY_ONCE
