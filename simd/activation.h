// Activation functions of feed-forward layers, elementwise.
#ifndef LANEWISE_SIMD_ACTIVATION_H_
#define LANEWISE_SIMD_ACTIVATION_H_

#include <cstddef>
#include <cstdint>

#include "simd/target.h"

namespace lanewise {

enum class Activation : uint8_t {
  kIdentity,
  kRelu,
  kReluSquared,
  kSilu,       // x · sigmoid(x)
  kGelu,       // 0.5 x (1 + erf(x / √2))
  kGeluTanh,   // 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))): "gelu_new",
               // "gelu_pytorch_tanh", "gelu_fast"
  kQuickGelu,  // x · sigmoid(1.702 x)
  kTanh,
  kSigmoid,
};

// x[i] = activation(x[i]), i < n. NaN stays NaN; -inf gives NaN where the
// formula is -inf · 0. Within a few units in the last place; the tails of the
// sigmoid forms add the rounding of the exponent.
void Activate(const Target& target, Activation activation, float* x, size_t n);

// out[i] = activation(gate[i]) * up[i], i < n. out may be gate or up.
void ActivateGated(const Target& target, Activation activation,
                   const float* gate, const float* up, size_t n, float* out);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_ACTIVATION_H_
