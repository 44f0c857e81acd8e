// mBART and mBART-50: BART with its norms before the sublayers and one more at
// the end (Liu et al., arXiv:2001.08210).
#include "model/families/bart_like.h"
#include "model/families/family.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BartLike keys{"mbart"};
  keys.norm_first = true;
  return ReadBartLike(config, file, keys);
}

}  // namespace

const Family& MbartFamily() {
  static const Family* const family =
      NewBartFamily("mbart", BartTables{}, FromConfig);
  return *family;
}

}  // namespace lanewise
