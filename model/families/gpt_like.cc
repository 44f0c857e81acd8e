#include "model/families/gpt_like.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/families/common.h"
#include "model/families/rope_config.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// The first of "a|b" that the configuration has, else the first.
absl::string_view KeyOf(const nlohmann::json& config, absl::string_view names) {
  for (const absl::string_view name : absl::StrSplit(names, '|')) {
    if (FindJson(config, name) != nullptr) return name;
  }
  return names.substr(0, names.find('|'));
}

}  // namespace

absl::StatusOr<ModelSpec> ReadGptLike(const nlohmann::json& config,
                                      absl::string_view file,
                                      const GptLike& keys) {
  const auto size = [&](absl::string_view names, uint64_t max) {
    return GetUint(config, file, KeyOf(config, names), max);
  };
  ModelSpec spec;
  spec.family = std::string(keys.family);
  LANEWISE_ASSIGN_OR_RETURN(const size_t layers, size(keys.layers, kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(spec.width, size(keys.width, kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(const size_t heads, size(keys.heads, kMaxHeads));
  if (spec.width % heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": ", keys.heads, ": expected a divisor of the width ",
        spec.width, ", found ", heads));
  }
  NormSpec norm;
  norm.bias = true;
  LANEWISE_ASSIGN_OR_RETURN(norm.eps, GetFloatOr(config, file, keys.eps, 1e-5));
  LayerSpec layer;
  layer.attention_norms.input = layer.ffn_norms.input = norm;
  layer.attention.heads = layer.attention.kv_heads = heads;
  layer.attention.head_dim = layer.attention.value_dim = spec.width / heads;
  layer.attention.scale = DefaultScale(layer.attention.head_dim);
  layer.attention.qkv_bias = layer.attention.output_bias = true;
  layer.ffn.bias = true;
  LANEWISE_ASSIGN_OR_RETURN(layer.ffn.width,
                            GetUintOr(config, file, KeyOf(config, keys.ffn),
                                      kMaxWidth, 4 * spec.width, 1));
  LANEWISE_ASSIGN_OR_RETURN(
      layer.ffn.activation,
      ReadActivation(config, file, keys.activation_key, keys.activation));
  spec.layers.assign(layers, layer);
  spec.final_norm = norm;
  if (keys.default_positions == 0) {
    LANEWISE_ASSIGN_OR_RETURN(spec.max_positions,
                              size(keys.positions, kMaxPositions));
  } else {
    LANEWISE_ASSIGN_OR_RETURN(
        spec.max_positions,
        GetUintOr(config, file, KeyOf(config, keys.positions), kMaxPositions,
                  keys.default_positions, 1));
  }
  LANEWISE_ASSIGN_OR_RETURN(spec.vocab_size,
                            GetUint(config, file, "vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(
      spec.head.tied,
      GetBoolOr(config, file, "tie_word_embeddings", keys.tied));
  return spec;
}

absl::StatusOr<nlohmann::json> GgufAsConfig(const Metadata& metadata,
                                            absl::string_view architecture,
                                            const GptLike& keys) {
  const auto name = [&](absl::string_view key) {
    return absl::StrCat(architecture, ".", key);
  };
  nlohmann::json config = nlohmann::json::object();
  const std::pair<absl::string_view, absl::string_view> sizes[] = {
      {"block_count", keys.layers},
      {"embedding_length", keys.width},
      {"attention.head_count", keys.heads},
      {"feed_forward_length", keys.ffn},
      {"context_length", keys.positions}};
  for (const auto& [key, names] : sizes) {
    LANEWISE_ASSIGN_OR_RETURN(config[std::string(KeyOf(config, names))],
                              metadata.GetUint(name(key), kMaxPositions, 1));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      config[std::string(keys.eps)],
      metadata.GetFloat(name("attention.layer_norm_epsilon")));
  LANEWISE_ASSIGN_OR_RETURN(
      config["rope_theta"],
      metadata.GetFloatOr(name("rope.freq_base"), 10000.0));
  LANEWISE_ASSIGN_OR_RETURN(config["vocab_size"],
                            ReadGgufVocabSize(metadata, architecture));
  return config;
}

absl::Status AddRope(const nlohmann::json& config, absl::string_view file,
                     size_t rotary_dim, RopePairing pairing, ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(
      RopeSpec rope, ReadRope(config, file, rotary_dim, spec->max_positions));
  rope.pairing = pairing;
  if (rope.scaling == RopeSpec::Scaling::kDynamic) {
    spec->max_positions = kMaxPositions;
  }
  spec->ropes = {rope};
  for (LayerSpec& layer : spec->layers) layer.attention.rope = 0;
  return absl::OkStatus();
}

}  // namespace lanewise
