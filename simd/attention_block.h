// What one task of Attention works on, and the layout of its scratch memory.
// Private to the target //simd:attention.
#ifndef LANEWISE_SIMD_ATTENTION_BLOCK_H_
#define LANEWISE_SIMD_ATTENTION_BLOCK_H_

#include <algorithm>
#include <cstddef>

#include "simd/attention.h"
#include "simd/target.h"

namespace lanewise {

// Virtual lanes of a softmax sum, and keys in a panel of K.
inline constexpr size_t kAttentionLanes = 16;

// (query row, query head) pairs that share one pass over the cache: enough to
// reuse a page from the first-level cache, few enough to give every thread
// work. Bits do not depend on it.
inline constexpr size_t kMaxBlockRows = 48;

inline size_t RoundUpToLanes(size_t n) {
  return (n + kAttentionLanes - 1) / kAttentionLanes * kAttentionLanes;
}

// The online softmax of up to `rows` rows over some keys:
// m [rows]: largest score, −inf while no key was seen;
// l [rows][16]: sums of exp(s − m) by lane;
// o [rows][stride]: sums of exp(s − m) · v, in whole vectors of the target.
struct AttentionState {
  static size_t Floats(size_t rows, size_t v_dim) {
    return RoundUpToLanes(rows) +
           rows * (kAttentionLanes + RoundUpToLanes(v_dim));
  }
  AttentionState(float* memory, size_t rows, size_t v_dim)
      : m(memory),
        l(memory + RoundUpToLanes(rows)),
        o(l + rows * kAttentionLanes),
        stride(RoundUpToLanes(v_dim)) {}

  float* m;
  float* l;
  float* o;
  size_t stride;
};

// Rows first_row … first_row + rows of one sequence for the query heads of one
// kv head, over segments [segment_begin, segment_end).
struct AttentionBlock {
  const AttentionParams* params;
  const AttentionSequence* sequence;
  size_t sequence_index;
  size_t kv_head;
  size_t first_row;
  size_t rows;
  size_t segment_begin;
  size_t segment_end;
  float* scratch;  // of the thread: ScratchFloats()
  // One AttentionState per segment of the block, when several threads share it;
  // null when this task does the whole block.
  float* partial;

  size_t group() const { return params->heads / params->kv.kv_heads; }
  size_t flat_rows() const { return rows * group(); }
  size_t state_floats() const {
    return AttentionState::Floats(flat_rows(), params->kv.v_dim);
  }
  // Keys [*begin, *end) that the row at `position` sees.
  void VisibleKeys(size_t position, size_t* begin, size_t* end) const {
    const size_t window = params->window;
    *end = sequence->keys;
    if (params->causal) {
      *end = std::min(*end, position + 1);
    } else if (window > 0) {
      *end = std::min(*end, position + window);
    }
    *begin = window > 0 && position + 1 > window ? position + 1 - window : 0;
    *begin = std::min(*begin, *end);
  }
};

// Does the block: writes its rows of the output, or with `partial` the states
// of its segments.
void AttendBlock(const Target& target, const AttentionBlock& block);

// Merges the states in `partial` in ascending order and writes the output.
void MergeBlock(const Target& target, const AttentionBlock& block);

// The new rows that StoreKv stores, from key `first` on.
struct KvRows {
  size_t first;
  size_t rows;
  const float* k;
  size_t k_stride;
  const float* v;
  size_t v_stride;
};

}  // namespace lanewise

#endif  // LANEWISE_SIMD_ATTENTION_BLOCK_H_
