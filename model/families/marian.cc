// Marian: translation models with computed positions and, where they are not
// shared, a vocabulary for each language (Junczys-Dowmunt et al.,
// arXiv:1804.00344).
#include "model/families/bart_like.h"
#include "model/families/family.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BartLike keys{"marian"};
  keys.embedding_norm = false;
  keys.positions = {PositionSpec::Kind::kSinusoidalHalves, 0};
  return ReadBartLike(config, file, keys);
}

}  // namespace

const Family& MarianFamily() {
  static const Family* const family =
      NewBartFamily("marian", BartTables{false}, FromConfig);
  return *family;
}

}  // namespace lanewise
