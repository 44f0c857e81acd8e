// One vector out of the rows of a sequence, as sentence embeddings take it, and
// its scaling to length one (Reimers & Gurevych, arXiv:1908.10084).
//
//   std::vector<float> embedding(width);
//   Pool(target, RowPooling::kMean, {states, tokens, width, width},
//        embedding.data());
//   L2Normalize(target, embedding.data(), width);
//
// Sums over rows are one chain a column, rows ascending, so that lanes run over
// columns; with FMA the bits are the same on all targets. Rows are a sequence's
// own: padding never gets here.
#ifndef LANEWISE_SIMD_POOLING_H_
#define LANEWISE_SIMD_POOLING_H_

#include <cstddef>
#include <cstdint>

#include "simd/target.h"

namespace lanewise {

// x[r] is the row r of n.
enum class RowPooling : uint8_t {
  kFirst,           // x[0]
  kLast,            // x[n − 1]
  kMean,            // (x[0] + x[1] + …) / n
  kMax,             // the largest of each column; NaN where there is one
  kMeanSqrtLength,  // (x[0] + x[1] + …) / √n
  kWeightedMean,  // (1 · x[0] + 2 · x[1] + …) / (n (n + 1) / 2); products are
                  // fused with the sum
};

// [rows, width], `stride` apart.
struct PoolingRows {
  const float* data;
  size_t rows;  // below 2^24
  size_t width;
  size_t stride;
};

// out [width]; zeros when there is no row. out may be row 0.
void Pool(const Target& target, RowPooling pooling, const PoolingRows& x,
          float* out);

// x[i] /= max(√(x[0]² + x[1]² + …), 1e-12), i < n. The sum runs in the 16
// virtual lanes of docs/design.md, section 2.
void L2Normalize(const Target& target, float* x, size_t n);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_POOLING_H_
