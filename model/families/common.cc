#include "model/families/common.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/scalar_math.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

struct NamedActivation {
  absl::string_view name;
  Activation activation;
};

// ACT2FN of the Transformers library.
constexpr NamedActivation kActivations[] = {
    {"gelu", Activation::kGelu},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"linear", Activation::kIdentity},
    {"quick_gelu", Activation::kQuickGelu},
    {"relu", Activation::kRelu},
    {"relu2", Activation::kReluSquared},
    {"sigmoid", Activation::kSigmoid},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},
};

// YaRN's default factor of cos and sin (Peng et al., arXiv:2309.00071).
double YarnAttentionFactor(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * Log(factor) + 1.0;
}

absl::Status UnknownScaling(absl::string_view file, absl::string_view key,
                            absl::string_view name) {
  return absl::UnimplementedError(absl::StrCat(
      file, ": ", key, ": RoPE scaling '", name,
      "' is not supported; supported: default, linear, llama3, yarn"));
}

absl::Status CheckRope(const RopeSpec& rope, absl::string_view file) {
  if (!(rope.theta > 0.0) || !std::isfinite(rope.theta)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": RoPE theta: expected a positive number, found ", rope.theta));
  }
  if (!(rope.factor > 0.0) || !std::isfinite(rope.factor)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file,
                     ": RoPE scaling factor: expected a positive number,"
                     " found ",
                     rope.factor));
  }
  return absl::OkStatus();
}

absl::Status ReadYarn(const nlohmann::json& parameters, absl::string_view file,
                      RopeSpec* rope) {
  rope->scaling = RopeSpec::Scaling::kYarn;
  LANEWISE_ASSIGN_OR_RETURN(rope->beta_fast,
                            GetFloatOr(parameters, file, "beta_fast", 32.0));
  LANEWISE_ASSIGN_OR_RETURN(rope->beta_slow,
                            GetFloatOr(parameters, file, "beta_slow", 1.0));
  LANEWISE_ASSIGN_OR_RETURN(rope->truncate,
                            GetBoolOr(parameters, file, "truncate", true));
  LANEWISE_ASSIGN_OR_RETURN(const double mscale,
                            GetFloatOr(parameters, file, "mscale", 0.0));
  LANEWISE_ASSIGN_OR_RETURN(
      const double mscale_all,
      GetFloatOr(parameters, file, "mscale_all_dim", 0.0));
  const double by_default =
      mscale != 0.0 && mscale_all != 0.0
          ? YarnAttentionFactor(rope->factor, mscale) /
                YarnAttentionFactor(rope->factor, mscale_all)
          : YarnAttentionFactor(rope->factor, 1.0);
  LANEWISE_ASSIGN_OR_RETURN(
      rope->attention_factor,
      GetFloatOr(parameters, file, "attention_factor", by_default));
  return absl::OkStatus();
}

