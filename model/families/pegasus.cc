// Pegasus: mBART's order of norms with computed positions (Zhang et al.,
// arXiv:1912.08777).
#include "model/families/bart_like.h"
#include "model/families/family.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BartLike keys{"pegasus"};
  keys.norm_first = true;
  keys.embedding_norm = false;
  keys.positions = {PositionSpec::Kind::kSinusoidalHalves, 0};
  return ReadBartLike(config, file, keys);
}

}  // namespace

const Family& PegasusFamily() {
  static const Family* const family =
      NewBartFamily("pegasus", BartTables{false}, FromConfig);
  return *family;
}

}  // namespace lanewise
