// ALBERT: groups of layers share weights, and a narrow embedding is widened
// after its norm (Lan et al., arXiv:1909.11942).
#include "absl/strings/str_cat.h"
#include "model/families/bert_like.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Layer i is of group floor(i / (layers / groups)), computed in floating point
// as the reference does.
absl::Status ReadGroups(const nlohmann::json& config, absl::string_view file,
                        ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t groups,
      GetUintOr(config, file, "num_hidden_groups", kMaxLayers, 1, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t inner,
      GetUintOr(config, file, "inner_group_num", kMaxLayers, 1, 1));
  if (inner != 1) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": inner_group_num: expected 1, found ", inner));
  }
  if (groups > spec->layers.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": num_hidden_groups: expected at most the ",
                     spec->layers.size(), " layers, found ", groups));
  }
  const double each =
      static_cast<double>(spec->layers.size()) / static_cast<double>(groups);
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    spec->layers[i].group = static_cast<size_t>(static_cast<double>(i) / each);
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadBertLike(config, file, {"albert"}));
  LANEWISE_RETURN_IF_ERROR(ReadGroups(config, file, &spec));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.embedding_width,
      GetUintOr(config, file, "embedding_size", kMaxWidth, 128, 1));
  spec.embedding_projected_last = true;
  if (spec.head.task == HeadTask::kMaskedToken) {
    spec.head.transform->width = *spec.embedding_width;
  }
  return spec;
}

}  // namespace

const Family& AlbertFamily() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kPlain = TensorLayout::kPlain;
  static const Family* const family = new Family{
      "albert",
      {"albert"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"embeddings.word_embeddings.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kEmbeddingWidth},
          {"embeddings.position_embeddings.weight", "", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kInputWidth},
          {"embeddings.token_type_embeddings.weight", "", Slot::kTokenTypeEmbedding, false, Dim::kTokenTypes, Dim::kInputWidth},
          {"embeddings.LayerNorm.weight", "", Slot::kEmbeddingNorm, false, Dim::kInputWidth, Dim::kOne},
          {"embeddings.LayerNorm.bias", "", Slot::kEmbeddingNorm, true, Dim::kInputWidth, Dim::kOne},
          {"embeddings.position_ids", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"encoder.embedding_hidden_mapping_in.weight", "", Slot::kEmbeddingIn, false, Dim::kWidth, Dim::kEmbeddingWidth},
          {"encoder.embedding_hidden_mapping_in.bias", "", Slot::kEmbeddingIn, true, Dim::kWidth, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.query.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.query.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.key.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.key.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.value.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.value.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.dense.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.dense.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.LayerNorm.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.attention.LayerNorm.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.ffn.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"encoder.albert_layer_groups.{}.albert_layers.0.ffn.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.ffn_output.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"encoder.albert_layer_groups.{}.albert_layers.0.ffn_output.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"pooler.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kPooledTask | kSequenceTask},
          {"pooler.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kPooledTask | kSequenceTask},
          {"predictions.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kMaskedTask},
          {"predictions.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"predictions.LayerNorm.weight", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"predictions.LayerNorm.bias", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"predictions.decoder.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kHeadTransform, kOptional, kPlain, kPlain, kMaskedTask},
          {"predictions.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"predictions.decoder.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"classifier.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"classifier.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"qa_outputs.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSpanTask},
          {"qa_outputs.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSpanTask},
          // clang-format on
      },
      {"albert.", ""}};
  return *family;
}

}  // namespace lanewise
