// Kernels for quantized weights: int8 activations, or f32 ones with the weights
// decoded in registers. Order of operations: docs/design.md, section 2.
//
// A format is a policy class:
//   Panel            struct of matmul_layout.h
//   kParts           blocks of 32 in one Panel
//   kHalves          1, or 2 where 16 k share an integer scale
//   kMaxWeight       stored values are 0 … kMaxWeight
//   kOffsetBits      and 2^kOffsetBits above the weight; −1: equal to it
//   kHasScale, kHasMin, kHasMinScale
//   Quad<i>(offset, panel, part)   stored bytes of quad i, from `offset` on
//   Scale(column, panel)           float scale of the panel's blocks
//   IntegerScale<half>(column, panel, part)   integer scale, as float
//   Min, MinScale    likewise of the minimum, which is added: Min is signed
//
// Bound, per block of 32, 16 columns and row: 8 vectors of 64 multiplications
// in bytes and 2 to 6 float operations, so 57 % (Q4_K) to 80 % (Q4_0, Q8_0) of
// the peak of the byte dot product. With one row: the bytes of the panel, 16
// times those of a block in a file.
#if defined(LANEWISE_SIMD_MATMUL_QUANTIZED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LANEWISE_SIMD_MATMUL_QUANTIZED_INL_H_
#undef LANEWISE_SIMD_MATMUL_QUANTIZED_INL_H_
#else
#define LANEWISE_SIMD_MATMUL_QUANTIZED_INL_H_
#endif

#include "simd/matmul_quads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

template <class F>
struct Int8Kernel {
  static constexpr size_t kQuadsPerHalf = kQuads / F::kHalves;
  static constexpr size_t kChunk =
      HWY_MAX(size_t{1}, size_t{16384} / sizeof(typename F::Panel)) * F::kParts;

  static size_t Units(size_t k) { return k / kBlockSize; }

  // −offset · (sum of activations) of a half block.
  template <size_t kHalf>
  static HWY_INLINE VI32 Correction(const ActivationBlock& block) {
    if constexpr (F::kOffsetBits < 0) {
      return hn::Zero(DI32());
    } else {
      int32_t minus_sum = block.minus_sum;
      if constexpr (F::kHalves == 2) {
        minus_sum =
            kHalf == 0 ? block.minus_sum_lo : minus_sum - block.minus_sum_lo;
      }
      return hn::ShiftLeft<F::kOffsetBits>(hn::Set(DI32(), minus_sum));
    }
  }

#if LANEWISE_PAIRWISE
  // Quads whose pairwise sums may be added in 16 bits before they are widened.
  static constexpr size_t kGroup =
      HWY_MIN(kQuadsPerHalf, HWY_MAX(1, 32767 / (2 * 127 * F::kMaxWeight)));
  static constexpr bool kSigned = F::kMaxWeight > 127;
#else
  static constexpr bool kSigned = false;
#endif

  // w = quad kQuad of each vector.
  template <size_t kQuad, size_t kVectors>
  static HWY_INLINE void LoadWeights(const typename F::Panel& panel,
                                     size_t part, size_t column,
                                     VectorTile<Quads, kVectors>& w) {
    const size_t lanes = hn::Lanes(DF());
    Unroll<kVectors>([&](auto v) LANEWISE_LAMBDA {
      At(w, v) = F::template Quad<kQuad>((column + v * lanes) * 4, panel, part);
    });
  }

