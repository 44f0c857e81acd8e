// MPNet: biases of relative positions that all layers share (Song et al.,
// arXiv:2004.09297).
#include "absl/strings/str_cat.h"
#include "model/families/bert_like.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Fixed in the reference, whatever pad_token_id says.
constexpr size_t kPaddingId = 1;
constexpr size_t kMaxDistance = 128;

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BertLike keys{"mpnet"};
  keys.position_offset = kPaddingId + 1;
  keys.token_types = false;
  keys.masked_dense = Activation::kGelu;
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadBertLike(config, file, keys));
  RelativeBiasSpec bias;
  bias.max_distance = kMaxDistance;
  LANEWISE_ASSIGN_OR_RETURN(
      bias.buckets, GetUintOr(config, file, "relative_attention_num_buckets",
                              kMaxRelativeDistance, 32, 1));
  for (LayerSpec& layer : spec.layers) layer.attention.relative_bias = bias;
  return spec;
}

}  // namespace

const Family& MpnetFamily() {
  constexpr auto kOptional = Presence::kOptional;
  static const Family* const family = new Family{
      "mpnet",
      {"mpnet"},
      {},
      FromConfig,
      nullptr,
      Joined(
          {
              // clang-format off
          {"embeddings.word_embeddings.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"embeddings.position_embeddings.weight", "", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kWidth},
          {"embeddings.position_ids", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"embeddings.LayerNorm.weight", "", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
          {"embeddings.LayerNorm.bias", "", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.relative_attention_bias.weight", "", Slot::kRelativeBias, false, Dim::kRelativeBuckets, Dim::kRelativeHeads},
          {"encoder.layer.{}.attention.attn.q.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"encoder.layer.{}.attention.attn.q.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
          {"encoder.layer.{}.attention.attn.k.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"encoder.layer.{}.attention.attn.k.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne},
          {"encoder.layer.{}.attention.attn.v.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"encoder.layer.{}.attention.attn.v.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
          {"encoder.layer.{}.attention.attn.o.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"encoder.layer.{}.attention.attn.o.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.attention.LayerNorm.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.attention.LayerNorm.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.intermediate.dense.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"encoder.layer.{}.intermediate.dense.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"encoder.layer.{}.output.dense.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"encoder.layer.{}.output.dense.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.output.LayerNorm.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"encoder.layer.{}.output.LayerNorm.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
              // clang-format on
          },
          RobertaHeadTensors()),
      {"mpnet.", ""}};
  return *family;
}

}  // namespace lanewise
