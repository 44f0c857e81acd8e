// ViT: an encoder over patches of an image, norms on the inputs (Dosovitskiy et
// al., arXiv:2010.11929).
#include "absl/strings/str_cat.h"
#include "model/families/bert_like.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::Status ReadPatches(const nlohmann::json& config, absl::string_view file,
                         ModelSpec* spec) {
  spec->input = InputKind::kVectors;
  PatchSpec& patches = spec->patches.emplace();
  LANEWISE_ASSIGN_OR_RETURN(
      patches.height,
      GetUintOr(config, file, "image_size", kMaxImageSide, 224, 1));
  patches.width = patches.height;
  LANEWISE_ASSIGN_OR_RETURN(patches.size, GetUintOr(config, file, "patch_size",
                                                    patches.height, 16, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      patches.channels,
      GetUintOr(config, file, "num_channels", kMaxImageSide, 3, 1));
  spec->max_positions = patches.rows();
  return absl::OkStatus();
}

// The pooler may have a width and an activation of its own; labels come
// straight from the first row.
absl::Status ReadPooler(const nlohmann::json& config, absl::string_view file,
                        ModelSpec* spec) {
  if (spec->head.task != HeadTask::kPooled) return absl::OkStatus();
  HeadTransformSpec& transform = *spec->head.transform;
  LANEWISE_ASSIGN_OR_RETURN(
      transform.width,
      GetUintOr(config, file, "pooler_output_size", kMaxWidth, spec->width, 1));
  LANEWISE_ASSIGN_OR_RETURN(transform.activation,
                            ReadActivation(config, file, "pooler_act", "tanh"));
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BertLike keys{"vit"};
  keys.tokens = false;
  keys.token_types = false;
  keys.label_dense.reset();
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadBertLike(config, file, keys));
  if (spec.head.task != HeadTask::kPooled &&
      spec.head.task != HeadTask::kSequenceLabels) {
    return absl::UnimplementedError(absl::StrCat(
        file,
        ": architectures: expected ViTModel or ViTForImageClassification, "
        "found another head"));
  }
  LANEWISE_RETURN_IF_ERROR(ReadPatches(config, file, &spec));
  LANEWISE_RETURN_IF_ERROR(ReadPooler(config, file, &spec));
  spec.final_norm = *spec.embedding_norm;
  spec.embedding_norm.reset();
  LANEWISE_ASSIGN_OR_RETURN(const bool qkv_bias,
                            GetBoolOr(config, file, "qkv_bias", true));
  for (LayerSpec& layer : spec.layers) {
    layer.attention_norms = layer.ffn_norms = {};
    layer.attention_norms.input = layer.ffn_norms.input = spec.final_norm;
    layer.attention.qkv_bias = qkv_bias;
  }
  return spec;
}

}  // namespace

const Family& VitFamily() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kPlain = TensorLayout::kPlain;
  constexpr auto kBatch = TensorLayout::kBatchOfOne;
  static const Family* const family = new Family{
      "vit",
      {"vit"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"embeddings.cls_token", "", Slot::kClassToken, false, Dim::kOne, Dim::kWidth, kRequired, kBatch},
          {"embeddings.position_embeddings", "", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kWidth, kRequired, kBatch},
          {"embeddings.patch_embeddings.projection.weight", "", Slot::kPatches, false, Dim::kWidth, Dim::kPatch, kRequired, TensorLayout::kConvolution},
          {"embeddings.patch_embeddings.projection.bias", "", Slot::kPatches, true, Dim::kWidth, Dim::kOne},
          {"embeddings.mask_token", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, Presence::kOptional},
          {"encoder.layer.{}.layernorm_before.weight", "", Slot::kAttentionInputNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.layernorm_before.bias", "", Slot::kAttentionInputNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.attention.attention.query.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"encoder.layer.{}.attention.attention.query.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
          {"encoder.layer.{}.attention.attention.key.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"encoder.layer.{}.attention.attention.key.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne},
          {"encoder.layer.{}.attention.attention.value.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"encoder.layer.{}.attention.attention.value.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
          {"encoder.layer.{}.attention.output.dense.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"encoder.layer.{}.attention.output.dense.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.layernorm_after.weight", "", Slot::kFfnInputNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.layernorm_after.bias", "", Slot::kFfnInputNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.intermediate.dense.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"encoder.layer.{}.intermediate.dense.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"encoder.layer.{}.output.dense.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"encoder.layer.{}.output.dense.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          {"layernorm.weight", "", Slot::kFinalNorm, false, Dim::kWidth, Dim::kOne},
          {"layernorm.bias", "", Slot::kFinalNorm, true, Dim::kWidth, Dim::kOne},
          {"pooler.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kPooledTask},
          {"pooler.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kPooledTask},
          {"classifier.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSequenceTask},
          {"classifier.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask},
          // clang-format on
      },
      {"vit.", ""}};
  return *family;
}

}  // namespace lanewise
