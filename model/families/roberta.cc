// RoBERTa and XLM-RoBERTa: BERT whose positions begin behind the padding id,
// with heads of their own (Liu et al., arXiv:1907.11692; Conneau et al.,
// arXiv:1911.02116).
#include "model/families/bert_like.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BertLike keys{"roberta"};
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t padding,
      GetUintOr(config, file, "pad_token_id", kMaxVocab, 1));
  keys.position_offset = padding + 1;
  keys.masked_dense = Activation::kGelu;
  return ReadBertLike(config, file, keys);
}

}  // namespace

const Family& RobertaFamily() {
  static const Family* const family =
      new Family{"roberta",
                 {"roberta", "xlm-roberta", "camembert"},
                 {},
                 FromConfig,
                 nullptr,
                 Joined(BertTensors(), RobertaHeadTensors()),
                 {"roberta.", ""}};
  return *family;
}

}  // namespace lanewise
