#include "simd/attention.h"

#include <algorithm>
#include <cstddef>

#include "simd/attention_block.h"

namespace lanewise {
namespace {

// Multiply-adds below which a second thread hardly pays: about 15 µs of one
// thread with AVX-512, a few times what it takes to start and join.
constexpr size_t kSerialWork = size_t{1} << 20;

size_t BlockRows(const AttentionParams& params) {
  const size_t group = params.heads / params.kv.kv_heads;
  return std::max<size_t>(1, kMaxBlockRows / group);
}

size_t CountBlocks(const AttentionParams& params,
                   const AttentionSequence& sequence) {
  const size_t rows = BlockRows(params);
  return (sequence.rows + rows - 1) / rows * params.kv.kv_heads;
}

size_t ThreadFloats(const AttentionParams& params, size_t rows) {
  const size_t flat = rows * (params.heads / params.kv.kv_heads);
  return RoundUpToLanes(flat * params.kv.qk_dim) +
         2 * AttentionState::Floats(flat, params.kv.v_dim);
}

// How a call is cut into tasks.
struct Plan {
  Plan(const AttentionParams& params,
       absl::Span<const AttentionSequence> sequences) {
    for (const AttentionSequence& sequence : sequences) {
      blocks += CountBlocks(params, sequence);
      rows = std::max(rows, std::min(sequence.rows, BlockRows(params)));
      segments = std::max(
          segments, (sequence.keys + kKeysPerSegment - 1) / kKeysPerSegment);
      work += sequence.rows * sequence.keys;
    }
    work *= params.heads * (params.kv.qk_dim + params.kv.v_dim);
  }

  size_t blocks = 0;    // of all sequences
  size_t rows = 0;      // largest number of rows in a block
  size_t segments = 0;  // largest number of segments of a sequence
  size_t work = 0;      // multiply-adds, without regard to masks
};

// Threads share a block by its segments while there are fewer blocks than this.
size_t EnoughBlocks(const Context& context) { return 2 * context.threads(); }

// Block `index` of the call.
AttentionBlock FindBlock(const AttentionParams& params,
                         absl::Span<const AttentionSequence> sequences,
                         size_t index) {
  AttentionBlock block = {};
  block.params = &params;
  size_t s = 0;
  for (; index >= CountBlocks(params, sequences[s]); ++s) {
    index -= CountBlocks(params, sequences[s]);
  }
  const AttentionSequence& sequence = sequences[s];
  const size_t block_rows = BlockRows(params);
  block.sequence = &sequence;
  block.sequence_index = s;
  block.kv_head = index % params.kv.kv_heads;
  block.first_row = index / params.kv.kv_heads * block_rows;
  block.rows = std::min(block_rows, sequence.rows - block.first_row);
  size_t begin, end, unused;
  block.VisibleKeys(sequence.position + block.first_row, &begin, &unused);
  block.VisibleKeys(sequence.position + block.first_row + block.rows - 1,
                    &unused, &end);
  if (begin < end) {
    block.segment_begin = begin / kKeysPerSegment;
    block.segment_end = (end + kKeysPerSegment - 1) / kKeysPerSegment;
  }
  return block;
}

}  // namespace

size_t AttentionScratchFloats(const Context& context,
                              const AttentionParams& params,
                              absl::Span<const AttentionSequence> sequences) {
  const Plan plan(params, sequences);
  const size_t group = params.heads / params.kv.kv_heads;
  const size_t shared = std::min(plan.blocks, EnoughBlocks(context));
  return context.threads() * ThreadFloats(params, plan.rows) +
         (plan.segments < 2
              ? 0
              : shared * plan.segments *
                    AttentionState::Floats(plan.rows * group, params.kv.v_dim));
}

void Attention(const Context& context, const AttentionParams& params,
               absl::Span<const AttentionSequence> sequences, float* scratch) {
  const Plan plan(params, sequences);
  const size_t group = params.heads / params.kv.kv_heads;
  const size_t thread_floats = ThreadFloats(params, plan.rows);
  const auto attend_block = [&](size_t index, size_t thread) {
    AttentionBlock block = FindBlock(params, sequences, index);
    block.scratch = scratch + thread * thread_floats;
    AttendBlock(context.target(), block);
  };
  if (plan.work < kSerialWork || context.threads() == 1) {
    for (size_t i = 0; i < plan.blocks; ++i) attend_block(i, 0);
    return;
  }
  if (plan.segments < 2 || plan.blocks >= EnoughBlocks(context)) {
    context.ParallelFor(plan.blocks, attend_block);
    return;
  }
  float* const partial = scratch + context.threads() * thread_floats;
  const size_t partial_floats =
      plan.segments *
      AttentionState::Floats(plan.rows * group, params.kv.v_dim);
  context.ParallelFor(plan.blocks * plan.segments, [&](size_t index,
                                                       size_t thread) {
    const size_t segment = index % plan.segments;
    AttentionBlock block = FindBlock(params, sequences, index / plan.segments);
    if (segment < block.segment_begin || segment >= block.segment_end) {
      return;
    }
    block.segment_begin = segment;
    block.segment_end = segment + 1;
    block.scratch = scratch + thread * thread_floats;
    block.partial = partial + index / plan.segments * partial_floats;
    AttendBlock(context.target(), block);
  });
  for (size_t i = 0; i < plan.blocks; ++i) {
    AttentionBlock block = FindBlock(params, sequences, i);
    block.scratch = scratch;
    block.partial = partial + i * partial_floats;
    if (block.segment_begin < block.segment_end) {
      MergeBlock(context.target(), block);
    } else {
      block.partial = nullptr;
      AttendBlock(context.target(), block);
    }
  }
}

}  // namespace lanewise
