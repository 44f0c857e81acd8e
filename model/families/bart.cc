// BART: learned positions from row 2 on, a norm behind the embedding and behind
// each sublayer (Lewis et al., arXiv:1910.13461).
#include "model/families/bart_like.h"
#include "model/families/family.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BartLike keys{"bart"};
  return ReadBartLike(config, file, keys);
}

}  // namespace

const Family& BartFamily() {
  static const Family* const family =
      NewBartFamily("bart", BartTables{}, FromConfig);
  return *family;
}

}  // namespace lanewise