  // sum += products of quads [kFirst, kFirst + kQuadsPerHalf) of a block with
  // the activations of each row.
#if LANEWISE_PAIRWISE
  template <size_t kFirst, size_t kRows, size_t kVectors>
  static HWY_INLINE void AddHalf(const typename F::Panel& panel, size_t part,
                                 size_t column, const int8_t* q,
                                 size_t q_stride,
                                 VectorTile<VI32, kRows * kVectors>& sum) {
    Unroll<kQuadsPerHalf / kGroup>([&](auto group) LANEWISE_LAMBDA {
      constexpr size_t kGroupFirst = kFirst + decltype(group)::value * kGroup;
      VectorTile<VI16, kRows * kVectors> pairs;
      Unroll<kGroup>([&](auto i) LANEWISE_LAMBDA {
        constexpr size_t kQuad = kGroupFirst + decltype(i)::value;
        VectorTile<Quads, kVectors> w;
        LoadWeights<kQuad, kVectors>(panel, part, column, w);
        Unroll<kRows>([&](auto r) LANEWISE_LAMBDA {
          const auto a = BroadcastQuad(q + r * q_stride + kQuad * 4);
          Unroll<kVectors>([&](auto v) LANEWISE_LAMBDA {
            VI16& pair = At(pairs, r * kVectors + v);
            const VI16 products = PairProducts<kSigned>(At(w, v), a);
            if constexpr (decltype(i)::value == 0) {
              pair = products;
            } else {
              pair = hn::Add(pair, products);
            }
          });
        });
      });
      Unroll<kRows * kVectors>([&](auto t) LANEWISE_LAMBDA {
        At(sum, t) = hn::Add(At(sum, t), WidenPairs(At(pairs, t)));
      });
    });
  }
#else
  template <size_t kFirst, size_t kRows, size_t kVectors>
  static HWY_INLINE void AddHalf(const typename F::Panel& panel, size_t part,
                                 size_t column, const int8_t* q,
                                 size_t q_stride,
                                 VectorTile<VI32, kRows * kVectors>& sum) {
    Unroll<kQuadsPerHalf>([&](auto i) LANEWISE_LAMBDA {
      constexpr size_t kQuad = kFirst + decltype(i)::value;
      VectorTile<Quads, kVectors> w;
      LoadWeights<kQuad, kVectors>(panel, part, column, w);
      Unroll<kRows>([&](auto r) LANEWISE_LAMBDA {
        const auto a = BroadcastQuad(q + r * q_stride + kQuad * 4);
        Unroll<kVectors>([&](auto v) LANEWISE_LAMBDA {
          VI32& s = At(sum, r * kVectors + v);
          s = AddProducts(At(w, v), a, s);
        });
      });
    });
  }
#endif

  // total = P of the contract, in float: integers below 2^24 are exact, fused
  // or not.
  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void BlockProducts(
      const PanelProduct& p, const typename F::Panel& panel, size_t b,
      size_t row, size_t column, VectorTile<VF, kRows * kVectors>& total) {
    const DF d;
    const size_t part = b % F::kParts;
    const int8_t* q = p.q + row * p.q_stride + b * kBlockSize;
    const ActivationBlock* block = p.blocks + row * p.block_stride + b;
    Unroll<F::kHalves>([&](auto half) LANEWISE_LAMBDA {
      constexpr size_t kHalf = decltype(half)::value;
      VectorTile<VI32, kRows * kVectors> sum;
      Unroll<kRows>([&](auto r) LANEWISE_LAMBDA {
        const VI32 start = kSigned
                               ? hn::Zero(DI32())
                               : Correction<kHalf>(block[r * p.block_stride]);
        Unroll<kVectors>(
            [&](auto v) LANEWISE_LAMBDA { At(sum, r * kVectors + v) = start; });
      });
      AddHalf<kHalf * kQuadsPerHalf, kRows, kVectors>(panel, part, column, q,
                                                      p.q_stride, sum);
      Unroll<kVectors>([&](auto v) LANEWISE_LAMBDA {
        VF scale = hn::Zero(d);
        if constexpr (F::kHasScale) {
          scale = F::template IntegerScale<kHalf>(column + v * hn::Lanes(d),
                                                  panel, part);
        }
        Unroll<kRows>([&](auto r) LANEWISE_LAMBDA {
          const VF value = hn::ConvertTo(d, At(sum, r * kVectors + v));
          VF& out = At(total, r * kVectors + v);
          if constexpr (kHalf > 0) {
            out = hn::MulAdd(value, scale, out);
          } else if constexpr (F::kHasScale) {
            out = hn::Mul(value, scale);
          } else {
            out = value;
          }
        });
      });
    });
  }

  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void Tile(const PanelProduct& p, size_t row, size_t column,
                              size_t begin, size_t end, float* sums) {
    const DF d;
    const ActivationBlock* blocks = p.blocks + row * p.block_stride;
    VectorTile<VF, kRows * kVectors> acc;
    LoadTile<kRows, kVectors>(sums, column, acc);
    for (size_t b = begin; b < end; ++b) {
      const auto& panel =
          reinterpret_cast<const typename F::Panel*>(p.panel)[b / F::kParts];
      VectorTile<VF, kRows * kVectors> total;
      BlockProducts<kRows, kVectors>(p, panel, b, row, column, total);
      Unroll<kVectors>([&](auto v) LANEWISE_LAMBDA {
        const size_t at = column + v * hn::Lanes(d);
        const VF scale = F::Scale(at, panel);
        VF min = hn::Zero(d), min_scale = hn::Zero(d);
        if constexpr (F::kHasMin) min = F::Min(at, panel);
        if constexpr (F::kHasMinScale) {
          min_scale = F::MinScale(at, panel, b % F::kParts);
        }
        Unroll<kRows>([&](auto r) LANEWISE_LAMBDA {
          const ActivationBlock& block = blocks[r * p.block_stride + b];
          const VF a_scale = hn::Set(d, block.d);
          VF& sum = At(acc, r * kVectors + v);
          sum = hn::MulAdd(At(total, r * kVectors + v), hn::Mul(scale, a_scale),
                           sum);
          if constexpr (F::kHasMin) {
            VF s = hn::Set(d, block.sum);
            if constexpr (F::kHasMinScale) s = hn::Mul(s, min_scale);
            sum = hn::MulAdd(s, hn::Mul(min, a_scale), sum);
          }
        });
      });
    }
    StoreTile<kRows, kVectors>(acc, column, sums);
  }
};

