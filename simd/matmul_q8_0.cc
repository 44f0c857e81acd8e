// Matrix products with Q8_0 weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/matmul_q8_0.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/matmul_layout.h"
#include "simd/matmul_quantized-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

struct FormatQ8_0 {
  using Panel = PanelQ8_0;
  static constexpr size_t kParts = 1, kHalves = 1;
  static constexpr int kMaxWeight = 255, kOffsetBits = 7;
  static constexpr bool kHasScale = false, kHasMin = false;
  static constexpr bool kHasMinScale = false;

  template <size_t kQuad>
  static HWY_INLINE Quads Quad(size_t offset, const Panel& panel, size_t) {
    return LoadQuads(panel.q + kQuad * kQuadBytes + offset);
  }
  static HWY_INLINE VF Scale(size_t column, const Panel& panel) {
    return LoadHalves(panel.d + column);
  }
};

void PanelQ8_0Int8Impl(const PanelProduct& p) {
  RunPanel<Int8Kernel<FormatQ8_0>>(p);
}
void PanelQ8_0F32Impl(const PanelProduct& p) {
  RunPanel<DecodedKernel<FormatQ8_0>>(p);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(PanelQ8_0Int8Impl);
void PanelQ8_0Int8(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ8_0Int8Impl)(product);
}

HWY_EXPORT(PanelQ8_0F32Impl);
void PanelQ8_0F32(const Target& target, const PanelProduct& product) {
  LANEWISE_DISPATCH(target, PanelQ8_0F32Impl)(product);
}

}  // namespace lanewise
#endif  // HWY_ONCE
