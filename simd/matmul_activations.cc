// Conversion of activation rows: rounding to bf16, quantization to int8.
#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_activations.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/matmul_layout.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using DI32 = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
using VI32 = hn::Vec<DI32>;

constexpr int32_t kInfinity = 0x7F800000;

// bf16 by nearest even, kept as f32; results below 2^-56 become +0. Integer
// code: no flush mode matters. NaN stays NaN.
HWY_INLINE VF RoundToBF16(VF x) {
  const DF d;
  const DI32 di;
  const auto magnitude_bits = hn::Set(di, 0x7FFFFFFF);
  const auto high_bits = hn::Set(di, static_cast<int32_t>(0xFFFF0000));
  const VI32 bits = hn::BitCast(di, x);
  const VI32 odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 1));
  VI32 rounded =
      hn::And(hn::Add(bits, hn::Add(odd, hn::Set(di, 0x7FFF))), high_bits);
  const auto tiny =
      hn::Lt(hn::And(rounded, magnitude_bits),
             hn::Set(di, static_cast<int32_t>(kSmallestBF16Operand)));
  rounded = hn::IfThenZeroElse(tiny, rounded);
  const auto is_nan =
      hn::Gt(hn::And(bits, magnitude_bits), hn::Set(di, kInfinity));
  const VI32 quiet = hn::And(hn::Or(bits, hn::Set(di, 0x400000)), high_bits);
  return hn::BitCast(d, hn::IfThenElse(is_nan, quiet, rounded));
}

void RoundRowToBF16Impl(const float* x, size_t k, float* out) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    hn::StoreU(RoundToBF16(hn::LoadU(d, x + i)), d, out + i);
  }
  if (i < k) {
    HWY_ALIGN float tail[16] = {};
    std::copy(x + i, x + k, tail);
    hn::Store(RoundToBF16(hn::Load(d, tail)), d, tail);
    std::copy(tail, tail + (k - i), out + i);
  }
}

// The largest of 32 magnitudes, as bits: integers order like floats, and NaN
// comes out largest.
HWY_INLINE int32_t MaxMagnitude(const float* x) {
  const DI32 di;
  const DF d;
  const size_t lanes = hn::Lanes(di);
  VI32 max = hn::Zero(di);
  for (size_t i = 0; i < kBlockSize; i += lanes) {
    const VI32 bits = hn::BitCast(di, hn::LoadU(d, x + i));
    max = hn::Max(max, hn::And(bits, hn::Set(di, 0x7FFFFFFF)));
  }
  return hn::ReduceMax(di, max);  // of integers: no order matters
}

void QuantizeBlock(const float* x, int8_t* q, ActivationBlock* block) {
  const DF d;
  const hn::Rebind<int8_t, DF> d8;
  const size_t lanes = hn::Lanes(d);
  const int32_t max_bits = MaxMagnitude(x);
  float max;
  std::memcpy(&max, &max_bits, sizeof(max));
  // Not finite: the scale carries it, the integers are 0.
  const bool zero = max_bits >= kInfinity || max < 0x1p-100f;
  block->d = max < 0x1p-100f ? 0.0f : max / 127.0f;
  if (zero) {
    std::memset(q, 0, kBlockSize);
    block->sum = 0.0f;
    block->minus_sum = block->minus_sum_lo = 0;
    return;
  }
  const VF r = hn::Set(d, 127.0f / max);
  for (size_t i = 0; i < kBlockSize; i += lanes) {
    const VI32 rounded = hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), r));
    hn::StoreU(hn::DemoteTo(d8, rounded), d8, q + i);
  }
  int32_t low = 0, high = 0;
  for (size_t i = 0; i < 16; ++i) {
    low += q[i];
    high += q[i + 16];
  }
  block->sum = static_cast<float>(low + high);
  block->minus_sum = -(low + high);
  block->minus_sum_lo = -low;
}

void QuantizeRowImpl(const float* x, size_t k, int8_t* q,
                     ActivationBlock* blocks) {
  for (size_t i = 0; i < k; i += kBlockSize, ++blocks) {
    if (k - i >= kBlockSize) {
      QuantizeBlock(x + i, q + i, blocks);
    } else {
      float tail[kBlockSize] = {};
      std::copy(x + i, x + k, tail);
      QuantizeBlock(tail, q + i, blocks);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(RoundRowToBF16Impl);
void RoundRowToBF16(const Target& target, const float* x, size_t k,
                    float* floats) {
  LANEWISE_DISPATCH(target, RoundRowToBF16Impl)(x, k, floats);
}

HWY_EXPORT(QuantizeRowImpl);
void QuantizeRow(const Target& target, const float* x, size_t k, int8_t* q,
                 ActivationBlock* blocks) {
  LANEWISE_DISPATCH(target, QuantizeRowImpl)(x, k, q, blocks);
}

}  // namespace lanewise
#endif  // HWY_ONCE
