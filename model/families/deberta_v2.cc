// DeBERTa-v2 and v3: scores with terms of relative positions, in buckets (He et
// al., arXiv:2006.03654, arXiv:2111.09543).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/families/bert_like.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// pos_att_type: a list, or the same in one string: "p2c|c2p".
absl::StatusOr<DisentangledSpec> ReadTerms(const nlohmann::json& config,
                                           absl::string_view file) {
  DisentangledSpec spec;
  const nlohmann::json* types = FindJson(config, "pos_att_type");
  if (types == nullptr) return spec;
  std::vector<std::string> names;
  if (types->is_string()) {
    const std::string& text = types->get_ref<const std::string&>();
    names = absl::StrSplit(text, '|', absl::SkipEmpty());
  } else if (types->is_array()) {
    for (const nlohmann::json& type : *types) {
      names.push_back(type.is_string() ? type.get<std::string>()
                                       : DescribeJson(type));
    }
  } else {
    names.push_back(DescribeJson(*types));
  }
  for (const std::string& name : names) {
    spec.relative_keys = spec.relative_keys || name == "c2p";
    spec.relative_queries = spec.relative_queries || name == "p2c";
    if (name == "c2p" || name == "p2c") continue;
    return absl::UnimplementedError(absl::StrCat(
        file, ": pos_att_type: expected c2p or p2c, found ", Printable(name)));
  }
  return spec;
}

// A size where anything below 1 means that there is none.
absl::StatusOr<size_t> ReadSize(const nlohmann::json& config,
                                absl::string_view file, absl::string_view key,
                                uint64_t max) {
  if (FindJson(config, key) == nullptr) return 0;
  LANEWISE_ASSIGN_OR_RETURN(
      const int64_t size,
      GetInt(config, file, key, -static_cast<int64_t>(kMaxPositions),
             static_cast<int64_t>(max)));
  return static_cast<size_t>(std::max<int64_t>(size, 0));
}

absl::Status ReadDisentangled(const nlohmann::json& config,
                              absl::string_view file, const NormSpec& norm,
                              ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(DisentangledSpec terms, ReadTerms(config, file));
  const size_t factor = 1 + terms.relative_keys + terms.relative_queries;
  LANEWISE_ASSIGN_OR_RETURN(
      const bool relative,
      GetBoolOr(config, file, "relative_attention", false));
  LANEWISE_ASSIGN_OR_RETURN(
      terms.buckets,
      ReadSize(config, file, "position_buckets", kMaxRelativeSpan));
  LANEWISE_ASSIGN_OR_RETURN(
      terms.max_distance,
      ReadSize(config, file, "max_relative_positions", kMaxRelativeDistance));
  if (terms.max_distance == 0) terms.max_distance = spec->max_positions;
  terms.span = terms.buckets > 0 ? terms.buckets : terms.max_distance;
  LANEWISE_ASSIGN_OR_RETURN(terms.shared_projections,
                            GetBoolOr(config, file, "share_att_key", false));
  LANEWISE_ASSIGN_OR_RETURN(const std::string norms,
                            GetStringOr(config, file, "norm_rel_ebd", "none"));
  if (norms != "none" && norms != "layer_norm") {
    return absl::UnimplementedError(absl::StrCat(
        file, ": norm_rel_ebd: expected none or layer_norm, found ",
        Printable(norms)));
  }
  if (norms == "layer_norm") terms.norm = norm;
  for (LayerSpec& layer : spec->layers) {
    layer.attention.scale = DefaultScale(layer.attention.head_dim * factor);
    if (relative && factor > 1) layer.attention.disentangled = terms;
  }
  return absl::OkStatus();
}