absl::Status ReadLlama3(const nlohmann::json& parameters,
                        absl::string_view file, RopeSpec* rope) {
  rope->scaling = RopeSpec::Scaling::kLlama3;
  LANEWISE_ASSIGN_OR_RETURN(
      rope->low_freq_factor,
      GetFloatOr(parameters, file, "low_freq_factor", 1.0));
  LANEWISE_ASSIGN_OR_RETURN(
      rope->high_freq_factor,
      GetFloatOr(parameters, file, "high_freq_factor", 4.0));
  if (rope->high_freq_factor == rope->low_freq_factor) {
    return absl::InvalidArgumentError(
        absl::StrCat(file,
                     ": high_freq_factor: expected another value than "
                     "low_freq_factor, found ",
                     rope->high_freq_factor, " for both"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Activation> ReadActivation(const nlohmann::json& config,
                                          absl::string_view file,
                                          absl::string_view key,
                                          absl::string_view absent) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string name,
                            GetStringOr(config, file, key, absent));
  std::vector<absl::string_view> known;
  for (const NamedActivation& entry : kActivations) {
    if (entry.name == name) return entry.activation;
    known.push_back(entry.name);
  }
  return absl::UnimplementedError(absl::StrCat(
      file, ": ", key, ": activation '", name,
      "' is not supported; supported: ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<RopeSpec> ReadRope(const nlohmann::json& config,
                                  absl::string_view file, size_t rotary_dim,
                                  size_t positions) {
  RopeSpec rope;
  rope.rotary_dim = rotary_dim;
  rope.original_positions = positions;
  LANEWISE_ASSIGN_OR_RETURN(rope.theta,
                            GetFloatOr(config, file, "rope_theta", 10000.0));
  const char* key = "rope_parameters";
  auto found = config.find(key);
  if (found == config.end() || found->is_null()) {
    key = "rope_scaling";
    found = config.find(key);
  }
  if (found == config.end() || found->is_null()) {
    LANEWISE_RETURN_IF_ERROR(CheckRope(rope, file));
    return rope;
  }
  const std::string where = absl::StrCat(file, ": ", key);
  if (!found->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": expected an object, found ", found->type_name()));
  }
  const nlohmann::json& parameters = *found;
  LANEWISE_ASSIGN_OR_RETURN(
      rope.theta, GetFloatOr(parameters, where, "rope_theta", rope.theta));
  LANEWISE_ASSIGN_OR_RETURN(const std::string older,
                            GetStringOr(parameters, where, "type", "default"));
  LANEWISE_ASSIGN_OR_RETURN(const std::string type,
                            GetStringOr(parameters, where, "rope_type", older));
  LANEWISE_ASSIGN_OR_RETURN(rope.factor,
                            GetFloatOr(parameters, where, "factor", 1.0));
  LANEWISE_ASSIGN_OR_RETURN(
      rope.original_positions,
      GetUintOr(parameters, where, "original_max_position_embeddings",
                kMaxPositions, positions));
  LANEWISE_RETURN_IF_ERROR(CheckRope(rope, where));
  if (type == "linear") {
    rope.scaling = RopeSpec::Scaling::kLinear;
  } else if (type == "llama3") {
    LANEWISE_RETURN_IF_ERROR(ReadLlama3(parameters, where, &rope));
  } else if (type == "yarn") {
    LANEWISE_RETURN_IF_ERROR(ReadYarn(parameters, where, &rope));
  } else if (type != "default") {
    return UnknownScaling(where, "rope_type", type);
  }
  return rope;
}

absl::StatusOr<RopeSpec> ReadGgufRope(const Metadata& metadata,
                                      absl::string_view architecture,
                                      size_t rotary_dim, size_t positions) {
  const auto key = [&](absl::string_view name) {
    return absl::StrCat(architecture, ".rope.", name);
  };
  RopeSpec rope;
  rope.rotary_dim = rotary_dim;
  LANEWISE_ASSIGN_OR_RETURN(rope.theta,
                            metadata.GetFloatOr(key("freq_base"), 10000.0));
  LANEWISE_ASSIGN_OR_RETURN(rope.factor,
                            metadata.GetFloatOr(key("scaling.factor"), 1.0));
  LANEWISE_ASSIGN_OR_RETURN(
      rope.original_positions,
      metadata.GetUintOr(key("scaling.original_context_length"), kMaxPositions,
                         positions));
  std::string type = "none";
  if (metadata.Has(key("scaling.type"))) {
    LANEWISE_ASSIGN_OR_RETURN(const absl::string_view name,
                              metadata.GetString(key("scaling.type")));
    type = std::string(name);
  } else if (metadata.Has(key("scale_linear"))) {
    LANEWISE_ASSIGN_OR_RETURN(rope.factor,
                              metadata.GetFloat(key("scale_linear")));
    type = "linear";
  }
  LANEWISE_RETURN_IF_ERROR(CheckRope(rope, metadata.file()));
  if (type == "linear") {
    rope.scaling = RopeSpec::Scaling::kLinear;
  } else if (type == "yarn") {
    rope.scaling = RopeSpec::Scaling::kYarn;
    LANEWISE_ASSIGN_OR_RETURN(
        rope.attention_factor,
        metadata.GetFloatOr(key("scaling.attn_factor"),
                            YarnAttentionFactor(rope.factor, 1.0)));
  } else if (type != "none") {
    return UnknownScaling(metadata.file(), key("scaling.type"), type);
  }
  return rope;
}

absl::StatusOr<size_t> ReadGgufVocabSize(const Metadata& metadata,
                                         absl::string_view architecture) {
  const std::string key = absl::StrCat(architecture, ".vocab_size");
  if (metadata.Has(key)) {
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t size,
                              metadata.GetUint(key, kMaxVocab));
    return size;
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<std::string>* tokens,
                            metadata.GetStrings("tokenizer.ggml.tokens"));
  return tokens->size();
}

float DefaultScale(size_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

}  // namespace lanewise
