// Matrix products with Q4_0 weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_q4_0.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/matmul_layout.h"
#include "simd/matmul_quantized-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

struct FormatQ4_0 {
  using Panel = PanelQ4_0;
  static constexpr size_t kParts = 1, kHalves = 1;
  static constexpr int kMaxWeight = 15, kOffsetBits = 3;
  static constexpr bool kHasScale = false, kHasMin = false;
  static constexpr bool kHasMinScale = false;

  template <size_t kQuad>
  static HWY_INLINE Quads Quad(size_t offset, const Panel& panel, size_t) {
    return NibbleQuads<kQuad>(panel.q, offset);
  }
  static HWY_INLINE VF Scale(size_t column, const Panel& panel) {
    return LoadHalves(panel.d + column);
  }
};

void PanelQ4_0Int8Impl(const PanelProduct& p) {
  RunPanel<Int8Kernel<FormatQ4_0>>(p);
}
void PanelQ4_0F32Impl(const PanelProduct& p) {
  RunPanel<DecodedKernel<FormatQ4_0>>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(PanelQ4_0Int8Impl);
void PanelQ4_0Int8(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ4_0Int8Impl)(product);
}

HWY_EXPORT(PanelQ4_0F32Impl);
void PanelQ4_0F32(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ4_0F32Impl)(product);
}

}  // namespace lanewise
#endif  // HWY_ONCE
