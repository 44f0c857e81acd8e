// The forward pass: runs any ModelSpec over a ragged batch of sequences.
//
//   LANEWISE_ASSIGN_OR_RETURN(auto executor,
//                             Executor::Create(model, context, options));
//   KvCache cache(pool);
//   LANEWISE_RETURN_IF_ERROR(cache.Reserve(ids.size()));
//   Executor::Entry entry{ids, &cache, Executor::Logits::kLast};
//   LANEWISE_RETURN_IF_ERROR(executor->Forward({&entry, 1}, logits));
//
// A bidirectional stack (an encoder) needs no cache, but each sequence whole:
//
//   Executor::Entry entry{ids, nullptr, Executor::Logits::kAll};
//   Executor::Outputs outputs;
//   outputs.hidden = hidden;  // [ids, width]
//   LANEWISE_RETURN_IF_ERROR(executor->Forward({&entry, 1}, outputs));
//
// A decoder with cross-attention reads the encoder's rows from a cache of their
// keys and values, filled once:
//
//   KvCache memory(KvPagePool::CreateForMemory(spec, type, max_bytes));
//   LANEWISE_RETURN_IF_ERROR(decoder->FillMemory(hidden, &memory));
//   entry.memory = &memory;
//
// Rows of all sequences are packed, so padding costs nothing. Logits do not
// depend, in any bit, on which sequences share a batch, on how a prompt is cut
// into chunks, on the number of threads, or (with FMA) on the target.
#ifndef LANEWISE_MODEL_EXECUTOR_H_
#define LANEWISE_MODEL_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "hwy/aligned_allocator.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/position_tables.h"
#include "model/relative_scores.h"
#include "simd/attention.h"
#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {

class Executor {
 public:
  // An attention that is about to run: queries are ready, keys and values are
  // stored.
  struct AttentionCall {
    size_t layer;
    bool cross;  // to the encoder's rows
    const AttentionParams* params;
    absl::Span<const AttentionSequence> sequences;  // entries without rows
                                                    // have none
  };

  struct Options {
    ActivationType activations = ActivationType::kNative;
    size_t max_rows = 512;  // of one Forward, over all sequences
    // Of keys and values that live for one Forward only: bidirectional stacks.
    CacheType transient_cache = CacheType::kF32;

    // Where set, called with the residual stream of all rows: index 0 after
    // the embedding, i + 1 after layer i (before the final norm). [rows, width]
    std::function<void(size_t index, const float* rows)> observer;

    // Where set, called before every attention.
    std::function<void(const AttentionCall& call)> attention_observer;
  };

  // Rows that the head reads; where it pools (HeadSpec::pooling) every choice
  // but kNone gives one row a sequence.
  enum class Logits : uint8_t { kNone, kLast, kAll };

  // Tokens that continue one sequence: position of ids[0] is cache->length().
  // A bidirectional stack has a null cache.
  struct Entry {
    absl::Span<const int32_t> ids;
    KvCache* cache = nullptr;
    Logits logits = Logits::kLast;
    // Of the whole prompt, where ids are only a part of it or go on after it;
    // 0: ids end the prompt. Matters to RoPE that depends on the length: a row
    // of the prompt has the frequencies of that length, a later one those of
    // its position + 1.
    size_t prompt_length = 0;
    absl::Span<const int32_t> type_ids = {};  // of ids; empty: all 0
    // In place of ids: rows [rows, width] as the embedding would give them,
    // before scale, positions and norm.
    absl::Span<const float> vectors = {};
    const KvCache* memory = nullptr;  // for cross-attention
  };

  struct Outputs {
    // [rows asked for, spec.head_width()], in the order of the entries; may be
    // null when none are asked for.
    float* logits = nullptr;
    float* hidden = nullptr;  // [all rows, width] after the final norm; or null
  };

  // `model` and `context` must outlive the executor. RESOURCE_EXHAUSTED when
  // the row buffers do not fit into memory.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      const Model& model, const Context& context, Options options);

  // Runs all entries (each with another cache, capacity reserved) and advances
  // their caches. INVALID_ARGUMENT for ids outside the vocabulary, OUT_OF_RANGE
  // for positions beyond the model's or the cache's; then nothing has changed.
  // Allocates nothing once the attention scratch has grown to the context in
  // use.
  absl::Status Forward(absl::Span<const Entry> batch, const Outputs& outputs);
  absl::Status Forward(absl::Span<const Entry> batch, float* logits) {
    Outputs outputs;
    outputs.logits = logits;
    return Forward(batch, outputs);
  }

  // Appends the keys and values of encoder rows [rows, width of the encoder] to
  // `memory`, whose pool is KvPagePool::CreateForMemory of the model's spec.
  // RESOURCE_EXHAUSTED when the pool has no page left, INVALID_ARGUMENT for a
  // part of a row or a model without an encoder.
  absl::Status FillMemory(absl::Span<const float> rows, KvCache* memory);

  // Makes room for this many rows of one Forward. RESOURCE_EXHAUSTED when they
  // do not fit into memory; the executor is of no more use then.
  absl::Status Reserve(size_t rows);

  const Options& options() const { return options_; }
  const Model& model() const { return model_; }

 private:
  using Buffer = hwy::AlignedFreeUniquePtr<float[]>;

