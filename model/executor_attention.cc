// Attention sublayers of the forward pass.
#include <algorithm>

#include "model/executor.h"
#include "simd/attention.h"
#include "simd/norm.h"
#include "simd/rope.h"

namespace lanewise {

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
    NormHeads(spec, model_.weights().layers[layer], row);
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
  const LayerWeights& weights = model_.weights().layers[layer];
  const size_t width = model_.spec().width;
  const size_t query = attention.query_width(), key = attention.key_width();
  const size_t stride = query + key + attention.value_width();
  const size_t out_stride = attention.output_width();

  Project(weights.qkv, {input, width, rows_, width}, qkv_.get(), stride, false);
  ForRows(rows_, [&](size_t row) {
    PrepareQkv(layer, qkv_.get() + row * stride, row);
  });

  AttentionParams params{};
  params.heads = attention.heads;
  params.kv = batch[0].cache->pool().layer_shape(layer);
  params.scale = attention.scale;
  params.causal = attention.causal;
  params.window = attention.window;
  params.softcap = attention.softcap;
  if (!attention.slopes.empty()) params.alibi_slopes = attention.slopes.data();
  if (attention.sinks) params.sinks = weights.sinks.data();
  sequences_.clear();
  size_t row = 0;
  for (const Entry& entry : batch) {
    const size_t rows = entry.ids.size();
    if (rows == 0) continue;
    float* qkv = qkv_.get() + row * stride;
    const size_t position = entry.cache->length();
    StoreKv(context_, params.kv, entry.cache->layer(layer), position, rows,
            qkv + query, stride, qkv + query + key, stride);
    sequences_.push_back({qkv, stride, attended_.get() + row * out_stride,
                          out_stride, rows, position, position + rows,
                          entry.cache->layer(layer)});
    row += rows;
  }
  float* scratch =
      Scratch(AttentionScratchFloats(context_, params, sequences_));
  Attention(context_, params, sequences_, scratch);
}

}  // namespace lanewise
