// Register-tiled inner loops of attention: scores of R rows against panels of
// 16 keys, and the weighted sum of values into R rows, as many at once as the
// registers hold. Included by attention-inl.h only, after highway.h.
#if defined(LANEWISE_SIMD_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_ATTENTION_TILES_INL_H_
#undef LANEWISE_SIMD_ATTENTION_TILES_INL_H_
#else
#define LANEWISE_SIMD_ATTENTION_TILES_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "simd/attention_block.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that a panel is a whole number of vectors.
using DF = hn::CappedTag<float, kAttentionLanes>;
using VF = hn::Vec<DF>;

HWY_INLINE VF LoadFloats(DF d, const float* p) { return hn::LoadU(d, p); }
// Exact, subnormals and infinities included: Highway's own for targets without
// an instruction turns infinities into 65536.
template <class VH>
HWY_INLINE VF Widen(DF d, VH halves) {
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_ARCH_ARM
  return hn::PromoteTo(d, halves);
#else
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<uint16_t, DF> dh;
  const auto bits = hn::PromoteTo(du, hn::BitCast(dh, halves));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFFu)));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto finite =
      hn::BitCast(du, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
  const auto special = hn::Or(magnitude, hn::Set(du, 0x7F800000u));
  const auto is_finite = hn::Lt(magnitude, hn::Set(du, 0x7C00u << 13));
  return hn::BitCast(d,
                     hn::Or(hn::IfThenElse(is_finite, finite, special), sign));
#endif
}
HWY_INLINE VF LoadFloats(DF d, const hwy::float16_t* p) {
  const hn::Rebind<hwy::float16_t, DF> dh;
  return Widen(d, hn::LoadU(dh, p));
}
HWY_INLINE VF LoadFloats(DF d, const hwy::bfloat16_t* p) {
  const hn::Rebind<hwy::bfloat16_t, DF> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, p));
}

// The first n < Lanes(d) elements, zeros behind; reads no further.
HWY_INLINE VF LoadFloatsN(DF d, const float* p, size_t n) {
  return hn::LoadN(d, p, n);
}
HWY_INLINE VF LoadFloatsN(DF d, const hwy::float16_t* p, size_t n) {
  return Widen(d, hn::LoadN(hn::Rebind<hwy::float16_t, DF>(), p, n));
}
HWY_INLINE VF LoadFloatsN(DF d, const hwy::bfloat16_t* p, size_t n) {
  return hn::PromoteTo(d, hn::LoadN(hn::Rebind<hwy::bfloat16_t, DF>(), p, n));
}

#if !HWY_HAVE_SCALABLE

constexpr size_t kLanes = hn::MaxLanes(DF());
constexpr size_t kPanelVectors = kAttentionLanes / kLanes;
// Accumulators that fit in the registers beside operands: AVX-512 and the
// 128-bit targets other than x86 have 32.
constexpr size_t kAccumulators =
    (kLanes == 16 || (!HWY_ARCH_X86 && kLanes == 4)) ? 24 : 12;
constexpr size_t kMaxTileRows =
    HWY_MIN(size_t{6}, HWY_MAX(size_t{1}, kAccumulators / kPanelVectors));

HWY_INLINE size_t Lanes() { return kLanes; }

// Panels that ScoreTile takes at once for R rows.
template <size_t R>
constexpr size_t ScorePanels() {
  return kAccumulators / (R * kPanelVectors) >= 4   ? 4
         : kAccumulators / (R * kPanelVectors) >= 2 ? 2
                                                    : 1;
}

// acc[r][c] = fma(row(r), column(c), acc[r][c]). The fewer of rows and columns
// stay in registers beside the accumulators, the others come one at a time:
// then 16 registers are enough.
template <size_t R, size_t C, class Row, class Column>
HWY_INLINE void Accumulate(Row row, Column column, VF (&acc)[R][C]) {
  if constexpr (R < C) {
    VF rows[R];
    HWY_UNROLL(8)
    for (size_t r = 0; r < R; ++r) rows[r] = row(r);
    HWY_UNROLL(16)
    for (size_t c = 0; c < C; ++c) {
      const VF value = column(c);
      HWY_UNROLL(8)
      for (size_t r = 0; r < R; ++r) {
        acc[r][c] = hn::MulAdd(rows[r], value, acc[r][c]);
      }
    }
  } else {
    VF columns[C];
    HWY_UNROLL(16)
    for (size_t c = 0; c < C; ++c) columns[c] = column(c);
    HWY_UNROLL(8)
    for (size_t r = 0; r < R; ++r) {
      const VF value = row(r);
      HWY_UNROLL(16)
      for (size_t c = 0; c < C; ++c) {
        acc[r][c] = hn::MulAdd(value, columns[c], acc[r][c]);
      }
    }
  }
}

