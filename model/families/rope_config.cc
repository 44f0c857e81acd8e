#include "model/families/rope_config.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/scalar_math.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// YaRN's default factor of cos and sin (Peng et al., arXiv:2309.00071).
double YarnAttentionFactor(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * Log(factor) + 1.0;
}

absl::Status UnknownScaling(absl::string_view file, absl::string_view key,
                            absl::string_view name) {
  return absl::UnimplementedError(
      absl::StrCat(file, ": ", key, ": RoPE scaling '", Printable(name),
                   "' is not supported; supported: default, linear, dynamic, "
                   "llama3, yarn, longrope"));
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

absl::StatusOr<std::vector<float>> ReadFactors(const nlohmann::json& parameters,
                                               absl::string_view file,
                                               absl::string_view key,
                                               size_t count) {
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* array,
                            GetArray(parameters, file, key));
  if (array->size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", key, ": expected ", count,
                     " numbers, half the rotary size, found ", array->size()));
  }
  std::vector<float> factors;
  for (const nlohmann::json& value : *array) {
    LANEWISE_ASSIGN_OR_RETURN(const double factor, ToFloat(value, file, key));
    if (!(factor > 0.0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": ", key, ": expected positive numbers, found ", factor));
    }
    factors.push_back(static_cast<float>(factor));
  }
  return factors;
}

// LongRoPE (Ding et al., arXiv:2402.13753) as Phi-3 has it.
absl::Status ReadLongrope(const nlohmann::json& parameters,
                          absl::string_view file, size_t positions,
                          RopeSpec* rope) {
  rope->scaling = RopeSpec::Scaling::kLongrope;
  const size_t half = rope->rotary_dim / 2;
  LANEWISE_ASSIGN_OR_RETURN(
      rope->short_factors, ReadFactors(parameters, file, "short_factor", half));
  LANEWISE_ASSIGN_OR_RETURN(rope->long_factors,
                            ReadFactors(parameters, file, "long_factor", half));
  if (rope->original_positions != positions) {
    rope->factor = static_cast<double>(positions) /
                   static_cast<double>(rope->original_positions);
  }
  const double by_default =
      rope->factor <= 1.0
          ? 1.0
          : std::sqrt(1.0 + Log(rope->factor) / Log(static_cast<double>(
                                                    rope->original_positions)));
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

absl::StatusOr<RopeSpec> ReadRope(const nlohmann::json& config,
                                  absl::string_view file, size_t rotary_dim,
                                  size_t positions) {
  RopeSpec rope;
  rope.rotary_dim = rotary_dim;
  LANEWISE_ASSIGN_OR_RETURN(rope.theta,
                            GetFloatOr(config, file, "rope_theta", 10000.0));
  LANEWISE_ASSIGN_OR_RETURN(
      rope.original_positions,
      GetUintOr(config, file, "original_max_position_embeddings", kMaxPositions,
                positions));
  const char* key = "rope_parameters";
  if (FindJson(config, key) == nullptr) key = "rope_scaling";
  if (FindJson(config, key) == nullptr) {
    LANEWISE_RETURN_IF_ERROR(CheckRope(rope, file));
    return rope;
  }
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* parameters,
                            GetObject(config, file, key));
  LANEWISE_RETURN_IF_ERROR(ReadRopeParameters(
      *parameters, absl::StrCat(file, ": ", key), positions, &rope));
  return rope;
}

absl::Status ReadRopeParameters(const nlohmann::json& parameters,
                                const std::string& where, size_t positions,
                                RopeSpec* out) {
  RopeSpec& rope = *out;
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
                kMaxPositions, rope.original_positions));
  LANEWISE_RETURN_IF_ERROR(CheckRope(rope, where));
  if (type == "default") return absl::OkStatus();
  if (rope.original_positions == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where,
                     ": original_max_position_embeddings: expected at "
                     "least 1, found 0"));
  }
  if (type == "llama3") return ReadLlama3(parameters, where, &rope);
  if (type == "yarn") return ReadYarn(parameters, where, &rope);
  if (type == "longrope" || type == "su") {
    return ReadLongrope(parameters, where, positions, &rope);
  }
  if (type == "linear") {
    rope.scaling = RopeSpec::Scaling::kLinear;
  } else if (type == "dynamic") {
    rope.scaling = RopeSpec::Scaling::kDynamic;
    rope.original_positions = positions;
  } else {
    return UnknownScaling(where, "rope_type", type);
  }
  return absl::OkStatus();
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

}  // namespace lanewise
