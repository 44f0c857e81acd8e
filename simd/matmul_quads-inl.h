// Vectors of quads (4 bytes of k for each column, see matmul_layout.h) and the
// operations that formats and kernels need on them. Included by
// matmul_quantized-inl.h.
#if defined(LANEWISE_SIMD_MATMUL_QUADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_MATMUL_QUADS_INL_H_
#undef LANEWISE_SIMD_MATMUL_QUADS_INL_H_
#else
#define LANEWISE_SIMD_MATMUL_QUADS_INL_H_
#endif

#include "simd/matmul-inl.h"

// x86 before AVX-512 VNNI has no byte dot product: its pairwise one is summed
// in 16 bits, 2 to 3.5 times as fast as Highway's substitute.
#undef LANEWISE_PAIRWISE
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3_DL && HWY_TARGET != HWY_SCALAR
#define LANEWISE_PAIRWISE 1
#else
#define LANEWISE_PAIRWISE 0
#endif

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

// One column: a lane of 32 bits cannot be cut into bytes there.
using Quads = uint32_t;

HWY_INLINE Quads LoadQuads(const uint8_t* bytes) {
  Quads quads;
  std::memcpy(&quads, bytes, sizeof(quads));
  return quads;
}

template <int kShift, uint8_t kMask>
HWY_INLINE Quads Bits(Quads quads) {
  const Quads shifted =
      kShift < 0 ? quads << HWY_MAX(-kShift, 0) : quads >> HWY_MAX(kShift, 0);
  return shifted & (kMask * 0x01010101u);
}

HWY_INLINE Quads Merge(Quads a, Quads b) { return a | b; }

HWY_INLINE Quads BroadcastQuad(const int8_t* q) {
  return LoadQuads(reinterpret_cast<const uint8_t*>(q));
}

template <size_t kByte>
HWY_INLINE VI32 ByteOfLanes(Quads quads) {
  uint8_t bytes[4];
  std::memcpy(bytes, &quads, sizeof(bytes));
  return hn::Set(DI32(), bytes[kByte]);
}

HWY_INLINE VI32 AddProducts(Quads weights, Quads activations, VI32 sum) {
  uint8_t w[4];
  int8_t a[4];
  std::memcpy(w, &weights, sizeof(w));
  std::memcpy(a, &activations, sizeof(a));
  int32_t products = 0;
  for (size_t i = 0; i < 4; ++i) products += w[i] * a[i];
  return hn::Add(sum, hn::Set(DI32(), products));
}

#else

using DU8 = hn::Repartition<uint8_t, DF>;
using DI8 = hn::Repartition<int8_t, DF>;
using Quads = hn::Vec<DU8>;

HWY_INLINE Quads LoadQuads(const uint8_t* bytes) {
  return hn::LoadU(DU8(), bytes);
}

// (byte >> kShift) & kMask; kMask is clear where bits of a neighbour arrive,
// as shifts act on 16-bit lanes. kShift < 0 shifts to the left.
template <int kShift, uint8_t kMask>
HWY_INLINE Quads Bits(Quads quads) {
  const DU8 d;
  const hn::Repartition<uint16_t, DF> du16;
  const auto wide = hn::BitCast(du16, quads);
  Quads shifted = quads;
  if constexpr (kShift > 0) {
    shifted = hn::BitCast(d, hn::ShiftRight<kShift>(wide));
  } else if constexpr (kShift < 0) {
    shifted = hn::BitCast(d, hn::ShiftLeft<-kShift>(wide));
  }
  return hn::And(shifted, hn::Set(d, kMask));
}

HWY_INLINE Quads Merge(Quads a, Quads b) { return hn::Or(a, b); }

// 4 adjacent activations in every lane.
HWY_INLINE hn::Vec<DI8> BroadcastQuad(const int8_t* q) {
  int32_t quad;
  std::memcpy(&quad, q, sizeof(quad));
  return hn::BitCast(DI8(), hn::Set(DI32(), quad));
}

// Byte kByte (0 … 3, in the order of memory) of each lane.
template <size_t kByte>
HWY_INLINE VI32 ByteOfLanes(Quads quads) {
  const DU32 du;
  const auto lanes = hn::BitCast(du, quads);
  constexpr int kShift = 8 * (HWY_IS_LITTLE_ENDIAN ? kByte : 3 - kByte);
  return hn::BitCast(DI32(),
                     hn::And(hn::ShiftRight<kShift>(lanes), hn::Set(du, 0xFF)));
}

// sum + the 4 products of each lane, exactly.
HWY_INLINE VI32 AddProducts(Quads weights, hn::Vec<DI8> activations, VI32 sum) {
  return hn::SumOfMulQuadAccumulate(DI32(), weights, activations, sum);
}

#endif  // HWY_TARGET == HWY_SCALAR

#if LANEWISE_PAIRWISE

using DI16 = hn::Repartition<int16_t, DF>;
using VI16 = hn::Vec<DI16>;

// Sums of two products each, in 16 bits: fits for weights up to 127. kSigned:
// weights are 128 too large. 255 · 127 · 2 does not fit; 128 · 127 · 2, with
// the sign of the weight on the activation, does.
template <bool kSigned>
HWY_INLINE VI16 PairProducts(Quads weights, hn::Vec<DI8> activations) {
  if constexpr (kSigned) {
    const auto w = hn::BitCast(DI8(), hn::Xor(weights, hn::Set(DU8(), 0x80)));
    return hn::SatWidenMulPairwiseAdd(
        DI16(), hn::BitCast(DU8(), hn::Abs(w)),
        hn::IfNegativeThenNegOrUndefIfZero(w, activations));
  } else {
    return hn::SatWidenMulPairwiseAdd(DI16(), weights, activations);
  }
}

HWY_INLINE VI32 WidenPairs(VI16 pairs) {
  return hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(DI16(), 1));
}

#endif  // LANEWISE_PAIRWISE

// 4-bit quad kQuad of a block, see matmul_layout.h.
template <size_t kQuad>
HWY_INLINE Quads NibbleQuads(const uint8_t* q, size_t offset) {
  return Bits < kQuad < 4 ? 0 : 4,
         15 > (LoadQuads(q + kQuad % 4 * kQuadBytes + offset));
}

// 8-bit integer scales as float.
template <class T>
HWY_INLINE VF LoadScales(const T* scales) {
  const hn::Rebind<T, DF> d8;
  return hn::ConvertTo(DF(), hn::PromoteTo(DI32(), hn::LoadU(d8, scales)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_MATMUL_QUADS_INL_H_
