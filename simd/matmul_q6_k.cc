// Matrix products with Q6_K weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_q6_k.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/matmul_layout.h"
#include "simd/matmul_quantized-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

struct FormatQ6_K {
  using Panel = PanelQ6_K;
  static constexpr size_t kParts = 8, kHalves = 2;
  static constexpr int kMaxWeight = 63, kOffsetBits = 5;
  static constexpr bool kHasScale = true, kHasMin = false;
  static constexpr bool kHasMinScale = false;

  // Low 4 bits, and the 2-bit field moved to bits 4 and 5.
  template <size_t kQuad>
  static HWY_INLINE Quads Quad(size_t offset, const Panel& panel, size_t part) {
    const Quads low = NibbleQuads<kQuad>(panel.parts[part].low, offset);
    const Quads fields =
        LoadQuads(panel.parts[part].high + kQuad % 2 * kQuadBytes + offset);
    constexpr int kShift = static_cast<int>(kQuad / 2 * 2) - 4;
    return Merge(low, Bits<kShift, 0x30>(fields));
  }
  static HWY_INLINE VF Scale(size_t column, const Panel& panel) {
    return LoadHalves(panel.d + column);
  }
  template <size_t kHalf>
  static HWY_INLINE VF IntegerScale(size_t column, const Panel& panel,
                                    size_t part) {
    return LoadScales(panel.parts[part].scale[kHalf] + column);
  }
};

void PanelQ6_KInt8Impl(const PanelProduct& p) {
  RunPanel<Int8Kernel<FormatQ6_K>>(p);
}
void PanelQ6_KF32Impl(const PanelProduct& p) {
  RunPanel<DecodedKernel<FormatQ6_K>>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(PanelQ6_KInt8Impl);
void PanelQ6_KInt8(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ6_KInt8Impl)(product);
}

HWY_EXPORT(PanelQ6_KF32Impl);
void PanelQ6_KF32(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ6_KF32Impl)(product);
}

}  // namespace lanewise
#endif  // HWY_ONCE
