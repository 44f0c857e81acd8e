// ModernBERT: RoPE, gated feed-forward, norms on the inputs, most layers with a
// local window (Warner et al., arXiv:2412.13663).
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

// The keys that a layer of a window sees: local_attention / 2 to either side.
absl::Status ReadLocalWindows(const nlohmann::json& config,
                              absl::string_view file, ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t every,
      GetUintOr(config, file, "global_attn_every_n_layers", kMaxLayers, 3, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t local,
      GetUintOr(config, file, "local_attention", kMaxPositions, 128, 1));
  nlohmann::json windows = config;
  windows["sliding_window"] = local / 2 + 1;
  return ReadWindows(
      windows, file, [&](size_t layer) { return layer % every != 0; }, spec);
}

// Rope 0 of layers that see everything, rope 1 of those with a window.
absl::Status ReadRopes(const nlohmann::json& config, absl::string_view file,
                       ModelSpec* spec) {
  const nlohmann::json* parameters = FindJson(config, "rope_parameters");
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"full_attention", "global_rope_theta"},
      {"sliding_attention", "local_rope_theta"}};
  for (const auto& [kind, older] : kKinds) {
    RopeSpec rope;
    rope.rotary_dim = spec->layers.front().attention.head_dim;
    const double absent = spec->ropes.empty() ? 160000.0 : 10000.0;
    LANEWISE_ASSIGN_OR_RETURN(rope.theta,
                              GetFloatOr(config, file, older, absent));
    nlohmann::json own = nlohmann::json::object();
    std::string where(file);
    if (parameters != nullptr) {
      where = absl::StrCat(file, ": rope_parameters");
      LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* found,
                                GetObject(*parameters, where, kind));
      own = *found;
      absl::StrAppend(&where, ": ", kind);
    }
    LANEWISE_RETURN_IF_ERROR(
        ReadRopeParameters(own, where, spec->max_positions, &rope));
    spec->ropes.push_back(rope);
  }
  for (LayerSpec& layer : spec->layers) {
    layer.attention.rope = layer.attention.window > 0 ? 1 : 0;
  }
  return absl::OkStatus();
}

// dense, activation, norm; then labels, of one row or of each.
absl::Status ReadHead(const nlohmann::json& config, absl::string_view file,
                      const NormSpec& norm, ModelSpec* spec) {
  BertLike keys{"modernbert"};
  keys.pooler.reset();
  LANEWISE_ASSIGN_OR_RETURN(
      keys.masked_dense,
      ReadActivation(config, file, "classifier_activation", "gelu"));
  keys.label_dense = keys.masked_dense;
  LANEWISE_RETURN_IF_ERROR(ReadBertHead(config, file, keys, norm, spec));
  HeadSpec& head = spec->head;
  if (head.task == HeadTask::kNone) return absl::OkStatus();
  head.transform.emplace();
  head.transform->width = spec->width;
  head.transform->activation = *keys.masked_dense;
  head.transform->norm = norm;
  LANEWISE_ASSIGN_OR_RETURN(head.transform->bias,
                            GetBoolOr(config, file, "classifier_bias", false));
  if (head.task == HeadTask::kMaskedToken) {
    LANEWISE_ASSIGN_OR_RETURN(head.bias,
                              GetBoolOr(config, file, "decoder_bias", true));
  }
  if (head.task != HeadTask::kSequenceLabels) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(
      const std::string pooling,
      GetStringOr(config, file, "classifier_pooling", "cls"));
  if (pooling != "cls" && pooling != "mean") {
    return absl::UnimplementedError(
        absl::StrCat(file, ": classifier_pooling: expected cls or mean, found ",
                     Printable(pooling)));
  }
  head.pooling = pooling == "cls" ? Pooling::kFirst : Pooling::kMean;
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BertLike keys{"modernbert"};
  keys.activation = "hidden_activation";
  keys.eps = "norm_eps";
  keys.default_eps = 1e-5f;
  keys.token_types = false;
  keys.head = false;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadBertLike(config, file, keys));
  spec.positions = {};
  LANEWISE_ASSIGN_OR_RETURN(spec.embedding_norm->bias,
                            GetBoolOr(config, file, "norm_bias", false));
  const NormSpec norm = *spec.embedding_norm;
  spec.final_norm = norm;
  LANEWISE_ASSIGN_OR_RETURN(const bool attention_bias,
                            GetBoolOr(config, file, "attention_bias", false));
  LANEWISE_ASSIGN_OR_RETURN(const bool ffn_bias,
                            GetBoolOr(config, file, "mlp_bias", false));
  for (LayerSpec& layer : spec.layers) {
    layer.attention_norms = layer.ffn_norms = {};
    layer.attention_norms.input = layer.ffn_norms.input = norm;
    layer.attention.qkv_bias = layer.attention.output_bias = attention_bias;
    layer.ffn.bias = ffn_bias;
    layer.ffn.gated = true;
  }
  // The embedding's norm serves the first layer.
  spec.layers.front().attention_norms = {};
  LANEWISE_RETURN_IF_ERROR(ReadLocalWindows(config, file, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadRopes(config, file, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadHead(config, file, norm, &spec));
  return spec;
}

}  // namespace

const Family& ModernbertFamily() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kPlain = TensorLayout::kPlain;
  constexpr uint32_t kAnyHead =
      kMaskedTask | kSequenceTask | kTokenTask | kSpanTask;
  constexpr uint32_t kLabels = kSequenceTask | kTokenTask | kSpanTask;
  static const Family* const family = new Family{
      "modernbert",
      {"modernbert"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"embeddings.tok_embeddings.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"embeddings.norm.weight", "", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
          {"embeddings.norm.bias", "", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.attn_norm.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.attn_norm.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.attn.Wqkv.weight", "", Slot::kQkv, false, Dim::kQkv, Dim::kWidth},
          {"layers.{}.attn.Wqkv.bias", "", Slot::kQkv, true, Dim::kQkv, Dim::kOne},
          {"layers.{}.attn.Wo.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"layers.{}.attn.Wo.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.mlp_norm.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"layers.{}.mlp_norm.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"layers.{}.mlp.Wi.weight", "", Slot::kGateUp, false, Dim::kGateUp, Dim::kWidth},
          {"layers.{}.mlp.Wi.bias", "", Slot::kGateUp, true, Dim::kGateUp, Dim::kOne},
          {"layers.{}.mlp.Wo.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"layers.{}.mlp.Wo.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          {"final_norm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"final_norm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"head.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kAnyHead},
          {"head.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kAnyHead},
          {"head.norm.weight", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kAnyHead},
          {"head.norm.bias", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kAnyHead},
          {"decoder.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kHeadTransform, kOptional, kPlain, kPlain, kMaskedTask},
          {"decoder.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"classifier.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kLabels},
          {"classifier.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kLabels},
          // clang-format on
      },
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