// f32 activations: weights decoded exactly as by Traits().decode (a product of
// scales and integers is exact, a minimum is added with one rounding), one
// chain over k.
template <class F>
struct DecodedKernel {
  static constexpr size_t kChunk =
      HWY_MAX(size_t{1}, size_t{16384} / sizeof(typename F::Panel)) * F::kParts;

  static size_t Units(size_t k) { return k / kBlockSize; }

  // acc += x · w of quad kQuad, with scales of its columns.
  template <size_t kQuad, size_t kRows>
  static HWY_INLINE void AddQuad(const typename F::Panel& panel, size_t part,
                                 size_t column, VF scale, VF min,
                                 const float* x, size_t x_stride,
                                 VectorTile<VF, kRows>& acc) {
    const DF d;
    const Quads w = F::template Quad<kQuad>(column * 4, panel, part);
    Unroll<4>([&](auto i) LANEWISE_LAMBDA {
      constexpr size_t kByte = decltype(i)::value;
      VI32 integer = ByteOfLanes<kByte>(w);
      if constexpr (F::kOffsetBits >= 0) {
        integer =
            hn::Sub(integer, hn::Set(DI32(), 1 << HWY_MAX(F::kOffsetBits, 0)));
      }
      VF weight = hn::Mul(hn::ConvertTo(d, integer), scale);
      if constexpr (F::kHasMin) weight = hn::Add(weight, min);
      Unroll<kRows>([&](auto r) LANEWISE_LAMBDA {
        At(acc, r) = hn::MulAdd(hn::Set(d, x[r * x_stride + kQuad * 4 + kByte]),
                                weight, At(acc, r));
      });
    });
  }

  template <size_t kRows>
  static HWY_INLINE void TileVector(const PanelProduct& p, size_t row,
                                    size_t column, size_t begin, size_t end,
                                    float* sums) {
    const DF d;
    VectorTile<VF, kRows> acc;
    LoadTile<kRows, 1>(sums, column, acc);
    for (size_t b = begin; b < end; ++b) {
      const auto& panel =
          reinterpret_cast<const typename F::Panel*>(p.panel)[b / F::kParts];
      const size_t part = b % F::kParts;
      const float* x = p.x + row * p.x_stride + b * kBlockSize;
      VF min = hn::Zero(d);
      if constexpr (F::kHasMin) min = F::Min(column, panel);
      if constexpr (F::kHasMinScale) {
        min = hn::Mul(min, F::MinScale(column, panel, part));
      }
      Unroll<F::kHalves>([&](auto half) LANEWISE_LAMBDA {
        constexpr size_t kHalf = decltype(half)::value;
        VF scale = F::Scale(column, panel);
        if constexpr (F::kHasScale) {
          scale = hn::Mul(scale,
                          F::template IntegerScale<kHalf>(column, panel, part));
        }
        Unroll<kQuads / F::kHalves>([&](auto i) LANEWISE_LAMBDA {
          AddQuad<kHalf*(kQuads / F::kHalves) + decltype(i)::value, kRows>(
              panel, part, column, scale, min, x, p.x_stride, acc);
        });
      });
    }
    StoreTile<kRows, 1>(acc, column, sums);
  }

  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void Tile(const PanelProduct& p, size_t row, size_t column,
                              size_t begin, size_t end, float* sums) {
    const size_t lanes = hn::Lanes(DF());
    for (size_t v = 0; v < kVectors; ++v) {
      TileVector<kRows>(p, row, column + v * lanes, begin, end, sums);
    }
  }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#endif  // LANEWISE_SIMD_MATMUL_QUANTIZED_INL_H_