// s[r * 64 + j] = scale · Σ q[d * R + r] · k[d][j], a chain over d ascending,
// for P panels of keys. Bound: P·16·R multiply-adds per d against P·16 loaded
// keys (and conversions) and R broadcasts: with R >= 2 the FMA units are the
// limit, with R = 1 the memory that holds K.
template <size_t R, size_t P, class T>
HWY_INLINE void ScoreTile(const float* HWY_RESTRICT q, const T* HWY_RESTRICT k,
                          size_t dims, VF scale, float* HWY_RESTRICT s) {
  constexpr size_t kVectors = P * kPanelVectors;
  const DF d;
  const size_t panel = dims * kAttentionLanes;
  VF acc[R][kVectors];
  HWY_UNROLL(8)
  for (size_t r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (size_t c = 0; c < kVectors; ++c) acc[r][c] = hn::Zero(d);
  }
  const auto load = [&](size_t i, size_t c) HWY_ATTR {
    return LoadFloats(d, k + c / kPanelVectors * panel + i * kAttentionLanes +
                             c % kPanelVectors * kLanes);
  };
  for (size_t i = 0; i < dims; ++i) {
    Accumulate<R, kVectors>([&](size_t r)
                                HWY_ATTR { return hn::Set(d, q[i * R + r]); },
                            [&](size_t c) HWY_ATTR { return load(i, c); }, acc);
  }
  HWY_UNROLL(8)
  for (size_t r = 0; r < R; ++r) {
    HWY_UNROLL(16)
    for (size_t c = 0; c < kVectors; ++c) {
      hn::StoreU(hn::Mul(acc[r][c], scale), d,
                 s + r * kKeysPerPage + c * kLanes);
    }
  }
}

// Columns of one call of ValueTile.
struct ValueColumns {
  size_t first;   // column of the first vector
  size_t last;    // of the last vector, which may overlap the one before
  size_t loaded;  // elements per vector; less than Lanes() only where v_dim is
};

// o[r][c] = o[r][c] · factor[r], then for keys j of [begin, end) ascending
// o[r][c] = fma(p[r * 64 + j], v[j][c], o[r][c]), for C vectors of columns kept
// in registers. Bound as for ScoreTile, with keys in the place of dimensions.
template <size_t R, size_t C, bool kShort, class T>
HWY_INLINE void ValueTile(const float* HWY_RESTRICT p,
                          const float* HWY_RESTRICT factor,
                          const T* HWY_RESTRICT v, size_t v_dim,
                          const ValueColumns& columns, size_t begin, size_t end,
                          float* HWY_RESTRICT o, size_t stride) {
  const DF d;
  VF acc[R][C];
  HWY_UNROLL(8)
  for (size_t r = 0; r < R; ++r) {
    const VF f = hn::Set(d, factor[r]);
    HWY_UNROLL(8)
    for (size_t c = 0; c < C; ++c) {
      acc[r][c] = hn::Mul(hn::LoadU(d, o + r * stride + c * kLanes), f);
    }
  }
  for (size_t j = begin; j < end; ++j) {
    const T* HWY_RESTRICT row = v + j * v_dim;
    const auto load = [&](size_t c) HWY_ATTR {
      if constexpr (kShort) return LoadFloatsN(d, row, columns.loaded);
      return LoadFloats(d, c + 1 == C ? row + columns.last
                                      : row + columns.first + c * kLanes);
    };
    Accumulate<R, C>(
        [&](size_t r) HWY_ATTR { return hn::Set(d, p[r * kKeysPerPage + j]); },
        load, acc);
  }
  HWY_UNROLL(8)
  for (size_t r = 0; r < R; ++r) {
    HWY_UNROLL(8)
    for (size_t c = 0; c < C; ++c) {
      hn::StoreU(acc[r][c], d, o + r * stride + c * kLanes);
    }
  }
}

