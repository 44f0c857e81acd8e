// T5, T5 v1.1 and mT5: RMSNorm before each sublayer, one table of relative
// positions a stack instead of embedded positions, unscaled attention, no
// biases (Raffel et al., arXiv:1910.10683; Shazeer, arXiv:2002.05202; Xue et
// al., arXiv:2010.11934).
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kBuckets = 32;
constexpr size_t kMaxDistance = 128;
constexpr double kEps = 1e-6;

// What a stack has in common with the other one.
struct Sizes {
  size_t width = 0, vocab = 0, encoder_layers = 0, decoder_layers = 0;
  NormSpec norm{NormKind::kRmsNorm};
  AttentionSpec attention;
  RelativeBiasSpec relative;
  FfnSpec ffn;
};

ModelSpec Stack(const Sizes& sizes, bool decoder) {
  ModelSpec spec;
  spec.family = "t5";
  spec.width = sizes.width;
  spec.vocab_size = sizes.vocab;
  spec.max_positions = kMaxPositions;  // relative ones know no limit
  spec.final_norm = sizes.norm;
  LayerSpec layer;
  layer.attention_norms.input = layer.ffn_norms.input = sizes.norm;
  layer.attention = sizes.attention;
  layer.attention.causal = decoder;
  layer.attention.relative_bias = sizes.relative;
  layer.attention.relative_bias->bidirectional = !decoder;
  layer.ffn = sizes.ffn;
  if (decoder) {
    CrossAttentionSpec cross;
    cross.norms.input = sizes.norm;
    cross.attention = sizes.attention;
    cross.attention.causal = false;
    layer.cross = cross;
  }
  spec.layers.assign(decoder ? sizes.decoder_layers : sizes.encoder_layers,
                     layer);
  spec.head.task = decoder ? HeadTask::kNextToken : HeadTask::kNone;
  return spec;
}

ModelSpec BothStacks(const Sizes& sizes) {
  ModelSpec spec = Stack(sizes, /*decoder=*/true);
  spec.encoder.push_back(Stack(sizes, /*decoder=*/false));
  return spec;
}

absl::Status ReadFfn(const nlohmann::json& config, absl::string_view file,
                     FfnSpec* ffn) {
  LANEWISE_ASSIGN_OR_RETURN(ffn->width,
                            GetUint(config, file, "d_ff", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      std::string kind, GetStringOr(config, file, "feed_forward_proj", "relu"));
  constexpr absl::string_view kGated = "gated-";
  ffn->gated = absl::StartsWith(kind, kGated);
  if (ffn->gated) kind.erase(0, kGated.size());
  // The library reads "gated-gelu" as the approximation that v1.1 has.
  if (ffn->gated && kind == "gelu") kind = "gelu_new";
  const nlohmann::json named = {{"feed_forward_proj", kind}};
  LANEWISE_ASSIGN_OR_RETURN(
      ffn->activation, ReadActivation(named, file, "feed_forward_proj", kind));
  return absl::OkStatus();
}

absl::Status ReadAttention(const nlohmann::json& config, absl::string_view file,
                           Sizes* sizes) {
  AttentionSpec& attention = sizes->attention;
  LANEWISE_ASSIGN_OR_RETURN(attention.heads,
                            GetUint(config, file, "num_heads", kMaxHeads));
  attention.kv_heads = attention.heads;
  LANEWISE_ASSIGN_OR_RETURN(attention.head_dim,
                            GetUint(config, file, "d_kv", kMaxHeadDim));
  attention.value_dim = attention.head_dim;
  LANEWISE_ASSIGN_OR_RETURN(
      sizes->relative.buckets,
      GetUintOr(config, file, "relative_attention_num_buckets",
                kMaxRelativeDistance, kBuckets, 2));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes->relative.max_distance,
      GetUintOr(config, file, "relative_attention_max_distance",
                kMaxRelativeDistance, kMaxDistance, 1));
  return absl::OkStatus();
}

