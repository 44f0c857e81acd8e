#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/families/family.h"
#include "model/families/gpt2.h"
#include "model/families/llama.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr char kConfigFile[] = "config.json";

absl::StatusOr<const Family*> FindByName(
    const Checkpoint& checkpoint, absl::string_view key, absl::string_view name,
    std::vector<absl::string_view> Family::*names) {
  std::vector<absl::string_view> known;
  for (const Family* family : Families()) {
    for (const absl::string_view candidate : family->*names) {
      if (candidate == name) return family;
      known.push_back(candidate);
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      checkpoint.path(), ": ", key, ": architecture '", name,
      "' is not supported; supported: ", absl::StrJoin(known, ", ")));
}

// Sizes that would make shapes empty or attention impossible.
absl::Status CheckSpec(const ModelSpec& spec, absl::string_view path) {
  const auto error = [&](absl::string_view field, absl::string_view expected,
                         size_t found) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": ", field, ": expected ", expected, ", found ", found));
  };
  if (spec.vocab_size == 0) return error("vocabulary size", "at least 1", 0);
  if (spec.width == 0) return error("hidden size", "at least 1", 0);
  if (spec.max_positions == 0) {
    return error("number of positions", "at least 1", 0);
  }
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& attention = layer.attention;
    if (attention.head_dim == 0 || attention.value_dim == 0) {
      return error("head size", "at least 1", 0);
    }
    if (attention.kv_heads == 0 || attention.heads == 0 ||
        attention.heads % attention.kv_heads != 0) {
      return error("key/value heads",
                   absl::StrCat("a divisor of the ", attention.heads, " heads"),
                   attention.kv_heads);
    }
    if (layer.ffn.width == 0) {
      return error("feed-forward size", "at least 1", 0);
    }
    if (!attention.rope.has_value()) continue;
    const size_t rotary_dim = spec.ropes[*attention.rope].rotary_dim;
    if (rotary_dim % 2 != 0 || rotary_dim > attention.head_dim) {
      return error("rotary size",
                   absl::StrCat("an even number up to the head size ",
                                attention.head_dim),
                   rotary_dim);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Family* const> Families() {
  static const Family* const families[] = {&Gpt2Family(), &LlamaFamily()};
  return families;
}

absl::StatusOr<const Family*> FindFamily(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    constexpr absl::string_view kKey = "general.architecture";
    LANEWISE_ASSIGN_OR_RETURN(const absl::string_view name,
                              checkpoint.metadata().GetString(kKey));
    return FindByName(checkpoint, kKey, name, &Family::gguf_architectures);
  }
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                            checkpoint.ReadJson(kConfigFile));
  LANEWISE_ASSIGN_OR_RETURN(
      const std::string name,
      GetString(config, absl::StrCat(checkpoint.path(), "/", kConfigFile),
                "model_type"));
  return FindByName(checkpoint, "config.json: model_type", name,
                    &Family::model_types);
}

absl::StatusOr<ModelSpec> ReadSpec(const Checkpoint& checkpoint,
                                   const Family& family) {
  absl::StatusOr<ModelSpec> spec;
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    spec = family.from_metadata(checkpoint.metadata());
  } else {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                              checkpoint.ReadJson(kConfigFile));
    spec = family.from_config(
        config, absl::StrCat(checkpoint.path(), "/", kConfigFile));
  }
  LANEWISE_RETURN_IF_ERROR(spec.status());
  LANEWISE_RETURN_IF_ERROR(CheckSpec(*spec, checkpoint.path()));
  return spec;
}

}  // namespace lanewise
