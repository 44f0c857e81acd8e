// Matrix products with packed weights: C = A · Bᵀ, for M = 1 (decoding) as for
// M = 512 (prefill).
//
//   // once, at load
//   LANEWISE_ASSIGN_OR_RETURN(PackedMatrix b,
//                             Pack(context, DType::kQ4_1, k, rows));
//   Activations a;
//   LANEWISE_RETURN_IF_ERROR(a.Reserve(max_m, max_k));
//   // once per input
//   a.Prepare(context, x, k, m, k,
//             RepresentationFor(ActivationType::kNative, b.type()));
//   // for each matrix that reads it
//   MatMul(context, a, ActivationType::kNative, b, c, ldc, {bias});
//
// Order of operations: docs/design.md, section 2. Each output is one chain over
// k, ascending; no bit depends on m, on the tiles, on the threads or (with FMA)
// on the target.
#ifndef LANEWISE_SIMD_MATMUL_H_
#define LANEWISE_SIMD_MATMUL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "hwy/aligned_allocator.h"
#include "simd/context.h"
#include "simd/types.h"

namespace lanewise {

// What activations are when they meet weights.
enum class ActivationType : uint8_t {
  kNative,  // int8 (with a scale per block of 32) for quantized weights, bf16
            // for bf16, f32 for f32 and f16
  kF32,     // f32 for every weight type; weights are decoded in registers
};

// Columns of the output (rows of the weights) per panel: lanes run over these.
inline constexpr size_t kPanelColumns = 16;

// Weights [n, k] in panels of kPanelColumns rows, k ascending within a panel.
// Owns its memory; the last panel is padded with zeros. Types without kernels
// of their own (Q5_0, Q2_K, …) are stored as the F32 they decode to.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  size_t rows() const { return rows_; }  // n
  size_t cols() const { return cols_; }  // k
  DType type() const { return type_; }   // of the panels
  size_t bytes() const { return bytes_; }
  const uint8_t* panel(size_t index) const {
    return data_.get() + index * panel_bytes_;
  }
  size_t panel_bytes() const { return panel_bytes_; }

 private:
  friend absl::StatusOr<PackedMatrix> Pack(
      const Context& context, DType type, size_t cols,
      absl::Span<const uint8_t* const> rows);

  DType type_ = DType::kF32;
  size_t rows_ = 0, cols_ = 0, bytes_ = 0, panel_bytes_ = 0;
  hwy::AlignedFreeUniquePtr<uint8_t[]> data_;
};

// Packs rows.size() rows of `cols` elements, each in the layout of `type` (as
// in a GGUF file, little-endian). The rows need not be adjacent nor aligned:
// fused and permuted matrices are lists of rows. INVALID_ARGUMENT when cols is
// not a multiple of the block size or a type holds no weights;
// RESOURCE_EXHAUSTED when memory is not to be had.
absl::StatusOr<PackedMatrix> Pack(const Context& context, DType type,
                                  size_t cols,
                                  absl::Span<const uint8_t* const> rows);

// Row `row` of the matrix as float, exactly as its type decodes: out [cols].
// For embeddings.
void DecodeRow(const PackedMatrix& matrix, size_t row, float* out);

// How activations are stored while they are multiplied.
enum class Representation : uint8_t { kF32, kBF16, kInt8 };

Representation RepresentationFor(ActivationType activations, DType weights);

// Activations [m, k] of a product, in one or more representations. Reused from
// call to call; memory only grows in Reserve.
class Activations {
 public:
  Activations();
  ~Activations();
  Activations(Activations&&) noexcept;
  Activations& operator=(Activations&&) noexcept;

  // Makes room for m rows of k. The only call that allocates.
  // RESOURCE_EXHAUSTED when memory is not to be had; there is no room then.
  absl::Status Reserve(size_t m, size_t k);

  // Takes rows x[i * stride + j], i < m, j < k. m and k within what was
  // reserved. Replaces what was there of that representation; with a new x,
  // prepare every representation that will be read.
  void Prepare(const Context& context, const float* x, size_t stride, size_t m,
               size_t k, Representation representation);

  size_t rows() const { return m_; }
  size_t cols() const { return k_; }

  // Storage, for MatMul only: see matmul.cc.
  struct Storage;
  const Storage& storage() const { return *storage_; }

 private:
  size_t m_ = 0, k_ = 0;
  std::unique_ptr<Storage> storage_;
};

// What happens to a finished sum before it is stored, in this order.
struct MatMulEpilogue {
  const float* bias = nullptr;  // [n], added
  bool accumulate = false;      // C is added to, not replaced: c + (sum + bias)
};

// c[i * ldc + j] for i < a.rows(), j < b.rows(): products of activation rows
// with weight rows. `a` must have been prepared in
// RepresentationFor(activations, b.type()), a.cols() == b.cols(). Allocates
// nothing.
void MatMul(const Context& context, const Activations& a,
            ActivationType activations, const PackedMatrix& b, float* c,
            size_t ldc, const MatMulEpilogue& epilogue = {});

}  // namespace lanewise

#endif  // LANEWISE_SIMD_MATMUL_H_
