#include "model/families/common.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/json.h"
#include "model/format/printable.h"
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
      file, ": ", key, ": activation '", Printable(name),
      "' is not supported; supported: ", absl::StrJoin(known, ", ")));
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

float EmbeddingScale(size_t width) {
  return static_cast<float>(std::sqrt(static_cast<double>(width)));
}

std::vector<float> AlibiSlopes(size_t heads, double factor) {
  // Heads beyond the largest power of two take every second slope of twice as
  // many heads.
  size_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<float> slopes;
  for (size_t i = 0; i < heads; ++i) {
    const double exponent =
        i < power
            ? -8.0 * static_cast<double>(i + 1) / static_cast<double>(power)
            : -4.0 * static_cast<double>(2 * (i - power) + 1) /
                  static_cast<double>(power);
    slopes.push_back(static_cast<float>(Pow(2.0, exponent) * factor));
  }
  return slopes;
}

absl::Status ReadWindows(const nlohmann::json& config, absl::string_view file,
                         absl::FunctionRef<bool(size_t layer)> by_default,
                         ModelSpec* spec) {
  std::vector<bool> sliding;
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    sliding.push_back(by_default(i));
  }
  if (FindJson(config, "layer_types") != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* types,
                              GetArray(config, file, "layer_types"));
    if (types->size() != sliding.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": layer_types: expected one of each of the ",
                       sliding.size(), " layers, found ", types->size()));
    }
    for (size_t i = 0; i < sliding.size(); ++i) {
      const nlohmann::json& type = (*types)[i];
      sliding[i] = type == "sliding_attention";
      if (!sliding[i] && type != "full_attention") {
        return absl::UnimplementedError(
            absl::StrCat(file,
                         ": layer_types: expected full_attention or "
                         "sliding_attention, found ",
                         DescribeJson(type)));
      }
    }
  }
  if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) {
    return absl::OkStatus();
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t window,
      GetUint(config, file, "sliding_window", kMaxPositions));
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (sliding[i]) spec->layers[i].attention.window = window;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> ReadRotaryDim(const nlohmann::json& config,
                                     absl::string_view file, size_t head_dim,
                                     absl::string_view key, double absent) {
  LANEWISE_ASSIGN_OR_RETURN(double fraction,
                            GetFloatOr(config, file, key, absent));
  const nlohmann::json* parameters = FindJson(config, "rope_parameters");
  if (parameters != nullptr && parameters->is_object()) {
    LANEWISE_ASSIGN_OR_RETURN(
        fraction,
        GetFloatOr(*parameters, absl::StrCat(file, ": rope_parameters"),
                   "partial_rotary_factor", fraction));
  }
  if (!(fraction > 0.0 && fraction <= 1.0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": ", key, ": expected a number above 0 and up to 1, found ",
        fraction));
  }
  return static_cast<size_t>(static_cast<double>(head_dim) * fraction);
}

}  // namespace lanewise
