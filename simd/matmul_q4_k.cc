// Matrix products with Q4_K weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_q4_k.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/matmul_layout.h"
#include "simd/matmul_quantized-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

struct FormatQ4_K {
  using Panel = PanelQ4_K;
  static constexpr size_t kParts = 8, kHalves = 1;
  static constexpr int kMaxWeight = 15, kOffsetBits = -1;
  static constexpr bool kHasScale = true, kHasMin = true, kHasMinScale = true;

  template <size_t kQuad>
  static HWY_INLINE Quads Quad(size_t offset, const Panel& panel, size_t part) {
    return NibbleQuads<kQuad>(panel.parts[part].q, offset);
  }
  static HWY_INLINE VF Scale(size_t column, const Panel& panel) {
    return LoadHalves(panel.d + column);
  }
  template <size_t kHalf>
  static HWY_INLINE VF IntegerScale(size_t column, const Panel& panel,
                                    size_t part) {
    return LoadScales(panel.parts[part].scale + column);
  }
  static HWY_INLINE VF Min(size_t column, const Panel& panel) {
    return hn::Neg(LoadHalves(panel.dmin + column));
  }
  static HWY_INLINE VF MinScale(size_t column, const Panel& panel,
                                size_t part) {
    return LoadScales(panel.parts[part].min + column);
  }
};

void PanelQ4_KInt8Impl(const PanelProduct& p) {
  RunPanel<Int8Kernel<FormatQ4_K>>(p);
}
void PanelQ4_KF32Impl(const PanelProduct& p) {
  RunPanel<DecodedKernel<FormatQ4_K>>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(PanelQ4_KInt8Impl);
void PanelQ4_KInt8(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ4_KInt8Impl)(product);
}

HWY_EXPORT(PanelQ4_KF32Impl);
void PanelQ4_KF32(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ4_KF32Impl)(product);
}

}  // namespace lanewise
#endif  // HWY_ONCE
