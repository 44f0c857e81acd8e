#include "simd/vector_ops.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/vector_ops.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/elementwise-inl.h"
#include "simd/lanes16-inl.h"
#include "simd/math-inl.h"
#include "simd/scalar_math.h"

// Once, not per target.
#ifndef LANEWISE_SIMD_VECTOR_OPS_ONCE_
#define LANEWISE_SIMD_VECTOR_OPS_ONCE_
namespace lanewise {
namespace {

constexpr float kNegativeInfinity = -std::numeric_limits<float>::infinity();

// The order of TopK; also a heap's, whose front is then the last in order.
struct Before {
  bool operator()(const IndexedValue& a, const IndexedValue& b) const {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
  }
};

}  // namespace
}  // namespace lanewise
#endif  // LANEWISE_SIMD_VECTOR_OPS_ONCE_

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

void AddToImpl(const float* x, size_t n, float* y) {
  const hn::ScalableTag<float> d;
  ForEachVector(d, n, y,
                [&](auto load) HWY_ATTR { return hn::Add(load(y), load(x)); });
}

void ScaleImpl(float factor, size_t n, float* y) {
  const hn::ScalableTag<float> d;
  const auto factors = hn::Set(d, factor);
  ForEachVector(d, n, y,
                [&](auto load) HWY_ATTR { return hn::Mul(load(y), factors); });
}

void SoftCapImpl(float softcap, size_t n, float* x) {
  const hn::ScalableTag<float> d;
  const auto cap = hn::Set(d, softcap);
  ForEachVector(d, n, x, [&](auto load) HWY_ATTR {
    return hn::Mul(cap, Tanh(d, hn::Div(load(x), cap)));
  });
}

// The largest element, -inf for none; its order does not matter without NaN.
// Which of two zeros is open.
HWY_INLINE float Maximum(const float* x, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto m0 = hn::Set(d, kNegativeInfinity);
  auto m1 = m0;
  auto m2 = m0;
  auto m3 = m0;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
    m2 = hn::Max(m2, hn::LoadU(d, x + i + 2 * lanes));
    m3 = hn::Max(m3, hn::LoadU(d, x + i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  float maximum = hn::ReduceMax(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3)));
  for (; i < n; ++i) maximum = x[i] > maximum ? x[i] : maximum;
  return maximum;
}

void SoftmaxImpl(size_t n, float* x) {
  const float maximum = Maximum(x, n);
  if (maximum == kNegativeInfinity) {
    // All are -inf, or NaN, which must stay visible.
    for (size_t i = 0; i < n; ++i) x[i] = x[i] == maximum ? 0.0f : x[i];
    return;
  }
  const hn::ScalableTag<float> d;
  const auto maxima = hn::Set(d, maximum);
  ForEachVector(d, n, x, [&](auto load) HWY_ATTR {
    return Exp(d, hn::Sub(load(x), maxima));
  });
  const LaneTag dl;
  const float sum = Accumulate16(dl, x, n, 0.0f,
                                 [](auto lanes, auto v)
                                     HWY_ATTR { return hn::Add(lanes, v); });
  const auto sums = hn::Set(d, sum);
  ForEachVector(d, n, x,
                [&](auto load) HWY_ATTR { return hn::Div(load(x), sums); });
}

double LogSumExpImpl(const float* x, size_t n) {
  const float maximum = Maximum(x, n);
  if (maximum == kNegativeInfinity) return maximum;
  const LaneTag d;
  const auto maxima = hn::Set(d, maximum);
  const float sum = Accumulate16(
      d, x, n, kNegativeInfinity, [&](auto lanes, auto v) HWY_ATTR {
        return hn::Add(lanes, Exp(d, hn::Sub(v, maxima)));
      });
  return maximum + Log(sum);
}

// First i >= begin with x[i] == value, or n.
HWY_INLINE size_t FirstEqual(const float* x, size_t begin, size_t n,
                             float value) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto values = hn::Set(d, value);
  size_t i = begin;
  for (; i + lanes <= n; i += lanes) {
    const intptr_t found =
        hn::FindFirstTrue(d, hn::Eq(hn::LoadU(d, x + i), values));
    if (found >= 0) return i + static_cast<size_t>(found);
  }
  while (i < n && x[i] != value) ++i;
  return i;
}

