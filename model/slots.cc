#include "model/slots.h"

#include <optional>

namespace lanewise {
namespace {

bool HasNorm(const std::optional<NormSpec>& norm, bool bias) {
  return norm.has_value() && (bias ? norm->bias : norm->weight);
}

bool HasHeadSlot(const ModelSpec& spec, Slot slot, bool bias) {
  const HeadSpec& head = spec.head;
  if (head.task == HeadTask::kNone) return false;
  switch (slot) {
    case Slot::kHeadDense:
      return head.transform.has_value() && (!bias || head.transform->bias);
    case Slot::kHeadNorm:
      return head.transform.has_value() && HasNorm(head.transform->norm, bias);
    default:
      return head.outputs != size_t{0} && (!bias || head.bias);
  }
}

const DisentangledSpec* DisentangledOf(const ModelSpec& spec) {
  if (spec.layers.empty()) return nullptr;
  const auto& disentangled = spec.layers.front().attention.disentangled;
  return disentangled.has_value() ? &*disentangled : nullptr;
}

bool HasModelSlot(const ModelSpec& spec, Slot slot, bool bias) {
  switch (slot) {
    case Slot::kTokenEmbedding:
      return spec.input == InputKind::kTokens;
    case Slot::kPositionEmbedding:
      return spec.positions.kind == PositionSpec::Kind::kLearned;
    case Slot::kTokenTypeEmbedding:
      return spec.token_types > 0;
    case Slot::kClassToken:
    case Slot::kPatches:
      return spec.patches.has_value();
    case Slot::kRelativeBias:
      return !spec.layers.empty() &&
             spec.layers.front().attention.relative_bias.has_value();
    case Slot::kRelativeEmbedding:
      return DisentangledOf(spec) != nullptr;
    case Slot::kRelativeNorm:
      return DisentangledOf(spec) != nullptr &&
             HasNorm(DisentangledOf(spec)->norm, bias);
    case Slot::kConvolution:
      return spec.convolution.has_value();
    case Slot::kConvolutionNorm:
      return spec.convolution.has_value() &&
             HasNorm(spec.convolution->norm, bias);
    case Slot::kEmbeddingIn:
      return spec.embedding_width.has_value();
    case Slot::kEmbeddingOut:
      return spec.embedding_width.has_value() && !spec.embedding_projected_last;
    case Slot::kEmbeddingNorm:
      return HasNorm(spec.embedding_norm, bias);
    case Slot::kAudioConv1:
    case Slot::kAudioConv2:
      return spec.audio_stem.has_value();
    case Slot::kFinalNorm:
      return HasNorm(spec.final_norm, bias);
    case Slot::kHeadDense:
    case Slot::kHeadNorm:
    case Slot::kHead:
      return HasHeadSlot(spec, slot, bias);
    default:
      return true;
  }
}

// Whether the relative positions have projections of their own.
bool HasRelative(const AttentionSpec& attention) {
  return attention.disentangled.has_value() &&
         !attention.disentangled->shared_projections;
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
    case Slot::kRelativeQuery:
      return HasRelative(attention) && attention.disentangled->relative_queries;
    case Slot::kRelativeKey:
      return HasRelative(attention) && attention.disentangled->relative_keys;
    case Slot::kAttentionOutput:
      return !bias || attention.output_bias;
    default:
      return !bias || attention.qkv_bias;
  }
}

bool HasCrossSlot(const LayerSpec& layer, Slot slot, bool bias) {
  if (!layer.cross.has_value()) return false;
  const CrossAttentionSpec& cross = *layer.cross;
  switch (slot) {
    case Slot::kCrossInputNorm:
      return HasNorm(cross.norms.input, bias);
    case Slot::kCrossOutputNorm:
      return HasNorm(cross.norms.output, bias);
    case Slot::kCrossAfterNorm:
      return HasNorm(cross.norms.after, bias);
    case Slot::kCrossOutput:
      return !bias || cross.attention.output_bias;
    default:
      return !bias || cross.attention.qkv_bias;
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

size_t CrossSize(Dim dim, const LayerSpec& layer) {
  if (!layer.cross.has_value()) return 0;
  const AttentionSpec& attention = layer.cross->attention;
  switch (dim) {
    case Dim::kCrossQuery:
      return attention.query_width();
    case Dim::kCrossKey:
      return attention.key_width();
    case Dim::kCrossValue:
      return attention.value_width();
    case Dim::kCrossKeyValue:
      return attention.key_width() + attention.value_width();
    default:
      return attention.output_width();
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
    case Dim::kCrossQuery:
    case Dim::kCrossKey:
    case Dim::kCrossValue:
    case Dim::kCrossKeyValue:
    case Dim::kCrossOutput:
      return CrossSize(dim, layer);
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
  if (slot < Slot::kCrossInputNorm) return HasAttentionSlot(*layer, slot, bias);
  if (slot < Slot::kFfnInputNorm) return HasCrossSlot(*layer, slot, bias);
  return HasFfnSlot(*layer, slot, bias);
}

bool IsExpertSlot(Slot slot) {
  return slot >= Slot::kExpertGate && slot <= Slot::kExpertDown;
}

size_t FirstOfGroup(const ModelSpec& spec, size_t layer) {
  const std::optional<size_t>& group = spec.layers[layer].group;
  if (!group.has_value()) return layer;
  size_t first = 0;
  while (spec.layers[first].group != group) ++first;
  return first;
}

namespace {

const RelativeBiasSpec* RelativeBiasOf(const ModelSpec& spec) {
  if (spec.layers.empty()) return nullptr;
  const auto& bias = spec.layers.front().attention.relative_bias;
  return bias.has_value() ? &*bias : nullptr;
}

size_t HeadSize(Dim dim, const ModelSpec& spec) {
  const auto& transform = spec.head.transform;
  const size_t transformed = transform.has_value() ? transform->width : 0;
  switch (dim) {
    case Dim::kHeadTransform:
      return transformed;
    case Dim::kHeadInput:
      return transform.has_value() ? transformed : spec.width;
    default:
      return spec.head.outputs.value_or(spec.vocab_size);
  }
}

}  // namespace

size_t SizeOf(Dim dim, const ModelSpec& spec, const LayerSpec* layer) {
  switch (dim) {
    case Dim::kOne:
      return 1;
    case Dim::kVocab:
      return spec.vocab_size;
    case Dim::kPositions:
      return spec.max_positions + spec.positions.offset;
    case Dim::kTokenTypes:
      return spec.token_types;
    case Dim::kRelativeBuckets: {
      const RelativeBiasSpec* bias = RelativeBiasOf(spec);
      return bias == nullptr ? 0 : bias->buckets;
    }
    case Dim::kRelativeHeads:
      return spec.layers.empty() ? 0 : spec.layers.front().attention.heads;
    case Dim::kRelativeRows:
      return DisentangledOf(spec) == nullptr ? 0
                                             : 2 * DisentangledOf(spec)->span;
    case Dim::kPatch:
      return spec.patches.has_value() ? spec.patches->values() : 0;
    case Dim::kConvolved:
      return spec.convolution.has_value()
                 ? spec.width * spec.convolution->kernel
                 : 0;
    case Dim::kWidth:
      return spec.width;
    case Dim::kInputWidth:
      return spec.input_width();
    case Dim::kMemoryWidth:
      return spec.encoder.empty() ? 0 : spec.encoder.front().width;
    case Dim::kConv1:
      return spec.audio_stem.has_value() ? kConv1dTaps * spec.audio_stem->bands
                                         : 0;
    case Dim::kConv2:
      return kConv1dTaps * spec.width;
    case Dim::kHeadTransform:
    case Dim::kHeadInput:
    case Dim::kHeadOutputs:
      return HeadSize(dim, spec);
    case Dim::kEmbeddingWidth:
      return spec.token_width();
    case Dim::kHalfRotary:
      return spec.ropes.empty() ? 0 : spec.ropes.front().rotary_dim / 2;
    default:
      return layer == nullptr ? 0 : LayerSize(dim, *layer);
  }
}

}  // namespace lanewise
