// Normalization of rows: LayerNorm (Ba et al., arXiv:1607.06450) and RMSNorm
// (Zhang & Sennrich, arXiv:1910.07467). Sums run in the 16 virtual lanes of
// docs/design.md, section 2.
#ifndef LANEWISE_SIMD_NORM_H_
#define LANEWISE_SIMD_NORM_H_

#include <cstddef>

#include "simd/target.h"

namespace lanewise {

// out[i] = x[i] * (1 / sqrt(mean(x²) + eps)) * weight[i], i < width. weight
// null: not multiplied. out may be x.
void RmsNorm(const Target& target, const float* x, const float* weight,
             float eps, size_t width, float* out);

// out[i] = (x[i] - mean) * (1 / sqrt(mean((x - mean)²) + eps)) * weight[i] +
// bias[i]. Two passes; the last product is fused with the sum when both weight
// and bias are there. Either may be null. out may be x.
void LayerNorm(const Target& target, const float* x, const float* weight,
               const float* bias, float eps, size_t width, float* out);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_NORM_H_
