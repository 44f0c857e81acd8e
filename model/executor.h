// The forward pass: runs any ModelSpec over a ragged batch of sequences.
//
//   LANEWISE_ASSIGN_OR_RETURN(auto executor,
//                             Executor::Create(model, context, options));
//   KvCache cache(pool);
//   LANEWISE_RETURN_IF_ERROR(cache.Reserve(ids.size()));
//   Executor::Entry entry{ids, &cache, Executor::Logits::kLast};
//   LANEWISE_RETURN_IF_ERROR(executor->Forward({&entry, 1}, logits));
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
#include "simd/attention.h"
#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {

class Executor {
 public:
  struct Options {
    ActivationType activations = ActivationType::kNative;
    size_t max_rows = 512;  // of one Forward, over all sequences

    // Where set, called with the residual stream of all rows: index 0 after
    // the embedding, i + 1 after layer i (before the final norm). [rows, width]
    std::function<void(size_t index, const float* rows)> observer;
  };

  enum class Logits : uint8_t { kNone, kLast, kAll };

  // Tokens that continue one sequence: position of ids[0] is cache->length().
  struct Entry {
    absl::Span<const int32_t> ids;
    KvCache* cache;
    Logits logits = Logits::kLast;
    // Of the whole prompt, where ids are only a part of it or go on after it;
    // 0: ids end the prompt. Matters to RoPE that depends on the length: a row
    // of the prompt has the frequencies of that length, a later one those of
    // its position + 1.
    size_t prompt_length = 0;
  };

  // `model` and `context` must outlive the executor. RESOURCE_EXHAUSTED when
  // the row buffers do not fit into memory.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      const Model& model, const Context& context, Options options);

  // Runs all entries (each with another cache, capacity reserved) and advances
  // their caches. logits: [rows asked for, vocab_size], in the order of the
  // entries; may be null when none are asked for. INVALID_ARGUMENT for ids
  // outside the vocabulary, OUT_OF_RANGE for positions beyond the model's or
  // the cache's; then nothing has changed. Allocates nothing once the
  // attention scratch has grown to the context in use.
  absl::Status Forward(absl::Span<const Entry> batch, float* logits);

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

  Executor(const Model& model, const Context& context, Options options);
  absl::Status AllocateBuffers();
  absl::Status Check(absl::Span<const Entry> batch) const;
  void Embed(absl::Span<const Entry> batch);
  void AddPositions(absl::Span<const Entry> batch);
  void FillRope(absl::Span<const Entry> batch);
  void RunLayer(size_t layer, absl::Span<const Entry> batch);
  void RunHead(absl::Span<const Entry> batch, float* logits);
  size_t GatherHeadRows(absl::Span<const Entry> batch);

  // executor_attention.cc: attended_ = attention of the rows `input` [rows_,
  // width], without the output projection.
  void RunAttention(size_t layer, absl::Span<const Entry> batch,
                    const float* input);
  void PrepareQkv(size_t layer, float* row, size_t index);
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
  // out [rows, width] = norm(x [rows, width]); out may be x.
  void Norm(const NormSpec& spec, const NormWeights& weights, const float* x,
            size_t rows, float* out);
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
  Buffer scratch_;
  size_t scratch_floats_ = 0;
  std::vector<size_t> rope_offsets_;  // of each RopeSpec's table in cos_, sin_
  std::vector<float> rope_scratch_;   // [half()]
  std::vector<std::vector<Routed>> routes_;  // of each expert; rows ascend
  std::vector<Routed> shared_routes_;
  std::vector<AttentionSequence> sequences_;
  Activations activations_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_EXECUTOR_H_
