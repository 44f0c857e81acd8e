// Rotary position embedding (Su et al., arXiv:2104.09864).
#ifndef LANEWISE_SIMD_ROPE_H_
#define LANEWISE_SIMD_ROPE_H_

#include <cstddef>

#include "simd/target.h"

namespace lanewise {

enum class RopePairing : unsigned char {
  kHalves,       // x[i] with x[i + rotary_dim / 2]: Llama, NeoX as Hugging Face
                 // stores them
  kInterleaved,  // x[2i] with x[2i + 1]: GPT-J, GLM
};

// Rotates the first rotary_dim elements of each of `heads` heads of one row in
// place: x[h * head_stride + d]. cos and sin: [rotary_dim / 2], of the row's
// position. Each output is a·cos − b·sin or b·cos + a·sin, the first product
// rounded, the second fused.
void ApplyRope(const Target& target, float* x, size_t heads, size_t head_stride,
               size_t rotary_dim, RopePairing pairing, const float* cos,
               const float* sin);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_ROPE_H_
