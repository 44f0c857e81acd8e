// Attention by online softmax over a paged cache of keys and values (Milakov &
// Gimelshein, arXiv:1805.02867; Dao et al., FlashAttention, arXiv:2205.14135),
// in the fixed order of docs/design.md, section 2. That order decides every bit
// of a row, whichever call, batch, chunk or thread computes it.
//
// Keys of one sequence are numbered 0, 1, …; page p holds keys [64p, 64p + 64).
// Within a page, at an offset that the caller chooses (so one page can hold all
// layers), lie for each kv head:
//   K: panels of 16 keys, dimension-major: [64 / 16][qk_dim][16]
//   V: [64][v_dim]
#ifndef LANEWISE_SIMD_ATTENTION_H_
#define LANEWISE_SIMD_ATTENTION_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "simd/context.h"

namespace lanewise {

inline constexpr size_t kKeysPerPage =
    64;  // also the tile of the online softmax
inline constexpr size_t kKeysPerSegment =
    1024;  // segments are merged in ascending order

enum class CacheType : uint8_t { kF32, kF16, kBF16 };

inline size_t BytesOf(CacheType type) {
  return type == CacheType::kF32 ? 4 : 2;
}

// Shape of the keys and values of one layer.
struct KvShape {
  size_t kv_heads;
  size_t qk_dim;  // of queries and keys, per head
  size_t v_dim;   // of values, per head
  CacheType type;

  // Bytes that one layer takes in a page.
  size_t page_bytes() const {
    return kv_heads * kKeysPerPage * (qk_dim + v_dim) * BytesOf(type);
  }
};

// One layer of one sequence's cache. pages[p] + offset is where the layer's
// keys and values in page p begin; it is aligned to 64 bytes. Pages whose keys
// no row sees, such as those a window has left behind, may be null.
struct KvPages {
  absl::Span<uint8_t* const> pages;
  size_t offset;
};

// Rounds rows of new keys and values to the cache type and stores them as keys
// first, first + 1, … k: k[i * k_stride + h * qk_dim + d], i < rows, h <
// kv_heads; v likewise with v_dim.
void StoreKv(const Context& context, const KvShape& shape, const KvPages& kv,
             size_t first, size_t rows, const float* k, size_t k_stride,
             const float* v, size_t v_stride);

// What is added to scores beside the query and the key: relative positions by
// bucket (T5), disentangled terms (DeBERTa), padding inside a sequence.
class ScoreBias {
 public:
  virtual ~ScoreBias() = default;
  // bias[j], j < kKeysPerPage, for key first_key + j of row `row` of sequence
  // `sequence` of the call. −inf gives the key no weight, but its value is
  // still multiplied. Called from several threads, once per row, head and tile.
  virtual void Fill(size_t sequence, size_t head, size_t row, size_t first_key,
                    float* bias) const = 0;
};

// A score is dot · scale, then soft-cap, slope and bias in this order, each
// rounded once.
struct AttentionParams {
  size_t heads;  // a multiple of kv_heads; query head h reads kv head h /
                 // (heads / kv_heads)
  KvShape kv;
  float scale;           // of the scores
  bool causal = true;    // a row at position p sees keys <= p
  size_t window = 0;     // > 0: only keys > p - window; without causal also
                         // only keys < p + window
  float softcap = 0.0f;  // > 0: s = softcap * tanh(s / softcap)
  const float* alibi_slopes =
      nullptr;  // [heads]: s += slope * key_position (ALiBi, arXiv:2108.12409)
  const ScoreBias* bias = nullptr;  // added after the slopes
  // [heads]: one more logit in the denominator, without a value. Merged last,
  // as a segment of one key: m' = max(m, sink), l and o are multiplied by
  // exp(m − m'), then exp(sink − m') is added to lane 0 of l.
  const float* sinks = nullptr;
};

// The queries of one sequence in a batch.
struct AttentionSequence {
  const float* q;  // q[i * q_stride + h * qk_dim + d], i < rows
  size_t q_stride;
  float* out;  // out[i * out_stride + h * v_dim + d]
  size_t out_stride;
  size_t rows;
  size_t position;  // of row 0; row i is at position + i
  size_t keys;      // stored in the cache; with causal at least position + rows
  KvPages kv;
};

// Floats of scratch that Attention needs for sequences of these sizes. Enough
// too for fewer sequences with no more rows and keys each.
size_t AttentionScratchFloats(const Context& context,
                              const AttentionParams& params,
                              absl::Span<const AttentionSequence> sequences);

// A row that sees no key gives zeros. Masked values are never read as numbers.
// Allocates nothing: scratch has AttentionScratchFloats() floats, aligned to 64
// bytes.
void Attention(const Context& context, const AttentionParams& params,
               absl::Span<const AttentionSequence> sequences, float* scratch);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_ATTENTION_H_
