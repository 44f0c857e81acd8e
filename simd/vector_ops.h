// Elementwise and row operations around the large kernels.
#ifndef LANEWISE_SIMD_VECTOR_OPS_H_
#define LANEWISE_SIMD_VECTOR_OPS_H_

#include <cstddef>
#include <cstdint>

#include "simd/target.h"

namespace lanewise {

// y[i] += x[i]
void AddTo(const Target& target, const float* x, size_t n, float* y);

// y[i] *= factor
void Scale(const Target& target, float factor, size_t n, float* y);

// x[i] = softcap * tanh(x[i] / softcap)
void SoftCap(const Target& target, float softcap, size_t n, float* x);

// x = softmax(x) in place, in the lanes of docs/design.md, section 2; all -inf
// gives zeros.
void Softmax(const Target& target, size_t n, float* x);

// Logarithm of the softmax's denominator: max + log(sum(exp(x - max))). -inf
// for all -inf.
double LogSumExp(const Target& target, const float* x, size_t n);

// Index of the largest element; the lowest one on ties. n > 0, no NaN.
size_t ArgMax(const Target& target, const float* x, size_t n);

// Whether all are finite.
bool AllFinite(const Target& target, const float* x, size_t n);

struct IndexedValue {
  float value;
  int32_t index;
};

// The min(k, n) largest elements, descending, the lower index first on ties;
// out has room for k. Returns how many. No NaN.
size_t TopK(const Target& target, const float* x, size_t n, size_t k,
            IndexedValue* out);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_VECTOR_OPS_H_
