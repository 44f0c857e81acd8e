// Kernel templates of the matrix product, included by matmul_*.cc after
// highway.h. A weight format is a policy class (see matmul_quantized-inl.h and
// matmul_float.cc); the tiles, the walk over k and the epilogue are here.
#if defined(LANEWISE_SIMD_MATMUL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_MATMUL_INL_H_
#undef LANEWISE_SIMD_MATMUL_INL_H_
#else
#define LANEWISE_SIMD_MATMUL_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <utility>

#include "hwy/highway.h"
#include "simd/matmul_layout.h"

// A lambda that holds vectors and must vanish into its caller.
#undef LANEWISE_LAMBDA
#if HWY_COMPILER_MSVC
#define LANEWISE_LAMBDA
#else
#define LANEWISE_LAMBDA HWY_ATTR __attribute__((always_inline))
#endif

// Vectors without a size at compile time (for SVE even where it is known).
#undef LANEWISE_SIZELESS
#if HWY_HAVE_SCALABLE || HWY_TARGET_IS_SVE
#define LANEWISE_SIZELESS 1
#else
#define LANEWISE_SIZELESS 0
#endif

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes run over the columns of a panel; narrower vectors take several.
using DF = hn::CappedTag<float, kPanelColumns>;
using DI32 = hn::RebindToSigned<DF>;
using DU32 = hn::RebindToUnsigned<DF>;
using VF = hn::Vec<DF>;
using VI32 = hn::Vec<DI32>;

// Rows and vectors of the largest register tile. Sizeless vectors cannot be in
// arrays: on such targets a tile is a single vector.
#if LANEWISE_SIZELESS
constexpr size_t kTileRows = 1, kTileVectors = 1;

template <class V, size_t kCount>
using VectorTile = V;

template <class V>
HWY_INLINE V& At(V& tile, size_t) {
  return tile;
}
#else
constexpr size_t kPanelVectors = kPanelColumns / HWY_MAX_LANES_D(DF);
constexpr size_t kTileRows = kPanelVectors == 1 ? 8 : 4;
constexpr size_t kTileVectors = HWY_MIN(kPanelVectors, 2);

template <class V, size_t kCount>
using VectorTile = V[kCount];

template <class V, size_t kCount>
HWY_INLINE V& At(V (&tile)[kCount], size_t index) {
  return tile[index];
}
#endif

template <class Function, size_t... kIndices>
HWY_INLINE void UnrollIndices(Function&& function,
                              std::index_sequence<kIndices...>) {
  (function(std::integral_constant<size_t, kIndices>()), ...);
}

// Calls function(0) … function(kCount - 1) with compile-time indices.
template <size_t kCount, class Function>
HWY_INLINE void Unroll(Function&& function) {
  UnrollIndices(std::forward<Function>(function),
                std::make_index_sequence<kCount>());
}

// f32 from 16 bits of a half each, exactly.
HWY_INLINE VF LoadHalves(const uint16_t* halves) {
  const DF d;
  const hn::Rebind<hwy::float16_t, DF> dh;
  const hn::Rebind<uint16_t, DF> du;
  return hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(du, halves)));
}

// Sums of a tile, between registers and the buffer of RunPanel; `sums` is at
// the tile's first row.
template <size_t kRows, size_t kVectors>
HWY_INLINE void LoadTile(const float* sums, size_t column,
                         VectorTile<VF, kRows * kVectors>& tile) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  Unroll<kRows * kVectors>([&](auto t) LANEWISE_LAMBDA {
    At(tile, t) = hn::Load(
        d, sums + t / kVectors * kPanelColumns + column + t % kVectors * lanes);
  });
}

template <size_t kRows, size_t kVectors>
HWY_INLINE void StoreTile(VectorTile<VF, kRows * kVectors>& tile, size_t column,
                          float* sums) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  Unroll<kRows * kVectors>([&](auto t) LANEWISE_LAMBDA {
    hn::Store(
        At(tile, t), d,
        sums + t / kVectors * kPanelColumns + column + t % kVectors * lanes);
  });
}

// Columns [column, column + lanes) of one row of the output, from its finished
// sum: c + (sum + bias).
HWY_INLINE void StoreVector(DF d, const PanelProduct& p, const float* sums,
                            size_t column, float* c) {
  VF value = hn::Load(d, sums + column);
  if (p.bias != nullptr) {
    value = hn::Add(value, hn::LoadU(d, p.bias + column));
  }
  if (p.accumulate) value = hn::Add(hn::LoadU(d, c + column), value);
  hn::StoreU(value, d, c + column);
}

HWY_INLINE void StoreSums(const PanelProduct& p, const float* sums) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  for (size_t row = 0; row < p.rows; ++row, sums += kPanelColumns) {
    float* c = p.c + row * p.ldc;
    size_t column = 0;
    for (; column + lanes <= p.columns; column += lanes) {
      StoreVector(d, p, sums, column, c);
    }
    for (; column < p.columns; ++column) {
      float value = sums[column];
      if (p.bias != nullptr) value += p.bias[column];
      c[column] = p.accumulate ? c[column] + value : value;
    }
  }
}

// Kernel::Tile<kRows, kVectors>(p, row, column, begin, end, sums): adds k units
// [begin, end) to kRows rows of `sums` ([rows][16]) at `column`.
template <class Kernel, size_t kRows>
HWY_INLINE void RunRows(const PanelProduct& p, size_t row, size_t begin,
                        size_t end, float* sums) {
  const DF d;
  const size_t step = hn::Lanes(d) * kTileVectors;
  for (size_t column = 0; column < kPanelColumns; column += step) {
    Kernel::template Tile<kRows, kTileVectors>(p, row, column, begin, end,
                                               sums + row * kPanelColumns);
  }
}

// One panel times p.rows rows. With more rows than a tile, k is walked in
// chunks of Kernel::kChunk units, which stay in the first-level cache; the sums
// wait in memory meanwhile, which changes no bit.
template <class Kernel>
HWY_INLINE void RunPanel(const PanelProduct& p) {
  HWY_ALIGN float sums[kMaxTaskRows * kPanelColumns];
  std::memset(sums, 0, p.rows * kPanelColumns * sizeof(float));
  const size_t units = Kernel::Units(p.k);
  const size_t chunk = p.rows > kTileRows ? Kernel::kChunk : units;
  for (size_t begin = 0; begin < units; begin += chunk) {
    const size_t end = std::min(units, begin + chunk);
    size_t row = 0;
    for (; row + kTileRows <= p.rows; row += kTileRows) {
      RunRows<Kernel, kTileRows>(p, row, begin, end, sums);
    }
#if !LANEWISE_SIZELESS
    if constexpr (kTileRows > 4) {
      if (row + 4 <= p.rows) {
        RunRows<Kernel, 4>(p, row, begin, end, sums);
        row += 4;
      }
    }
    if (row + 2 <= p.rows) {
      RunRows<Kernel, 2>(p, row, begin, end, sums);
      row += 2;
    }
    if (row < p.rows) RunRows<Kernel, 1>(p, row, begin, end, sums);
#endif
  }
  StoreSums(p, sums);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_MATMUL_INL_H_
