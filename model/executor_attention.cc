// Attention sublayers of the forward pass.
#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "model/executor.h"
#include "simd/attention.h"
#include "simd/norm.h"
#include "simd/rope.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Biases of relative positions, which depend on the distance alone.
class DistanceScoreBias : public ScoreBias {
 public:
  DistanceScoreBias(const DistanceBias& table,
                    absl::Span<const AttentionSequence> sequences)
      : table_(table),
        far_(static_cast<int64_t>(table.max_distance)),
        sequences_(sequences) {}

  void Fill(size_t sequence, size_t head, size_t row, size_t first_key,
            float* bias) const override {
    const auto position =
        static_cast<int64_t>(sequences_[sequence].position + row);
    const float* values =
        table_.values.data() + head * (2 * table_.max_distance + 1);
    int64_t distance = static_cast<int64_t>(first_key) - position;
    for (size_t j = 0; j < kKeysPerPage; ++j, ++distance) {
      bias[j] = values[std::clamp(distance, -far_, far_) + far_];
    }
  }

 private:
  const DistanceBias& table_;
  const int64_t far_;
  const absl::Span<const AttentionSequence> sequences_;
};

}  // namespace

// Normalizes each query and key head of one row in place.
void Executor::NormHeads(const AttentionSpec& spec, const LayerWeights& weights,
                         float* row) const {
  const NormSpec& norm = spec.qk_norm->norm;
  const size_t step = spec.qk_norm->per_head ? spec.head_dim : 0;
  for (size_t head = 0; head < spec.heads + spec.kv_heads; ++head) {
    float* x = row + head * spec.head_dim;
    const float* weight =
        head < spec.heads
            ? weights.query_norm.data() + head * step
            : weights.key_norm.data() + (head - spec.heads) * step;
    if (norm.kind == NormKind::kRmsNorm) {
      RmsNorm(context_.target(), x, weight, norm.eps, spec.head_dim, x);
    } else {
      LayerNorm(context_.target(), x, weight, nullptr, norm.eps, spec.head_dim,
                x);
    }
  }
}

// What happens to the queries, keys and values of row `index` of the batch
// before attention. Query and key heads lie one after the other.
void Executor::PrepareQkv(size_t layer, float* row, size_t index) {
  const AttentionSpec& spec = model_.spec().layers[layer].attention;
  if (spec.qkv_clip > 0.0f) {
    const size_t floats =
        spec.query_width() + spec.key_width() + spec.value_width();
    for (size_t i = 0; i < floats; ++i) {
      row[i] = std::clamp(row[i], -spec.qkv_clip, spec.qkv_clip);
    }
  }
  if (spec.qk_norm.has_value()) {
    NormHeads(spec, model_.layer_weights(layer), row);
  }
  if (spec.rope.has_value()) {
    const RopeSpec& rope = model_.spec().ropes[*spec.rope];
    const size_t at =
        rope_offsets_[*spec.rope] + index * model_.rope(*spec.rope).half();
    ApplyRope(context_.target(), row, spec.heads + spec.kv_heads, spec.head_dim,
              rope.rotary_dim, rope.pairing, cos_.get() + at, sin_.get() + at);
  }
}

void Executor::RunAttention(size_t layer, absl::Span<const Entry> batch,
                            const float* input) {
  const AttentionSpec& attention = model_.spec().layers[layer].attention;
  const LayerWeights& weights = model_.layer_weights(layer);
  const size_t width = model_.spec().width;
  const size_t query = attention.query_width(), key = attention.key_width();
  const size_t stride = query + key + attention.value_width();
  const size_t out_stride = attention.output_width();

  Project(weights.qkv, {input, width, rows_, width}, qkv_.get(), stride, false);
  ForRows(rows_, [&](size_t row) {
    PrepareQkv(layer, qkv_.get() + row * stride, row);
  });

  const KvPagePool& pool =
      transient_pool_ != nullptr ? *transient_pool_ : batch[0].cache->pool();
  const KvShape& shape = pool.layer_shape(layer);
  sequences_.clear();
  size_t row = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    const size_t rows = RowsOf(batch[i]);
    if (rows == 0) continue;
    const KvCache& cache =
        transient_pool_ != nullptr ? transient_[i] : *batch[i].cache;
    float* qkv = qkv_.get() + row * stride;
    const size_t position = cache.length();
    StoreKv(context_, shape, cache.layer(layer), position, rows, qkv + query,
            stride, qkv + query + key, stride);
    sequences_.push_back({qkv, stride, attended_.get() + row * out_stride,
                          out_stride, rows, position, position + rows,
                          cache.layer(layer)});
    row += rows;
  }
  AttentionParams params = ParamsOf(attention, shape, weights);
  const DistanceScoreBias bias(model_.distance_bias(), sequences_);
  if (attention.relative_bias.has_value()) params.bias = &bias;
  if (attention.disentangled.has_value()) {
    relative_scores_.Compute(context_, attention, model_.relative_positions(),
                             model_.relative_projection(layer),
                             {qkv_.get(), stride, rows_}, sequences_,
                             &activations_);
    params.bias = &relative_scores_;
  }
  Attend(layer, false, params);
}

