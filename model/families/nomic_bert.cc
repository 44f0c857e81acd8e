// Nomic BERT: RoPE, gated feed-forward, LayerNorm after each sublayer
// (Nussbaum et al., arXiv:2402.01613).
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/families/bert_like.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/rope_config.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

BertLike Keys() {
  BertLike keys{"nomic_bert"};
  keys.pooler.reset();
  return keys;
}

// RoPE, gates, no biases of projections.
void FinishLayers(ModelSpec* spec) {
  spec->positions = {};
  for (LayerSpec& layer : spec->layers) {
    layer.attention.qkv_bias = layer.attention.output_bias = false;
    layer.attention.rope = 0;
    layer.ffn.bias = false;
    layer.ffn.gated = true;
  }
}

// Published folders have GPT-2's names, and switches for parts that are not
// here.
absl::StatusOr<nlohmann::json> WithUsualNames(nlohmann::json config,
                                              absl::string_view file) {
  for (const char* off :
       {"prenorm", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias",
        "parallel_block", "rotary_emb_interleaved", "use_rms_norm", "causal"}) {
    LANEWISE_ASSIGN_OR_RETURN(const bool on,
                              GetBoolOr(config, file, off, false));
    if (!on) continue;
    return absl::UnimplementedError(
        absl::StrCat(file, ": ", off, ": expected false, found true"));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t experts_every,
      GetUintOr(config, file, "moe_every_n_layers", kMaxLayers, 0));
  if (experts_every > 0) {
    return absl::UnimplementedError(absl::StrCat(
        file, ": moe_every_n_layers: expected 0, found ", experts_every));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const std::string activation,
      GetStringOr(config, file, "activation_function", "swiglu"));
  if (activation != "swiglu") {
    return absl::UnimplementedError(
        absl::StrCat(file, ": activation_function: expected swiglu, found ",
                     Printable(activation)));
  }
  config["hidden_act"] = "silu";
  const std::pair<const char*, const char*> names[] = {
      {"n_layer", "num_hidden_layers"},
      {"n_embd", "hidden_size"},
      {"n_head", "num_attention_heads"},
      {"n_inner", "intermediate_size"},
      {"n_positions", "max_position_embeddings"},
      {"layer_norm_epsilon", "layer_norm_eps"},
      {"rotary_emb_base", "rope_theta"},
      {"rotary_emb_fraction", "partial_rotary_factor"}};
  for (const auto& [published, usual] : names) {
    if (config.contains(published)) config[usual] = config[published];
  }
  return config;
}

// rotary_scaling_factor: the base grows beyond the trained length.
absl::Status ReadPublishedScaling(const nlohmann::json& config,
                                  absl::string_view file, RopeSpec* rope) {
  if (FindJson(config, "rotary_scaling_factor") == nullptr) {
    return absl::OkStatus();
  }
  rope->scaling = RopeSpec::Scaling::kDynamic;
  LANEWISE_ASSIGN_OR_RETURN(rope->factor,
                            GetFloat(config, file, "rotary_scaling_factor"));
  if (!(rope->factor >= 1.0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": rotary_scaling_factor: expected at least 1, found ",
        rope->factor));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      rope->original_positions,
      GetUintOr(config, file, "max_trained_positions", kMaxPositions, 2048, 1));
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  const bool published = FindJson(config, "n_embd") != nullptr;
  nlohmann::json usual = config;
  if (published) {
    LANEWISE_ASSIGN_OR_RETURN(usual, WithUsualNames(config, file));
  }
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadBertLike(usual, file, Keys()));
  if (spec.head.task != HeadTask::kNone) {
    return absl::UnimplementedError(absl::StrCat(
        file, ": architectures: expected NomicBertModel, found another head"));
  }
  FinishLayers(&spec);
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t rotary_dim,
      ReadRotaryDim(usual, file, spec.layers.front().attention.head_dim,
                    "partial_rotary_factor", 1.0));
  LANEWISE_ASSIGN_OR_RETURN(
      RopeSpec rope, ReadRope(usual, file, rotary_dim, spec.max_positions));
  if (published) {
    LANEWISE_RETURN_IF_ERROR(ReadPublishedScaling(config, file, &rope));
  }
  spec.ropes.push_back(std::move(rope));
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(nlohmann::json config,
                            BertConfigOfGguf(metadata, "nomic-bert"));
  config["hidden_act"] = "silu";
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadBertLike(config, metadata.file(), Keys()));
  FinishLayers(&spec);
  LANEWISE_ASSIGN_OR_RETURN(
      RopeSpec rope,
      ReadGgufRope(metadata, "nomic-bert",
                   spec.layers.front().attention.head_dim, spec.max_positions));
  spec.ropes.push_back(std::move(rope));
  return spec;
}

}  // namespace

const Family& NomicBertFamily() {
  static const Family* const family = new Family{
      "nomic_bert",
      {"nomic_bert"},
      {"nomic-bert"},
      FromConfig,
      FromMetadata,
      {
          // clang-format off
          {"embeddings.word_embeddings.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"embeddings.token_type_embeddings.weight", "token_types.weight", Slot::kTokenTypeEmbedding, false, Dim::kTokenTypes, Dim::kWidth},
          {"emb_ln.weight", "token_embd_norm.weight", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
          {"emb_ln.bias", "token_embd_norm.bias", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.layers.{}.attn.Wqkv.weight", "blk.{}.attn_qkv.weight", Slot::kQkv, false, Dim::kQkv, Dim::kWidth},
          {"encoder.layers.{}.attn.out_proj.weight", "blk.{}.attn_output.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"encoder.layers.{}.norm1.weight", "blk.{}.attn_output_norm.weight", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layers.{}.norm1.bias", "blk.{}.attn_output_norm.bias", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.layers.{}.mlp.fc12.weight", "blk.{}.ffn_gate.weight", Slot::kGate, false, Dim::kFfn, Dim::kWidth},
          {"encoder.layers.{}.mlp.fc11.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"encoder.layers.{}.mlp.fc2.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"encoder.layers.{}.norm2.weight", "blk.{}.layer_output_norm.weight", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layers.{}.norm2.bias", "blk.{}.layer_output_norm.bias", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
          // clang-format on
      },
      {"", "bert.", "nomic_bert."}};
  return *family;
}

}  // namespace lanewise