bool IsEncoderAlone(const nlohmann::json& config) {
  const nlohmann::json* classes = FindJson(config, "architectures");
  return classes != nullptr && classes->is_array() && !classes->empty() &&
         (*classes)[0].is_string() &&
         absl::EndsWith((*classes)[0].get_ref<const std::string&>(),
                        "EncoderModel");
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(sizes.width,
                            GetUint(config, file, "d_model", kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(sizes.vocab,
                            GetUint(config, file, "vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(sizes.encoder_layers,
                            GetUint(config, file, "num_layers", kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(sizes.decoder_layers,
                            GetUintOr(config, file, "num_decoder_layers",
                                      kMaxLayers, sizes.encoder_layers, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.norm.eps, GetFloatOr(config, file, "layer_norm_epsilon", kEps));
  LANEWISE_RETURN_IF_ERROR(ReadAttention(config, file, &sizes));
  LANEWISE_RETURN_IF_ERROR(ReadFfn(config, file, &sizes.ffn));
  if (IsEncoderAlone(config)) return Stack(sizes, /*decoder=*/false);
  ModelSpec spec = BothStacks(sizes);
  LANEWISE_ASSIGN_OR_RETURN(
      spec.head.tied, GetBoolOr(config, file, "tie_word_embeddings", true));
  // Newer files say so in a field of its own, and mT5 never scales.
  LANEWISE_ASSIGN_OR_RETURN(const std::string type,
                            GetStringOr(config, file, "model_type", "t5"));
  LANEWISE_ASSIGN_OR_RETURN(const bool scaled,
                            GetBoolOr(config, file, "scale_decoder_outputs",
                                      spec.head.tied && type != "mt5"));
  // What its head reads is scaled; here the logits are.
  if (scaled) spec.head.scale = DefaultScale(spec.width);
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  Sizes sizes;
  LANEWISE_ASSIGN_OR_RETURN(const absl::string_view architecture,
                            metadata.GetString("general.architecture"));
  const auto key = [&](absl::string_view name) {
    return absl::StrCat(architecture, ".", name);
  };
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.width, metadata.GetUint(key("embedding_length"), kMaxWidth, 1));
  LANEWISE_ASSIGN_OR_RETURN(sizes.vocab,
                            ReadGgufVocabSize(metadata, architecture));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.encoder_layers,
      metadata.GetUint(key("block_count"), kMaxLayers, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.decoder_layers,
      metadata.GetUintOr(key("decoder_block_count"), kMaxLayers,
                         sizes.encoder_layers));
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.norm.eps,
      metadata.GetFloatOr(key("attention.layer_norm_rms_epsilon"), kEps));
  AttentionSpec& attention = sizes.attention;
  LANEWISE_ASSIGN_OR_RETURN(
      attention.heads,
      metadata.GetUint(key("attention.head_count"), kMaxHeads, 1));
  attention.kv_heads = attention.heads;
  LANEWISE_ASSIGN_OR_RETURN(
      attention.head_dim,
      metadata.GetUintOr(key("attention.key_length"), kMaxHeadDim,
                         sizes.width / attention.heads));
  attention.value_dim = attention.head_dim;
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.relative.buckets,
      metadata.GetUintOr(key("attention.relative_buckets_count"),
                         kMaxRelativeDistance, kBuckets));
  sizes.relative.max_distance = kMaxDistance;  // no key tells
  LANEWISE_ASSIGN_OR_RETURN(
      sizes.ffn.width,
      metadata.GetUint(key("feed_forward_length"), kMaxWidth, 1));
  sizes.ffn.activation = Activation::kRelu;
  if (architecture == "t5encoder") return Stack(sizes, /*decoder=*/false);
  ModelSpec spec = BothStacks(sizes);
  LANEWISE_ASSIGN_OR_RETURN(const double scale,
                            metadata.GetFloatOr(key("logit_scale"), 1.0));
  spec.head.scale = static_cast<float>(scale);
  return spec;
}

// v1.1's feed-forward layer is known by its gate, v1.0 by the lack of one: it
// scales, where it is tied. (logit_scale has been written by this library.)
void FromTensors(HasTensor has, ModelSpec* spec) {
  FfnSpec ffn = spec->layers.front().ffn;
  ffn.gated = has("enc.blk.0.ffn_gate.weight");
  ffn.activation = ffn.gated ? Activation::kGeluTanh : Activation::kRelu;
  for (LayerSpec& layer : spec->layers) layer.ffn = ffn;
  if (spec->encoder.empty()) return;
  for (LayerSpec& layer : spec->encoder.front().layers) layer.ffn = ffn;
  if (!ffn.gated && !has("output.weight") && spec->head.scale == 1.0f) {
    spec->head.scale = DefaultScale(spec->width);
  }
}

constexpr auto kOptional = Presence::kOptional;

std::vector<TensorRule> EncoderTensors() {
  return {
      // clang-format off
      {"encoder.embed_tokens.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"shared.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "enc.blk.0.attn_rel_b.weight", Slot::kRelativeBias, false, Dim::kRelativeBuckets, Dim::kRelativeHeads},
      {"encoder.final_layer_norm.weight", "enc.output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.block.{}.layer.0.layer_norm.weight", "enc.blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.block.{}.layer.0.SelfAttention.q.weight", "enc.blk.{}.attn_q.weight", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
      {"encoder.block.{}.layer.0.SelfAttention.k.weight", "enc.blk.{}.attn_k.weight", Slot::kKey, false, Dim::kKey, Dim::kWidth},
      {"encoder.block.{}.layer.0.SelfAttention.v.weight", "enc.blk.{}.attn_v.weight", Slot::kValue, false, Dim::kValue, Dim::kWidth},
      {"encoder.block.{}.layer.0.SelfAttention.o.weight", "enc.blk.{}.attn_o.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"encoder.block.{}.layer.1.layer_norm.weight", "enc.blk.{}.ffn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.block.{}.layer.1.DenseReluDense.wi.weight", "enc.blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"encoder.block.{}.layer.1.DenseReluDense.wi_0.weight", "enc.blk.{}.ffn_gate.weight", Slot::kGate, false, Dim::kFfn, Dim::kWidth},
      {"encoder.block.{}.layer.1.DenseReluDense.wi_1.weight", "enc.blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"encoder.block.{}.layer.1.DenseReluDense.wo.weight", "enc.blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      // clang-format on
  };
}

std::vector<TensorRule> DecoderTensors() {
  return {
      // clang-format off
      {"decoder.embed_tokens.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"shared.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
      {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "dec.blk.0.attn_rel_b.weight", Slot::kRelativeBias, false, Dim::kRelativeBuckets, Dim::kRelativeHeads},
      // Early files have it; no version of the model used it.
      {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight", "dec.blk.0.cross_attn_rel_b.weight", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
      {"decoder.final_layer_norm.weight", "dec.output_norm.weight", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
      {"lm_head.weight", "output.weight", Slot::kHead, false, Dim::kVocab, Dim::kWidth},
      {"decoder.block.{}.layer.0.layer_norm.weight", "dec.blk.{}.attn_norm.weight", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.block.{}.layer.0.SelfAttention.q.weight", "dec.blk.{}.attn_q.weight", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
      {"decoder.block.{}.layer.0.SelfAttention.k.weight", "dec.blk.{}.attn_k.weight", Slot::kKey, false, Dim::kKey, Dim::kWidth},
      {"decoder.block.{}.layer.0.SelfAttention.v.weight", "dec.blk.{}.attn_v.weight", Slot::kValue, false, Dim::kValue, Dim::kWidth},
      {"decoder.block.{}.layer.0.SelfAttention.o.weight", "dec.blk.{}.attn_o.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"decoder.block.{}.layer.1.layer_norm.weight", "dec.blk.{}.cross_attn_norm.weight", Slot::kCrossInputNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.block.{}.layer.1.EncDecAttention.q.weight", "dec.blk.{}.cross_attn_q.weight", Slot::kCrossQuery, false, Dim::kCrossQuery, Dim::kWidth},
      {"decoder.block.{}.layer.1.EncDecAttention.k.weight", "dec.blk.{}.cross_attn_k.weight", Slot::kCrossKey, false, Dim::kCrossKey, Dim::kMemoryWidth},
      {"decoder.block.{}.layer.1.EncDecAttention.v.weight", "dec.blk.{}.cross_attn_v.weight", Slot::kCrossValue, false, Dim::kCrossValue, Dim::kMemoryWidth},
      {"decoder.block.{}.layer.1.EncDecAttention.o.weight", "dec.blk.{}.cross_attn_o.weight", Slot::kCrossOutput, false, Dim::kWidth, Dim::kCrossOutput},
      {"decoder.block.{}.layer.2.layer_norm.weight", "dec.blk.{}.ffn_norm.weight", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
      {"decoder.block.{}.layer.2.DenseReluDense.wi.weight", "dec.blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"decoder.block.{}.layer.2.DenseReluDense.wi_0.weight", "dec.blk.{}.ffn_gate.weight", Slot::kGate, false, Dim::kFfn, Dim::kWidth},
      {"decoder.block.{}.layer.2.DenseReluDense.wi_1.weight", "dec.blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"decoder.block.{}.layer.2.DenseReluDense.wo.weight", "dec.blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      // clang-format on
  };
}

}  // namespace

const Family& T5Family() {
  static const Family* const family = [] {
    auto* t5 = new Family{"t5",       {"t5", "mt5"},   {"t5", "t5encoder"},
                          FromConfig, FromMetadata,    DecoderTensors(),
                          {""},       EncoderTensors()};
    t5->from_tensors = FromTensors;
    return t5;
  }();
  return *family;
}

}  // namespace lanewise
