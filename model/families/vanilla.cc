// The Transformer of 2017, under the names of torch.nn.Transformer: interleaved
// sinusoids, a vocabulary for either side, norms behind the sublayers or before
// them, and in either case one at the end of each stack (Vaswani et al.,
// arXiv:1706.03762).
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kPositions = 5000;  // where config.json names no number

absl::StatusOr<LayerSpec> ReadLayer(const nlohmann::json& config,
                                    absl::string_view file, size_t width) {
  LayerSpec layer;
  NormSpec norm;
  norm.bias = true;
  LANEWISE_ASSIGN_OR_RETURN(norm.eps,
                            GetFloatOr(config, file, "layer_norm_eps", 1e-5));
  LANEWISE_ASSIGN_OR_RETURN(const bool first,
                            GetBoolOr(config, file, "norm_first", false));
  (first ? layer.attention_norms.input : layer.attention_norms.after) = norm;
  layer.ffn_norms = layer.attention_norms;
  AttentionSpec& attention = layer.attention;
  LANEWISE_ASSIGN_OR_RETURN(attention.heads,
                            GetUint(config, file, "nhead", kMaxHeads));
  if (width % attention.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": nhead: expected a divisor of the width ", width,
                     ", found ", attention.heads));
  }
  attention.kv_heads = attention.heads;
  attention.head_dim = attention.value_dim = width / attention.heads;
  attention.scale = DefaultScale(attention.head_dim);
  attention.qkv_bias = attention.output_bias = true;
  layer.ffn.bias = true;
  LANEWISE_ASSIGN_OR_RETURN(
      layer.ffn.width, GetUint(config, file, "dim_feedforward", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(layer.ffn.activation,
                            ReadActivation(config, file, "activation", "relu"));
  return layer;
}

// What both stacks have, without layers.
absl::StatusOr<ModelSpec> ReadCommon(const nlohmann::json& config,
                                     absl::string_view file) {
  ModelSpec spec;
  spec.family = "vanilla_transformer";
  LANEWISE_ASSIGN_OR_RETURN(spec.width,
                            GetUint(config, file, "d_model", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(spec.max_positions,
                            GetUintOr(config, file, "max_position_embeddings",
                                      kMaxPositions, kPositions, 1));
  LANEWISE_ASSIGN_OR_RETURN(const bool scaled,
                            GetBoolOr(config, file, "scale_embedding", true));
  if (scaled) spec.embedding_scale = EmbeddingScale(spec.width);
  constexpr absl::string_view kInterleaved = "sinusoidal_interleaved";
  LANEWISE_ASSIGN_OR_RETURN(
      const std::string positions,
      GetStringOr(config, file, "position_embedding", kInterleaved));
  if (positions != kInterleaved) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": position_embedding: expected ", kInterleaved,
                     ", found ", Printable(positions)));
  }
  spec.positions.kind = PositionSpec::Kind::kSinusoidalInterleaved;
  spec.final_norm = NormSpec{};
  spec.final_norm->bias = true;
  LANEWISE_ASSIGN_OR_RETURN(spec.final_norm->eps,
                            GetFloatOr(config, file, "layer_norm_eps", 1e-5));
  return spec;
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec decoder, ReadCommon(config, file));
  LANEWISE_ASSIGN_OR_RETURN(LayerSpec layer,
                            ReadLayer(config, file, decoder.width));
  ModelSpec encoder = decoder;
  encoder.head.task = HeadTask::kNone;
  LANEWISE_ASSIGN_OR_RETURN(encoder.vocab_size,
                            GetUint(config, file, "src_vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(decoder.vocab_size,
                            GetUint(config, file, "tgt_vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t encoder_layers,
      GetUint(config, file, "num_encoder_layers", kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t decoder_layers,
      GetUint(config, file, "num_decoder_layers", kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(
      decoder.head.tied, GetBoolOr(config, file, "tie_word_embeddings", false));
  decoder.head.bias = true;
  CrossAttentionSpec cross;
  cross.norms = layer.attention_norms;
  cross.attention = layer.attention;
  cross.attention.causal = layer.attention.causal = false;
  encoder.layers.assign(encoder_layers, layer);
  layer.attention.causal = true;
  layer.cross = cross;
  decoder.layers.assign(decoder_layers, layer);
  decoder.encoder.push_back(std::move(encoder));
  return decoder;
}

std::vector<TensorRule> EncoderTensors() {
  return {
      // clang-format off
      {"src_embed.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"transformer.encoder.norm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.norm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.self_attn.in_proj_weight", "", Slot::kQkv, false, Dim::kQkv, Dim::kWidth},
      {"transformer.encoder.layers.{}.self_attn.in_proj_bias", "", Slot::kQkv, true, Dim::kQkv, Dim::kOne},
      {"transformer.encoder.layers.{}.self_attn.out_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"transformer.encoder.layers.{}.self_attn.out_proj.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm1.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm1.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm1.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm1.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm2.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm2.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm2.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.norm2.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.encoder.layers.{}.linear1.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"transformer.encoder.layers.{}.linear1.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
      {"transformer.encoder.layers.{}.linear2.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      {"transformer.encoder.layers.{}.linear2.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
      // clang-format on
  };
}

std::vector<TensorRule> DecoderTensors() {
  return {
      // clang-format off
      {"tgt_embed.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"transformer.decoder.norm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.norm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
      {"generator.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
      {"generator.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne},
      {"transformer.decoder.layers.{}.self_attn.in_proj_weight", "", Slot::kQkv, false, Dim::kQkv, Dim::kWidth},
      {"transformer.decoder.layers.{}.self_attn.in_proj_bias", "", Slot::kQkv, true, Dim::kQkv, Dim::kOne},
      {"transformer.decoder.layers.{}.self_attn.out_proj.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"transformer.decoder.layers.{}.self_attn.out_proj.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.multihead_attn.in_proj_weight", "", Slot::kCrossQuery, false, Dim::kCrossQuery, Dim::kWidth, Presence::kRequired, TensorLayout::kCrossQueryOfQkv},
      {"transformer.decoder.layers.{}.multihead_attn.in_proj_bias", "", Slot::kCrossQuery, true, Dim::kCrossQuery, Dim::kOne, Presence::kRequired, TensorLayout::kCrossQueryOfQkv},
      {"transformer.decoder.layers.{}.multihead_attn.in_proj_weight", "", Slot::kCrossKeyValue, false, Dim::kCrossKeyValue, Dim::kMemoryWidth, Presence::kRequired, TensorLayout::kCrossKeyValueOfQkv},
      {"transformer.decoder.layers.{}.multihead_attn.in_proj_bias", "", Slot::kCrossKeyValue, true, Dim::kCrossKeyValue, Dim::kOne, Presence::kRequired, TensorLayout::kCrossKeyValueOfQkv},
      {"transformer.decoder.layers.{}.multihead_attn.out_proj.weight", "", Slot::kCrossOutput, false, Dim::kWidth, Dim::kCrossOutput},
      {"transformer.decoder.layers.{}.multihead_attn.out_proj.bias", "", Slot::kCrossOutput, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm1.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm1.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm1.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm1.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm2.weight", "", Slot::kCrossInputNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm2.bias", "", Slot::kCrossInputNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm2.weight", "", Slot::kCrossAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm2.bias", "", Slot::kCrossAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm3.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm3.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm3.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.norm3.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"transformer.decoder.layers.{}.linear1.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"transformer.decoder.layers.{}.linear1.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
      {"transformer.decoder.layers.{}.linear2.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      {"transformer.decoder.layers.{}.linear2.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
      // clang-format on
  };
}

}  // namespace

const Family& VanillaFamily() {
  static const Family* const family = new Family{"vanilla_transformer",
                                                 {"vanilla_transformer"},
                                                 {},
                                                 FromConfig,
                                                 nullptr,
                                                 DecoderTensors(),
                                                 {""},
                                                 EncoderTensors()};
  return *family;
}

}  // namespace lanewise