AttentionParams Executor::ParamsOf(const AttentionSpec& spec,
                                   const KvShape& shape,
                                   const LayerWeights& weights) const {
  AttentionParams params{};
  params.heads = spec.heads;
  params.kv = shape;
  params.scale = spec.scale;
  params.causal = spec.causal;
  params.window = spec.window;
  params.softcap = spec.softcap;
  if (!spec.slopes.empty()) params.alibi_slopes = spec.slopes.data();
  if (spec.sinks) params.sinks = weights.sinks.data();
  return params;
}

// Attention of sequences_.
void Executor::Attend(size_t layer, bool cross, const AttentionParams& params) {
  if (options_.attention_observer) {
    options_.attention_observer({layer, cross, &params, sequences_});
  }
  float* scratch =
      Scratch(AttentionScratchFloats(context_, params, sequences_));
  Attention(context_, params, sequences_, scratch);
}

absl::Status Executor::ReserveTransient(absl::Span<const Entry> batch) {
  while (transient_.size() < batch.size()) {
    transient_.emplace_back(transient_pool_);
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(transient_[i].Reserve(RowsOf(batch[i])));
  }
  const ModelSpec& spec = model_.spec();
  if (spec.layers.front().attention.disentangled.has_value()) {
    return relative_scores_.Reserve(spec, rows_);
  }
  return absl::OkStatus();
}

void Executor::RunCrossAttention(size_t layer, absl::Span<const Entry> batch,
                                 const float* input) {
  const AttentionSpec& attention = model_.spec().layers[layer].cross->attention;
  const LayerWeights& weights = model_.layer_weights(layer);
  const size_t width = model_.spec().width;
  const size_t stride = attention.query_width();
  const size_t out_stride = attention.output_width();
  Project(weights.cross.query, {input, width, rows_, width}, qkv_.get(), stride,
          false);
  sequences_.clear();
  size_t row = 0;
  for (const Entry& entry : batch) {
    const size_t rows = RowsOf(entry);
    if (rows == 0) continue;
    sequences_.push_back({qkv_.get() + row * stride, stride,
                          attended_.get() + row * out_stride, out_stride, rows,
                          0, entry.memory->length(),
                          entry.memory->layer(layer)});
    row += rows;
  }
  Attend(
      layer, true,
      ParamsOf(attention, batch[0].memory->pool().layer_shape(layer), weights));
}

absl::Status Executor::FillMemory(absl::Span<const float> rows,
                                  KvCache* memory) {
  const ModelSpec& spec = model_.spec();
  if (spec.encoder.empty()) {
    return absl::InvalidArgumentError(
        "memory: expected a model with cross-attention");
  }
  const ScopedFloatEnvironment environment;
  const size_t width = spec.encoder.front().width;
  if (rows.size() % width != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("memory: expected whole rows of ", width,
                     " values, found ", rows.size(), " values"));
  }
  const size_t count = rows.size() / width;
  const size_t first = memory->length();
  LANEWISE_RETURN_IF_ERROR(memory->Reserve(first + count));
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    if (!spec.layers[layer].cross.has_value()) continue;
    const AttentionSpec& attention = spec.layers[layer].cross->attention;
    const size_t key = attention.key_width();
    const size_t stride = key + attention.value_width();
    for (size_t done = 0; done < count; done += options_.max_rows) {
      const size_t chunk = std::min(options_.max_rows, count - done);
      Project(model_.layer_weights(layer).cross.key_value,
              {rows.data() + done * width, width, chunk, width}, qkv_.get(),
              stride, false);
      StoreKv(context_, memory->pool().layer_shape(layer), memory->layer(layer),
              first + done, chunk, qkv_.get(), stride, qkv_.get() + key,
              stride);
    }
  }
  memory->Advance(count);
  return absl::OkStatus();
}

}  // namespace lanewise
