#include "model/families/bart_like.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Keys of config.json for one stack.
struct StackKeys {
  absl::string_view layers, heads, ffn, positions;
};

absl::Status CheckClass(const nlohmann::json& config, absl::string_view file) {
  const nlohmann::json* classes = FindJson(config, "architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty() ||
      !(*classes)[0].is_string()) {
    return absl::OkStatus();
  }
  const std::string& name = (*classes)[0].get_ref<const std::string&>();
  for (const absl::string_view suffix :
       {"ForConditionalGeneration", "MTModel", "Model"}) {
    if (absl::EndsWith(name, suffix)) return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      file,
      ": architectures: expected *ForConditionalGeneration, *MTModel or "
      "*Model, found ",
      Printable(name)));
}

// What both stacks have: all but their numbers of layers, heads and positions.
absl::StatusOr<ModelSpec> ReadCommon(const nlohmann::json& config,
                                     absl::string_view file,
                                     const BartLike& keys) {
  ModelSpec spec;
  spec.family = std::string(keys.family);
  LANEWISE_ASSIGN_OR_RETURN(spec.width,
                            GetUint(config, file, "d_model", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            GetUint(config, file, "vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(const bool scaled,
                            GetBoolOr(config, file, "scale_embedding", false));
  if (scaled) spec.embedding_scale = EmbeddingScale(spec.width);
  spec.positions = keys.positions;
  NormSpec norm;
  norm.bias = true;
  if (keys.embedding_norm) spec.embedding_norm = norm;
  if (keys.norm_first) spec.final_norm = norm;
  LayerSpec layer;
  (keys.norm_first ? layer.attention_norms.input
                   : layer.attention_norms.after) = norm;
  layer.ffn_norms = layer.attention_norms;
  layer.attention.qkv_bias = layer.attention.output_bias = true;
  layer.ffn.bias = true;
  LANEWISE_ASSIGN_OR_RETURN(
      layer.ffn.activation,
      ReadActivation(config, file, "activation_function", keys.activation));
  spec.layers.push_back(layer);
  spec.head.task = HeadTask::kNone;
  return spec;
}

absl::Status ReadStack(const nlohmann::json& config, absl::string_view file,
                       const StackKeys& keys, ModelSpec* spec) {
  LayerSpec& layer = spec->layers.front();
  LANEWISE_ASSIGN_OR_RETURN(const size_t layers,
                            GetUint(config, file, keys.layers, kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(const size_t heads,
                            GetUint(config, file, keys.heads, kMaxHeads));
  if (spec->width % heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", keys.heads, ": expected a divisor of the ",
                     "width ", spec->width, ", found ", heads));
  }
  layer.attention.heads = layer.attention.kv_heads = heads;
  layer.attention.head_dim = layer.attention.value_dim = spec->width / heads;
  layer.attention.scale = DefaultScale(layer.attention.head_dim);
  LANEWISE_ASSIGN_OR_RETURN(layer.ffn.width,
                            GetUint(config, file, keys.ffn, kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      spec->max_positions,
      GetUint(config, file, keys.positions, kMaxPositions));
  const LayerSpec one = layer;
  spec->layers.assign(layers, one);
  return absl::OkStatus();
}

Slot PositionSlot(const BartTables& tables) {
  return tables.learned_positions ? Slot::kPositionEmbedding : Slot::kIgnored;
}

Presence PositionPresence(const BartTables& tables) {
  return tables.learned_positions ? Presence::kRequired : Presence::kOptional;
}

Presence KeyBias(const BartTables& tables) {
  return tables.key_bias ? Presence::kRequired : Presence::kOptional;
}

}  // namespace

absl::StatusOr<ModelSpec> ReadBartLike(const nlohmann::json& config,
                                       absl::string_view file,
                                       const BartLike& keys) {
  LANEWISE_RETURN_IF_ERROR(CheckClass(config, file));
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec encoder, ReadCommon(config, file, keys));
  ModelSpec decoder = encoder;
  encoder.layers.front().attention.causal = false;
  LANEWISE_RETURN_IF_ERROR(
      ReadStack(config, file,
                {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim",
                 keys.encoder_positions},
                &encoder));
  LANEWISE_RETURN_IF_ERROR(
      ReadStack(config, file,
                {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim",
                 keys.decoder_positions},
                &decoder));
  // Marian: vocabularies that are not shared.
  LANEWISE_ASSIGN_OR_RETURN(decoder.vocab_size,
                            GetUintOr(config, file, "decoder_vocab_size",
                                      kMaxVocab, encoder.vocab_size, 1));
  for (LayerSpec& layer : decoder.layers) {
    CrossAttentionSpec cross;
    cross.norms = layer.attention_norms;
    cross.attention = layer.attention;
    cross.attention.causal = false;
    layer.cross = cross;
  }
  decoder.head.task = HeadTask::kNextToken;
  decoder.head.bias = keys.head_bias;
  LANEWISE_ASSIGN_OR_RETURN(
      decoder.head.tied, GetBoolOr(config, file, "tie_word_embeddings", true));
  decoder.encoder.push_back(std::move(encoder));
  return decoder;
}

std::vector<TensorRule> BartEncoderTensors(const BartTables& tables) {
  const Slot positions = PositionSlot(tables);
  const Presence key_bias = KeyBias(tables);
  return {
      // clang-format off
      {"encoder.embed_tokens.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"shared.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"encoder.embed_positions.weight", "", positions, false, Dim::kPositions, Dim::kWidth, PositionPresence(tables)},
      {"encoder.embed_positions.weights", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
      {"encoder.layernorm_embedding.weight", "", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layernorm_embedding.bias", "", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layer_norm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layer_norm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.self_attn_layer_norm.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.self_attn_layer_norm.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.self_attn_layer_norm.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.self_attn_layer_norm.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.self_attn.q_proj.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
      {"encoder.layers.{}.self_attn.q_proj.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
      {"encoder.layers.{}.self_attn.k_proj.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
      {"encoder.layers.{}.self_attn.k_proj.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne, key_bias},
      {"encoder.layers.{}.self_attn.v_proj.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
      {"encoder.layers.{}.self_attn.v_proj.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
      {"encoder.layers.{}.self_attn.out_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"encoder.layers.{}.self_attn.out_proj.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.final_layer_norm.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.final_layer_norm.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.final_layer_norm.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.final_layer_norm.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layers.{}.fc1.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"encoder.layers.{}.fc1.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
      {"encoder.layers.{}.fc2.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      {"encoder.layers.{}.fc2.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
      // clang-format on
  };
}

std::vector<TensorRule> BartDecoderTensors(const BartTables& tables) {
  const Slot positions = PositionSlot(tables);
  const Presence key_bias = KeyBias(tables);
  return {
      // clang-format off
      {"decoder.embed_tokens.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"shared.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"decoder.embed_positions.weight", "", positions, false, Dim::kPositions, Dim::kWidth, PositionPresence(tables)},
      {"decoder.embed_positions.weights", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
      {"decoder.layernorm_embedding.weight", "", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layernorm_embedding.bias", "", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
      {"decoder.layer_norm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layer_norm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
      {"lm_head.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
      {"final_logits_bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, Presence::kOptional, TensorLayout::kBatchOfOne},
      {"decoder.layers.{}.self_attn_layer_norm.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.self_attn_layer_norm.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.self_attn_layer_norm.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.self_attn_layer_norm.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.self_attn.q_proj.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
      {"decoder.layers.{}.self_attn.q_proj.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
      {"decoder.layers.{}.self_attn.k_proj.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
      {"decoder.layers.{}.self_attn.k_proj.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne, key_bias},
      {"decoder.layers.{}.self_attn.v_proj.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
      {"decoder.layers.{}.self_attn.v_proj.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
      {"decoder.layers.{}.self_attn.out_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"decoder.layers.{}.self_attn.out_proj.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.encoder_attn_layer_norm.weight", "", Slot::kCrossInputNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.encoder_attn_layer_norm.bias", "", Slot::kCrossInputNorm, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.encoder_attn_layer_norm.weight", "", Slot::kCrossAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.encoder_attn_layer_norm.bias", "", Slot::kCrossAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.encoder_attn.q_proj.weight", "", Slot::kCrossQuery, false, Dim::kCrossQuery, Dim::kWidth},
      {"decoder.layers.{}.encoder_attn.q_proj.bias", "", Slot::kCrossQuery, true, Dim::kCrossQuery, Dim::kOne},
      {"decoder.layers.{}.encoder_attn.k_proj.weight", "", Slot::kCrossKey, false, Dim::kCrossKey, Dim::kMemoryWidth},
      {"decoder.layers.{}.encoder_attn.k_proj.bias", "", Slot::kCrossKey, true, Dim::kCrossKey, Dim::kOne, key_bias},
      {"decoder.layers.{}.encoder_attn.v_proj.weight", "", Slot::kCrossValue, false, Dim::kCrossValue, Dim::kMemoryWidth},
      {"decoder.layers.{}.encoder_attn.v_proj.bias", "", Slot::kCrossValue, true, Dim::kCrossValue, Dim::kOne},
      {"decoder.layers.{}.encoder_attn.out_proj.weight", "", Slot::kCrossOutput, false, Dim::kWidth, Dim::kCrossOutput},
      {"decoder.layers.{}.encoder_attn.out_proj.bias", "", Slot::kCrossOutput, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.final_layer_norm.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.final_layer_norm.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.final_layer_norm.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.final_layer_norm.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"decoder.layers.{}.fc1.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"decoder.layers.{}.fc1.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
      {"decoder.layers.{}.fc2.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      {"decoder.layers.{}.fc2.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
      // clang-format on
  };
}

Family* NewBartFamily(absl::string_view name, const BartTables& tables,
                      SpecReader* from_config) {
  return new Family{name,
                    {name},
                    {},
                    from_config,
                    nullptr,
                    BartDecoderTensors(tables),
                    {"model.", ""},
                    BartEncoderTensors(tables)};
}

}  // namespace lanewise
