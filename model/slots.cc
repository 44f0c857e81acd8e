#include "model/slots.h"

#include <optional>

namespace lanewise {
namespace {

bool HasNorm(const std::optional<NormSpec>& norm, bool bias) {
  return norm.has_value() && (bias ? norm->bias : norm->weight);
}

bool HasModelSlot(const ModelSpec& spec, Slot slot, bool bias) {
  switch (slot) {
    case Slot::kPositionEmbedding:
      return spec.positions.kind == PositionSpec::Kind::kLearned;
    case Slot::kEmbeddingIn:
    case Slot::kEmbeddingOut:
      return spec.embedding_width.has_value();
    case Slot::kEmbeddingNorm:
      return HasNorm(spec.embedding_norm, bias);
    case Slot::kFinalNorm:
      return HasNorm(spec.final_norm, bias);
    case Slot::kHead:
      return !bias || spec.head.bias;
    default:
      return true;
  }
}

bool HasAttentionSlot(const LayerSpec& layer, Slot slot, bool bias) {
  const AttentionSpec& attention = layer.attention;
  switch (slot) {
    case Slot::kAttentionInputNorm:
      return HasNorm(layer.attention_norms.input, bias);
    case Slot::kAttentionOutputNorm:
      return HasNorm(layer.attention_norms.output, bias);
    case Slot::kAttentionAfterNorm:
      return HasNorm(layer.attention_norms.after, bias);
    case Slot::kQueryNorm:
    case Slot::kKeyNorm:
      return attention.qk_norm.has_value() &&
             HasNorm(attention.qk_norm->norm, bias);
    case Slot::kSinks:
      return attention.sinks;
    case Slot::kAttentionOutput:
      return !bias || attention.output_bias;
    default:
      return !bias || attention.qkv_bias;
  }
}

bool HasFfnSlot(const LayerSpec& layer, Slot slot, bool bias) {
  const FfnSpec& ffn = layer.ffn;
  const bool moe = ffn.moe.has_value();
  const bool shared = moe && ffn.moe->shared.has_value();
  const bool wanted = !bias || ffn.bias;
  switch (slot) {
    case Slot::kFfnInputNorm:
      return HasNorm(layer.ffn_norms.input, bias);
    case Slot::kFfnOutputNorm:
      return HasNorm(layer.ffn_norms.output, bias);
    case Slot::kFfnAfterNorm:
      return HasNorm(layer.ffn_norms.after, bias);
    case Slot::kGate:
    case Slot::kGateUp:
      return !moe && ffn.gated && wanted;
    case Slot::kUp:
    case Slot::kDown:
      return !moe && wanted;
    case Slot::kRouter:
      return moe && (!bias || ffn.moe->router_bias);
    case Slot::kExpertGate:
    case Slot::kExpertGateUp:
      return moe && ffn.gated && wanted;
    case Slot::kExpertUp:
    case Slot::kExpertDown:
      return moe && wanted;
    case Slot::kSharedGate:
      return shared && ffn.gated && wanted;
    case Slot::kSharedUp:
    case Slot::kSharedDown:
      return shared && wanted;
    case Slot::kSharedWeight:
      return shared && ffn.moe->shared->gate;
    default:
      return true;
  }
}

size_t LayerSize(Dim dim, const LayerSpec& layer) {
  const AttentionSpec& attention = layer.attention;
  const FfnSpec& ffn = layer.ffn;
  switch (dim) {
    case Dim::kHeads:
      return attention.heads;
    case Dim::kKvHeads:
      return attention.kv_heads;
    case Dim::kHeadDim:
      return attention.head_dim;
    case Dim::kQuery:
      return attention.query_width();
    case Dim::kKey:
      return attention.key_width();
    case Dim::kValue:
      return attention.value_width();
    case Dim::kQkv:
      return attention.query_width() + attention.key_width() +
             attention.value_width();
    case Dim::kAttentionOutput:
      return attention.output_width();
    case Dim::kFfn:
      return ffn.width;
    case Dim::kGateUp:
      return 2 * ffn.width;
    case Dim::kExperts:
      return ffn.moe.has_value() ? ffn.moe->experts : 0;
    case Dim::kSharedFfn:
      return ffn.moe.has_value() && ffn.moe->shared.has_value()
                 ? ffn.moe->shared->width
                 : 0;
    default:
      return 0;
  }
}

}  // namespace

bool HasSlot(const ModelSpec& spec, const LayerSpec* layer, Slot slot,
             bool bias) {
  if (slot == Slot::kIgnored) return true;
  if (layer == nullptr) return HasModelSlot(spec, slot, bias);
  if (slot < Slot::kFfnInputNorm) return HasAttentionSlot(*layer, slot, bias);
  return HasFfnSlot(*layer, slot, bias);
}

bool IsExpertSlot(Slot slot) {
  return slot >= Slot::kExpertGate && slot <= Slot::kExpertDown;
}

size_t SizeOf(Dim dim, const ModelSpec& spec, const LayerSpec* layer) {
  switch (dim) {
    case Dim::kOne:
      return 1;
    case Dim::kVocab:
      return spec.vocab_size;
    case Dim::kPositions:
      return spec.max_positions + spec.positions.offset;
    case Dim::kWidth:
      return spec.width;
    case Dim::kEmbeddingWidth:
      return spec.token_width();
    case Dim::kHalfRotary:
      return spec.ropes.empty() ? 0 : spec.ropes.front().rotary_dim / 2;
    default:
      return layer == nullptr ? 0 : LayerSize(dim, *layer);
  }
}

}  // namespace lanewise
