#include <algorithm>
#include <cstring>

#include "simd/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/kv_store.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target.h
#include "hwy/highway.h"
#include "simd/attention_block.h"
#include "simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, kAttentionLanes>;
using DU = hn::RebindToUnsigned<DF>;

// Nearest even by integer code (for subnormal halves by one float addition,
// whose rounding is that of the halves), the same on every target: instructions
// for it differ in what they do with NaN.
HWY_INLINE hn::Vec<DU> F16Bits(DU du, hn::Vec<DF> x) {
  const DF d;
  const auto sign_mask = hn::Set(du, 0x80000000u);
  const auto magic = hn::Set(du, ((127 - 15) + (23 - 10) + 1) << 23);
  const auto bits = hn::BitCast(du, x);
  const auto sign = hn::And(bits, sign_mask);
  const auto magnitude = hn::Xor(bits, sign);
  const auto odd =
      hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, uint32_t{1}));
  // exponent moved from bias 127 to 15, and half a unit less one bit
  const auto rebias =
      hn::Set(du, 0xFFFu - (static_cast<uint32_t>(127 - 15) << 23));
  const auto normal =
      hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, rebias), odd));
  const auto subnormal = hn::Sub(
      hn::BitCast(du,
                  hn::Add(hn::BitCast(d, magnitude), hn::BitCast(d, magic))),
      magic);
  auto half = hn::IfThenElse(
      hn::Lt(magnitude, hn::Set(du, static_cast<uint32_t>(127 - 14) << 23)),
      subnormal, normal);
  half = hn::IfThenElse(
      hn::Ge(magnitude, hn::Set(du, static_cast<uint32_t>(127 + 16) << 23)),
      hn::Set(du, 0x7C00u), half);
  const auto nan =
      hn::Or(hn::Set(du, 0x7E00u),
             hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3FFu)));
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7F800000u)), nan, half);
  return hn::Or(half, hn::ShiftRight<16>(sign));
}

HWY_INLINE hn::Vec<DU> BF16Bits(DU du, hn::Vec<DF> x) {
  const auto bits = hn::BitCast(du, x);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFu));
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, uint32_t{1}));
  const auto rounded =
      hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFFu))));
  const auto nan =
      hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, uint32_t{0x40}));
  return hn::IfThenElse(hn::Gt(magnitude, hn::Set(du, 0x7F800000u)), nan,
                        rounded);
}

// n floats rounded to the type: to[i] for float, else their 16 bits.
template <CacheType kType>
void Round(const float* HWY_RESTRICT from, size_t n,
           uint16_t* HWY_RESTRICT to) {
  const DF d;
  const DU du;
  const hn::Rebind<uint16_t, DF> dh;
  const size_t lanes = hn::Lanes(d);
  const auto bits = [&](hn::Vec<DF> x) HWY_ATTR {
    return hn::TruncateTo(
        dh, kType == CacheType::kF16 ? F16Bits(du, x) : BF16Bits(du, x));
  };
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(bits(hn::LoadU(d, from + i)), dh, to + i);
  }
  if (i < n) hn::StoreN(bits(hn::LoadN(d, from + i, n - i)), dh, to + i, n - i);
}

constexpr size_t kPiece = 64;  // dimensions of a key rounded at once

// One key into its column of a panel.
void ScatterKey(const float* HWY_RESTRICT k, size_t dims,
                float* HWY_RESTRICT column) {
  for (size_t i = 0; i < dims; ++i) column[i * kAttentionLanes] = k[i];
}

template <CacheType kType>
void ScatterKey(const float* HWY_RESTRICT k, size_t dims,
                uint16_t* HWY_RESTRICT column) {
  HWY_ALIGN uint16_t rounded[kPiece];
  for (size_t i = 0; i < dims; i += kPiece) {
    const size_t n = HWY_MIN(kPiece, dims - i);
    Round<kType>(k + i, n, rounded);
    for (size_t j = 0; j < n; ++j)
      column[(i + j) * kAttentionLanes] = rounded[j];
  }
}

// T holds one stored element.
template <CacheType kType, class T>
void StoreHead(const KvShape& shape, const KvPages& kv, const KvRows& rows,
               size_t head) {
  for (size_t i = 0; i < rows.rows; ++i) {
    const size_t key = rows.first + i;
    const size_t slot = key % kKeysPerPage;
    T* const page =
        reinterpret_cast<T*>(kv.pages[key / kKeysPerPage] + kv.offset) +
        head * kKeysPerPage * (shape.qk_dim + shape.v_dim);
    T* const column = page +
                      slot / kAttentionLanes * shape.qk_dim * kAttentionLanes +
                      slot % kAttentionLanes;
    T* const value = page + kKeysPerPage * shape.qk_dim + slot * shape.v_dim;
    const float* const k = rows.k + i * rows.k_stride + head * shape.qk_dim;
    const float* const v = rows.v + i * rows.v_stride + head * shape.v_dim;
    if constexpr (kType == CacheType::kF32) {
      ScatterKey(k, shape.qk_dim, column);
      std::memcpy(value, v, shape.v_dim * sizeof(float));
    } else {
      ScatterKey<kType>(k, shape.qk_dim, column);
      Round<kType>(v, shape.v_dim, value);
    }
  }
}

void StoreKvHead(const KvShape& shape, const KvPages& kv, const KvRows& rows,
                 size_t head) {
  switch (shape.type) {
    case CacheType::kF32:
      return StoreHead<CacheType::kF32, float>(shape, kv, rows, head);
    case CacheType::kF16:
      return StoreHead<CacheType::kF16, uint16_t>(shape, kv, rows, head);
    case CacheType::kBF16:
      return StoreHead<CacheType::kBF16, uint16_t>(shape, kv, rows, head);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {
HWY_EXPORT(StoreKvHead);

void StoreKv(const Context& context, const KvShape& shape, const KvPages& kv,
             size_t first, size_t rows, const float* k, size_t k_stride,
             const float* v, size_t v_stride) {
  // Elements below which one thread is faster than two.
  constexpr size_t kSerialElements = size_t{1} << 16;
  const auto& store = LANEWISE_DISPATCH(context.target(), StoreKvHead);
  const bool serial =
      rows * shape.kv_heads * (shape.qk_dim + shape.v_dim) < kSerialElements;
  const size_t chunk = serial ? rows : kKeysPerPage;
  const size_t chunks = serial ? 1 : (rows + chunk - 1) / chunk;
  const auto task = [&](size_t index, size_t) {
    const size_t begin = index / shape.kv_heads * chunk;
    store(shape, kv,
          {first + begin, std::min(chunk, rows - begin), k + begin * k_stride,
           k_stride, v + begin * v_stride, v_stride},
          index % shape.kv_heads);
  };
  if (serial) {
    for (size_t head = 0; head < shape.kv_heads; ++head) task(head, 0);
  } else {
    context.ParallelFor(chunks * shape.kv_heads, task);
  }
}

}  // namespace lanewise
#endif  // HWY_ONCE
