// Mistral: Llama with a sliding window (Jiang et al., arXiv:2310.06825). Its
// GGUF files are those of Llama.
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, {"mistral"}));
  const bool sliding = FindJson(config, "sliding_window") != nullptr;
  LANEWISE_RETURN_IF_ERROR(ReadWindows(
      config, file, [&](size_t) { return sliding; }, &spec));
  return spec;
}

}  // namespace

const Family& MistralFamily() {
  static const Family* const family =
      new Family{"mistral",         {"mistral"},   {}, FromConfig, nullptr,
                 AllLlamaTensors(), {"model.", ""}};
  return *family;
}

}  // namespace lanewise
