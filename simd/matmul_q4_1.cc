// Matrix products with Q4_1 weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_q4_1.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/matmul_layout.h"
#include "simd/matmul_quantized-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

struct FormatQ4_1 {
  using Panel = PanelQ4_1;
  static constexpr size_t kParts = 1, kHalves = 1;
  static constexpr int kMaxWeight = 15, kOffsetBits = -1;
  static constexpr bool kHasScale = false, kHasMin = true;
  static constexpr bool kHasMinScale = false;

  template <size_t kQuad>
  static HWY_INLINE Quads Quad(size_t offset, const Panel& panel, size_t) {
    return NibbleQuads<kQuad>(panel.q, offset);
  }
  static HWY_INLINE VF Scale(size_t column, const Panel& panel) {
    return LoadHalves(panel.d + column);
  }
  static HWY_INLINE VF Min(size_t column, const Panel& panel) {
    return LoadHalves(panel.m + column);
  }
};

void PanelQ4_1Int8Impl(const PanelProduct& p) {
  RunPanel<Int8Kernel<FormatQ4_1>>(p);
}
void PanelQ4_1F32Impl(const PanelProduct& p) {
  RunPanel<DecodedKernel<FormatQ4_1>>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(PanelQ4_1Int8Impl);
void PanelQ4_1Int8(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ4_1Int8Impl)(product);
}

HWY_EXPORT(PanelQ4_1F32Impl);
void PanelQ4_1F32(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ4_1F32Impl)(product);
}

}  // namespace lanewise
#endif  // HWY_ONCE
