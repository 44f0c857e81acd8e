// BERT: learned positions and token types, LayerNorm after each sublayer
// (Devlin et al., arXiv:1810.04805).
#include "model/families/bert_like.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  return ReadBertLike(config, file, {"bert"});
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                            BertConfigOfGguf(metadata, "bert"));
  BertLike keys{"bert"};
  keys.pooler.reset();
  return ReadBertLike(config, metadata.file(), keys);
}

}  // namespace

const Family& BertFamily() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kPlain = TensorLayout::kPlain;
  static const Family* const family = new Family{
      "bert",
      {"bert"},
      {"bert"},
      FromConfig,
      FromMetadata,
      Joined(
          BertTensors(),
          {
              // clang-format off
          {"pooler.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kPooledTask | kSequenceTask},
          {"pooler.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kPooledTask | kSequenceTask},
          {"cls.predictions.transform.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.LayerNorm.weight", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.LayerNorm.bias", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.LayerNorm.gamma", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.transform.LayerNorm.beta", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.decoder.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kWidth, kOptional, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"cls.predictions.decoder.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"classifier.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"classifier.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"qa_outputs.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSpanTask},
          {"qa_outputs.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSpanTask},
              // clang-format on
          }),
      {"bert.", ""}};
  return *family;
}

}  // namespace lanewise
