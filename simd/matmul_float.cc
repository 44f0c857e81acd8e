// Matrix products with floating-point weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_float.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/matmul-inl.h"
#include "simd/matmul_layout.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

// Weights at k units of `bytes` each, as float.
struct FormatF32 {
  static constexpr size_t kStep = 1, kBytes = 4 * kPanelColumns;
  template <size_t>
  static HWY_INLINE VF Weight(const uint8_t* unit, size_t column) {
    return hn::Load(DF(), reinterpret_cast<const float*>(unit) + column);
  }
};

struct FormatF16 {
  static constexpr size_t kStep = 1, kBytes = 2 * kPanelColumns;
  template <size_t>
  static HWY_INLINE VF Weight(const uint8_t* unit, size_t column) {
    return LoadHalves(reinterpret_cast<const uint16_t*>(unit) + column);
  }
};

// A pair of k; kIndex says which of the two comes kIndex-th. Products of bf16
// operands are exact, and the odd k comes first, as in x86's VDPBF16PS.
template <bool kOddFirst>
struct FormatBF16 {
  static constexpr size_t kStep = 2, kBytes = 4 * kPanelColumns;
  static constexpr size_t Element(size_t index) {
    return kOddFirst ? 1 - index : index;
  }
  template <size_t kElement>
  static HWY_INLINE VF Weight(const uint8_t* unit, size_t column) {
    const DU32 du;
    const auto pairs =
        hn::Load(du, reinterpret_cast<const uint32_t*>(unit) + column);
    if constexpr (kElement == 0) {
      return hn::BitCast(DF(), hn::ShiftLeft<16>(pairs));
    } else {
      return hn::BitCast(DF(), hn::And(pairs, hn::Set(du, 0xFFFF0000u)));
    }
  }
};

// One chain of fused multiply-adds over k. Bound: one vector multiply-add per
// 16 columns, row and k (with one row: the bytes of the weights).
template <class F>
struct FloatKernel {
  static constexpr size_t kChunk = 16384 / F::kBytes;

  static size_t Units(size_t k) { return (k + F::kStep - 1) / F::kStep; }

  static constexpr size_t Element(size_t index) {
    if constexpr (F::kStep == 1) {
      return 0;
    } else {
      return F::Element(index);
    }
  }

  template <size_t kRows, size_t kVectors>
  static HWY_INLINE void Tile(const PanelProduct& p, size_t row, size_t column,
                              size_t begin, size_t end, float* sums) {
    const DF d;
    const size_t lanes = hn::Lanes(d);
    VectorTile<VF, kRows * kVectors> acc;
    LoadTile<kRows, kVectors>(sums, column, acc);
    const float* x = p.x + row * p.x_stride;
    for (size_t unit = begin; unit < end; ++unit) {
      const uint8_t* weights = p.panel + unit * F::kBytes;
      Unroll<F::kStep>([&](auto index) LANEWISE_LAMBDA {
        constexpr size_t kElement = Element(decltype(index)::value);
        VectorTile<VF, kVectors> w;
        Unroll<kVectors>([&](auto v) LANEWISE_LAMBDA {
          At(w, v) = F::template Weight<kElement>(weights, column + v * lanes);
        });
        Unroll<kRows>([&](auto r) LANEWISE_LAMBDA {
          const VF a =
              hn::Set(d, x[r * p.x_stride + unit * F::kStep + kElement]);
          Unroll<kVectors>([&](auto v) LANEWISE_LAMBDA {
            VF& sum = At(acc, r * kVectors + v);
            sum = hn::MulAdd(a, At(w, v), sum);
          });
        });
      });
    }
    StoreTile<kRows, kVectors>(acc, column, sums);
  }
};

void PanelF32Impl(const PanelProduct& p) {
  RunPanel<FloatKernel<FormatF32>>(p);
}
void PanelF16Impl(const PanelProduct& p) {
  RunPanel<FloatKernel<FormatF16>>(p);
}
void PanelBF16Impl(const PanelProduct& p) {
  RunPanel<FloatKernel<FormatBF16<true>>>(p);
}
void PanelBF16F32Impl(const PanelProduct& p) {
  RunPanel<FloatKernel<FormatBF16<false>>>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(PanelF32Impl);
void PanelF32(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelF32Impl)(product);
}

HWY_EXPORT(PanelF16Impl);
void PanelF16(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelF16Impl)(product);
}

HWY_EXPORT(PanelBF16Impl);
void PanelBF16(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelBF16Impl)(product);
}

HWY_EXPORT(PanelBF16F32Impl);
void PanelBF16F32(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelBF16F32Impl)(product);
}

}  // namespace lanewise
#endif  // HWY_ONCE