  // Rows in a buffer: [rows, cols], `stride` apart.
  struct RowView {
    const float* data;
    size_t stride;
    size_t rows;
    size_t cols;
  };

  struct RowShape {
    size_t rows;
    size_t width;
  };

  Executor(const Model& model, const Context& context, Options options);
  absl::Status AllocateBuffers();
  size_t RowsOf(const Entry& entry) const;
  absl::Status CheckEntry(const Entry& entry) const;
  absl::Status CheckTokens(const Entry& entry) const;
  absl::Status Check(absl::Span<const Entry> batch) const;
  void RunLayer(size_t layer, absl::Span<const Entry> batch);
  void RunFeedForward(size_t layer, const float* shared_input);
  void AddFeedForward(size_t layer);

  // executor_input.cc
  void Embed(absl::Span<const Entry> batch);
  void EmbedTokens(absl::Span<const Entry> batch, float* out);
  void AddPositions(absl::Span<const Entry> batch, float* rows);
  void AddTokenTypes(absl::Span<const Entry> batch, float* rows);
  void FillRope(absl::Span<const Entry> batch);

  // executor_convolution.cc
  void KeepConvolved();
  void AddConvolution(absl::Span<const Entry> batch);

  // executor_head.cc
  void RunHead(absl::Span<const Entry> batch, const Outputs& outputs);
  size_t GatherHeadRows(absl::Span<const Entry> batch, const float* rows);
  const float* TransformHeadRows(const float* rows, size_t count);
  void FinishLogits(size_t rows, float* logits);

  // executor_attention.cc: attended_ = attention of the rows `input` [rows_,
  // width], without the output projection.
  void RunAttention(size_t layer, absl::Span<const Entry> batch,
                    const float* input);
  void PrepareQkv(size_t layer, float* row, size_t index);
  absl::Status ReserveTransient(absl::Span<const Entry> batch);
  AttentionParams ParamsOf(const AttentionSpec& spec, const KvShape& shape,
                           const LayerWeights& weights) const;
  // attended_ = cross-attention of the rows `input`.
  void RunCrossAttention(size_t layer, absl::Span<const Entry> batch,
                         const float* input);
  void Attend(size_t layer, bool cross, const AttentionParams& params);
  void NormHeads(const AttentionSpec& spec, const LayerWeights& weights,
                 float* row) const;

  // executor_ffn.cc: the feed-forward part of the rows `input`, up to
  // the output projection (hidden_), or of a mixture with it (mixed_).
  void RunFfn(size_t layer, const float* input);
  void RunMoe(size_t layer, const float* input);
  void Route(size_t layer, const float* input);
  // hidden_ [in.rows, 2 * width or width]: its first `width` columns are the
  // activated rows.
  void Hidden(const FfnSpec& ffn, size_t width, const Projection& projection,
              const RowView& in);
  // mixed_ row = fma(weight, network(row), mixed_ row) for each of `routed`.
  struct Routed {
    size_t row;
    float weight;
  };
  void MixIn(const FfnSpec& ffn, size_t width, const FfnWeights& weights,
             const float* input, absl::Span<const Routed> routed);

  // `x` after the norm, in normed_; x itself without one.
  const float* NormedInput(const std::optional<NormSpec>& spec,
                           const NormWeights& weights);
  // out = norm(x), both [rows, width] without gaps; out may be x.
  void Norm(const NormSpec& spec, const NormWeights& weights, const float* x,
            const RowShape& shape, float* out);
  // out [in.rows, projection.rows()] (row stride ldc) = projection of `in`, or
  // with `accumulate` added to what is there.
  void Project(const Projection& projection, const RowView& in, float* out,
               size_t ldc, bool accumulate);
  // Adds a sublayer's output projection of `in` to the residual stream, with
  // the norms that follow it; a null projection: `in` is the output.
  void AddSublayer(const SublayerNorms& norms,
                   const SublayerNormWeights& norm_weights,
                   const Projection* projection, const RowView& in);
  // Calls task(row) for each row, in parallel when worth it.
  void ForRows(size_t rows, absl::FunctionRef<void(size_t)> task) const;
  float* Scratch(size_t floats);

  const Model& model_;
  const Context& context_;
  Options options_;
  size_t rows_ = 0;  // of the current batch

  // Row buffers [max_rows, …].
  Buffer residual_, normed_, qkv_, attended_, hidden_, cos_, sin_;
  // For mixtures of experts: the sum, an expert's rows in and out, the router's
  // logits.
  Buffer mixed_, expert_in_, expert_out_, router_;
  Buffer convolved_, kernel_rows_;  // of a convolution: rows kept and spread
  RelativeScores relative_scores_;
  Buffer scratch_;
  size_t scratch_floats_ = 0;
  std::vector<size_t> rope_offsets_;  // of each RopeSpec's table in cos_, sin_
  std::vector<float> rope_scratch_;   // [half()]
  std::vector<std::vector<Routed>> routes_;  // of each expert; rows ascend
  std::vector<Routed> shared_routes_;
  std::vector<AttentionSequence> sequences_;
  std::optional<SinusoidTable> sinusoids_;
  std::vector<float> sinusoid_row_;  // [input_width()]
  // Keys and values of one layer at a time, of each entry of a bidirectional
  // batch.
  std::shared_ptr<KvPagePool> transient_pool_;
  std::vector<KvCache> transient_;
  Activations activations_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_EXECUTOR_H_