#else  // HWY_HAVE_SCALABLE: vectors cannot be array elements, so up to four
       // rows in named registers, one vector of keys or columns at a time.

constexpr size_t kMaxTileRows = 4;

HWY_INLINE size_t Lanes() { return hn::Lanes(DF()); }

template <size_t R>
constexpr size_t ScorePanels() {
  return 1;
}

template <size_t R, size_t P, class T>
HWY_INLINE void ScoreTile(const float* HWY_RESTRICT q, const T* HWY_RESTRICT k,
                          size_t dims, VF scale, float* HWY_RESTRICT s) {
  static_assert(P == 1 && R <= 4, "see kMaxTileRows");
  const DF d;
  for (size_t c = 0; c < kAttentionLanes; c += Lanes()) {
    VF a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
    for (size_t i = 0; i < dims; ++i) {
      const VF keys = LoadFloats(d, k + i * kAttentionLanes + c);
      const float* HWY_RESTRICT query = q + i * R;
      a0 = hn::MulAdd(hn::Set(d, query[0]), keys, a0);
      if constexpr (R > 1) a1 = hn::MulAdd(hn::Set(d, query[1]), keys, a1);
      if constexpr (R > 2) a2 = hn::MulAdd(hn::Set(d, query[2]), keys, a2);
      if constexpr (R > 3) a3 = hn::MulAdd(hn::Set(d, query[3]), keys, a3);
    }
    hn::StoreU(hn::Mul(a0, scale), d, s + c);
    if constexpr (R > 1)
      hn::StoreU(hn::Mul(a1, scale), d, s + kKeysPerPage + c);
    if constexpr (R > 2)
      hn::StoreU(hn::Mul(a2, scale), d, s + 2 * kKeysPerPage + c);
    if constexpr (R > 3)
      hn::StoreU(hn::Mul(a3, scale), d, s + 3 * kKeysPerPage + c);
  }
}

struct ValueColumns {
  size_t first;
  size_t last;
  size_t loaded;
};

template <size_t R, size_t C, bool kShort, class T>
HWY_INLINE void ValueTile(const float* HWY_RESTRICT p,
                          const float* HWY_RESTRICT factor,
                          const T* HWY_RESTRICT v, size_t v_dim,
                          const ValueColumns& columns, size_t begin, size_t end,
                          float* HWY_RESTRICT o, size_t stride) {
  static_assert(C == 1 && R <= 4, "see kMaxTileRows");
  const DF d;
  VF a0 = hn::Mul(hn::LoadU(d, o), hn::Set(d, factor[0]));
  VF a1 = a0, a2 = a0, a3 = a0;
  if constexpr (R > 1)
    a1 = hn::Mul(hn::LoadU(d, o + stride), hn::Set(d, factor[1]));
  if constexpr (R > 2)
    a2 = hn::Mul(hn::LoadU(d, o + 2 * stride), hn::Set(d, factor[2]));
  if constexpr (R > 3)
    a3 = hn::Mul(hn::LoadU(d, o + 3 * stride), hn::Set(d, factor[3]));
  for (size_t j = begin; j < end; ++j) {
    const T* HWY_RESTRICT row = v + j * v_dim;
    const VF values = kShort ? LoadFloatsN(d, row, columns.loaded)
                             : LoadFloats(d, row + columns.last);
    const float* HWY_RESTRICT w = p + j;
    a0 = hn::MulAdd(hn::Set(d, w[0]), values, a0);
    if constexpr (R > 1)
      a1 = hn::MulAdd(hn::Set(d, w[kKeysPerPage]), values, a1);
    if constexpr (R > 2)
      a2 = hn::MulAdd(hn::Set(d, w[2 * kKeysPerPage]), values, a2);
    if constexpr (R > 3)
      a3 = hn::MulAdd(hn::Set(d, w[3 * kKeysPerPage]), values, a3);
  }
  hn::StoreU(a0, d, o);
  if constexpr (R > 1) hn::StoreU(a1, d, o + stride);
  if constexpr (R > 2) hn::StoreU(a2, d, o + 2 * stride);
  if constexpr (R > 3) hn::StoreU(a3, d, o + 3 * stride);
}

#endif  // HWY_HAVE_SCALABLE

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_ATTENTION_TILES_INL_H_
