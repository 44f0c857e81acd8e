#include "simd/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/activation.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"
#include "simd/elementwise-inl.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

// x · sigmoid(y) with one division.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TimesSigmoid(D d, V x, V y) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), Exp(d, hn::Neg(y))));
}

// max(x, 0), NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

// 0.5 (1 + tanh u) = sigmoid(2u), which does not cancel for negative u.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GeluTanh(D d, V x) {
  const V square = hn::Mul(x, x);
  const V factor = hn::MulAdd(square, hn::Set(d, 0.0713548163f),
                              hn::Set(d, 1.59576912f));  // √(8/π) (… , 1)
  return TimesSigmoid(d, x, hn::Mul(x, factor));
}

template <Activation kActivation, class D, class V = hn::Vec<D>>
HWY_INLINE V Apply(D d, V x) {
  switch (kActivation) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return Relu(d, x);
    case Activation::kReluSquared: {
      const V relu = Relu(d, x);
      return hn::Mul(relu, relu);
    }
    case Activation::kSilu:
      return TimesSigmoid(d, x, x);
    case Activation::kGelu:
      return hn::Mul(x, NormalCdf(d, x));
    case Activation::kGeluTanh:
      return GeluTanh(d, x);
    case Activation::kQuickGelu:
      return TimesSigmoid(d, x, hn::Mul(x, hn::Set(d, 1.702f)));
    case Activation::kTanh:
      return Tanh(d, x);
    case Activation::kSigmoid:
      return Sigmoid(d, x);
  }
  return x;
}

// out[i] = activation(gate[i]) * up[i]; without the factor when up is null.
template <Activation kActivation>
void Run(const float* gate, const float* up, size_t n, float* out) {
  const hn::ScalableTag<float> d;
  if (up == nullptr) {
    ForEachVector(d, n, out, [&](auto load) HWY_ATTR {
      return Apply<kActivation>(d, load(gate));
    });
  } else {
    ForEachVector(d, n, out, [&](auto load) HWY_ATTR {
      return hn::Mul(Apply<kActivation>(d, load(gate)), load(up));
    });
  }
}

void ActivateImpl(Activation activation, const float* gate, const float* up,
                  size_t n, float* out) {
  switch (activation) {
    case Activation::kIdentity:
      return Run<Activation::kIdentity>(gate, up, n, out);
    case Activation::kRelu:
      return Run<Activation::kRelu>(gate, up, n, out);
    case Activation::kReluSquared:
      return Run<Activation::kReluSquared>(gate, up, n, out);
    case Activation::kSilu:
      return Run<Activation::kSilu>(gate, up, n, out);
    case Activation::kGelu:
      return Run<Activation::kGelu>(gate, up, n, out);
    case Activation::kGeluTanh:
      return Run<Activation::kGeluTanh>(gate, up, n, out);
    case Activation::kQuickGelu:
      return Run<Activation::kQuickGelu>(gate, up, n, out);
    case Activation::kTanh:
      return Run<Activation::kTanh>(gate, up, n, out);
    case Activation::kSigmoid:
      return Run<Activation::kSigmoid>(gate, up, n, out);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {

HWY_EXPORT(ActivateImpl);

void Activate(const Target& target, Activation activation, float* x, size_t n) {
  LANEWISE_DISPATCH(target, ActivateImpl)(activation, x, nullptr, n, x);
}

void ActivateGated(const Target& target, Activation activation,
                   const float* gate, const float* up, size_t n, float* out) {
  LANEWISE_DISPATCH(target, ActivateImpl)(activation, gate, up, n, out);
}

}  // namespace lanewise
#endif  // HWY_ONCE