absl::Status ReadConvolution(const nlohmann::json& config,
                             absl::string_view file, const NormSpec& norm,
                             ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t kernel,
      ReadSize(config, file, "conv_kernel_size", kMaxKernel));
  if (kernel == 0) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t groups,
      GetUintOr(config, file, "conv_groups", kMaxWidth, 1, 1));
  if (groups != 1 || kernel % 2 == 0) {
    return absl::UnimplementedError(absl::StrCat(
        file,
        ": conv_kernel_size and conv_groups: expected an odd size and one "
        "group, found ",
        kernel, " and ", groups));
  }
  spec->convolution.emplace();
  spec->convolution->kernel = kernel;
  spec->convolution->norm = norm;
  LANEWISE_ASSIGN_OR_RETURN(spec->convolution->activation,
                            ReadActivation(config, file, "conv_act", "tanh"));
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BertLike keys{"deberta_v2"};
  keys.default_eps = 1e-7f;
  keys.default_token_types = 0;
  keys.pooler.reset();
  LANEWISE_ASSIGN_OR_RETURN(
      keys.label_dense,
      ReadActivation(config, file, "pooler_hidden_act", "gelu"));
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadBertLike(config, file, keys));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t embedding,
      GetUintOr(config, file, "embedding_size", kMaxWidth, spec.width, 1));
  if (embedding != spec.width) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": embedding_size: expected the hidden size ",
                     spec.width, ", found ", embedding));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const bool learned,
      GetBoolOr(config, file, "position_biased_input", true));
  if (!learned) spec.positions = {};
  const NormSpec norm = *spec.embedding_norm;
  LANEWISE_RETURN_IF_ERROR(ReadDisentangled(config, file, norm, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadConvolution(config, file, norm, &spec));
  return spec;
}

}  // namespace

const Family& DebertaV2Family() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kPlain = TensorLayout::kPlain;
  static const Family* const family = new Family{
      "deberta_v2",
      {"deberta-v2"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"embeddings.word_embeddings.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"embeddings.position_embeddings.weight", "", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kWidth},
          {"embeddings.token_type_embeddings.weight", "", Slot::kTokenTypeEmbedding, false, Dim::kTokenTypes, Dim::kWidth},
          {"embeddings.LayerNorm.weight", "", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
          {"embeddings.LayerNorm.bias", "", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
          {"embeddings.position_ids", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"encoder.rel_embeddings.weight", "", Slot::kRelativeEmbedding, false, Dim::kRelativeRows, Dim::kWidth},
          {"encoder.LayerNorm.weight", "", Slot::kRelativeNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.LayerNorm.bias", "", Slot::kRelativeNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.conv.conv.weight", "", Slot::kConvolution, false, Dim::kWidth, Dim::kConvolved, kRequired, TensorLayout::kConvolution},
          {"encoder.conv.conv.bias", "", Slot::kConvolution, true, Dim::kWidth, Dim::kOne},
          {"encoder.conv.LayerNorm.weight", "", Slot::kConvolutionNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.conv.LayerNorm.bias", "", Slot::kConvolutionNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.attention.self.query_proj.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"encoder.layer.{}.attention.self.query_proj.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
          {"encoder.layer.{}.attention.self.key_proj.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"encoder.layer.{}.attention.self.key_proj.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne},
          {"encoder.layer.{}.attention.self.value_proj.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"encoder.layer.{}.attention.self.value_proj.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
          {"encoder.layer.{}.attention.self.pos_key_proj.weight", "", Slot::kRelativeKey, false, Dim::kKey, Dim::kWidth},
          {"encoder.layer.{}.attention.self.pos_key_proj.bias", "", Slot::kRelativeKey, true, Dim::kKey, Dim::kOne},
          {"encoder.layer.{}.attention.self.pos_query_proj.weight", "", Slot::kRelativeQuery, false, Dim::kQuery, Dim::kWidth},
          {"encoder.layer.{}.attention.self.pos_query_proj.bias", "", Slot::kRelativeQuery, true, Dim::kQuery, Dim::kOne},
          {"encoder.layer.{}.attention.output.dense.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"encoder.layer.{}.attention.output.dense.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.attention.output.LayerNorm.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.attention.output.LayerNorm.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.intermediate.dense.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"encoder.layer.{}.intermediate.dense.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"encoder.layer.{}.output.dense.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"encoder.layer.{}.output.dense.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.output.LayerNorm.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.output.LayerNorm.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"lm_predictions.lm_head.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kMaskedTask},
          {"lm_predictions.lm_head.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"lm_predictions.lm_head.LayerNorm.weight", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"lm_predictions.lm_head.LayerNorm.bias", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"lm_predictions.lm_head.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.LayerNorm.weight", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.LayerNorm.bias", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.decoder.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kHeadTransform, kOptional, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.decoder.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"pooler.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kSequenceTask},
          {"pooler.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask},
          {"classifier.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"classifier.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"qa_outputs.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSpanTask},
          {"qa_outputs.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSpanTask},
          // clang-format on
      },
      {"deberta.", ""}};
  return *family;
}

}  // namespace lanewise