size_t ArgMaxImpl(const float* x, size_t n) {
  // Remembers in which block the maximum came first; then looks there.
  constexpr size_t kBlock = 1024;
  float best = kNegativeInfinity;
  size_t best_block = 0;
  for (size_t block = 0; block < n; block += kBlock) {
    const float maximum = Maximum(x + block, std::min(kBlock, n - block));
    if (maximum > best) {
      best = maximum;
      best_block = block;
    }
  }
  const size_t index = FirstEqual(x, best_block, n, best);
  return index < n ? index : 0;
}

bool AllFiniteImpl(const float* x, size_t n) {
  // x · 0 + sum is NaN from the first infinity or NaN on, else 0.
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto zero = hn::Zero(d);
  auto sum0 = zero;
  auto sum1 = zero;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, x + i), zero, sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, x + i + lanes), zero, sum1);
  }
  float rest = 0.0f;
  for (; i < n; ++i) rest += x[i] * 0.0f;
  return rest == 0.0f && hn::AllTrue(d, hn::Eq(hn::Add(sum0, sum1), zero));
}

size_t TopKImpl(const float* x, size_t n, size_t k, IndexedValue* out) {
  k = std::min(k, n);
  if (k == 0) return 0;
  for (size_t i = 0; i < k; ++i) out[i] = {x[i], static_cast<int32_t>(i)};
  std::make_heap(out, out + k, Before());
  // A later element belongs only if it is larger than the smallest kept one.
  const auto offer = [&](size_t i) {
    if (!(x[i] > out[0].value)) return;
    std::pop_heap(out, out + k, Before());
    out[k - 1] = {x[i], static_cast<int32_t>(i)};
    std::push_heap(out, out + k, Before());
  };
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = k;
  for (; i + lanes <= n; i += lanes) {
    const auto larger = hn::Gt(hn::LoadU(d, x + i), hn::Set(d, out[0].value));
    if (hn::AllFalse(d, larger)) continue;
    for (size_t lane = 0; lane < lanes; ++lane) offer(i + lane);
  }
  for (; i < n; ++i) offer(i);
  std::sort_heap(out, out + k, Before());
  return k;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(AddToImpl);
HWY_EXPORT(ScaleImpl);
HWY_EXPORT(SoftCapImpl);
HWY_EXPORT(SoftmaxImpl);
HWY_EXPORT(LogSumExpImpl);
HWY_EXPORT(ArgMaxImpl);
HWY_EXPORT(AllFiniteImpl);
HWY_EXPORT(TopKImpl);

void AddTo(const Target& target, const float* x, size_t n, float* y) {
  LANEWISE_DISPATCH(target, AddToImpl)(x, n, y);
}

void Scale(const Target& target, float factor, size_t n, float* y) {
  LANEWISE_DISPATCH(target, ScaleImpl)(factor, n, y);
}

void SoftCap(const Target& target, float softcap, size_t n, float* x) {
  LANEWISE_DISPATCH(target, SoftCapImpl)(softcap, n, x);
}

void Softmax(const Target& target, size_t n, float* x) {
  LANEWISE_DISPATCH(target, SoftmaxImpl)(n, x);
}

double LogSumExp(const Target& target, const float* x, size_t n) {
  return LANEWISE_DISPATCH(target, LogSumExpImpl)(x, n);
}

size_t ArgMax(const Target& target, const float* x, size_t n) {
  return LANEWISE_DISPATCH(target, ArgMaxImpl)(x, n);
}

bool AllFinite(const Target& target, const float* x, size_t n) {
  return LANEWISE_DISPATCH(target, AllFiniteImpl)(x, n);
}

size_t TopK(const Target& target, const float* x, size_t n, size_t k,
            IndexedValue* out) {
  return LANEWISE_DISPATCH(target, TopKImpl)(x, n, k, out);
}

}  // namespace lanewise
#endif  // HWY_ONCE
