// M2M-100 and NLLB-200: mBART's order of norms with computed positions, which
// start behind the padding id; that id has none itself (Fan et al.,
// arXiv:2010.11125; NLLB Team, arXiv:2207.04672).
#include "model/families/bart_like.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BartLike keys{"m2m_100"};
  keys.norm_first = true;
  keys.embedding_norm = false;
  keys.activation = "relu";
  keys.head_bias = false;
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t padding,
      GetUintOr(config, file, "pad_token_id", kMaxVocab, 1, 0));
  keys.positions = {PositionSpec::Kind::kSinusoidalHalvesClosed, padding + 1,
                    static_cast<int32_t>(padding)};
  return ReadBartLike(config, file, keys);
}

}  // namespace

const Family& M2m100Family() {
  static const Family* const family =
      NewBartFamily("m2m_100", BartTables{false}, FromConfig);
  return *family;
}

}  // namespace lanewise
