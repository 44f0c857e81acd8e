#include "runtime/embed_config.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr uint64_t kMaxDense = 16;

// Keys of 1_Pooling/config.json, in the order of their parts in the vector.
struct PoolingKey {
  absl::string_view key;   // a bool of its own
  absl::string_view word;  // of "pooling_mode"
  EmbedPooling pooling;
};
constexpr PoolingKey kPoolingKeys[] = {
    {"pooling_mode_cls_token", "cls", EmbedPooling::kFirst},
    {"pooling_mode_max_tokens", "max", EmbedPooling::kMax},
    {"pooling_mode_mean_tokens", "mean", EmbedPooling::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens",
     EmbedPooling::kMeanSqrtLength},
    {"pooling_mode_weightedmean_tokens", "weightedmean",
     EmbedPooling::kWeightedMean},
    {"pooling_mode_lasttoken", "lasttoken", EmbedPooling::kLast}};

struct ActivationClass {
  absl::string_view name;
  Activation activation;
};
constexpr ActivationClass kActivationClasses[] = {
    {"Identity", Activation::kIdentity}, {"Tanh", Activation::kTanh},
    {"ReLU", Activation::kRelu},         {"GELU", Activation::kGelu},
    {"SiLU", Activation::kSilu},         {"Sigmoid", Activation::kSigmoid}};

// The class in "package.module.Class".
absl::string_view ClassName(absl::string_view type) {
  const size_t dot = type.rfind('.');
  return dot == absl::string_view::npos ? type : type.substr(dot + 1);
}

// A JSON file of the folder; an empty object when there is none.
absl::StatusOr<nlohmann::json> ReadOptional(const Checkpoint& checkpoint,
                                            absl::string_view name) {
  absl::StatusOr<nlohmann::json> json = checkpoint.ReadJson(name);
  if (absl::IsNotFound(json.status())) return nlohmann::json::object();
  return json;
}

std::string FileOf(const Checkpoint& checkpoint, absl::string_view name) {
  return absl::StrCat(checkpoint.path(), "/", name);
}

class FolderReader {
 public:
  FolderReader(const Checkpoint& checkpoint, EmbedConfig* config)
      : checkpoint_(checkpoint), config_(*config) {}

  absl::Status Read() {
    LANEWISE_RETURN_IF_ERROR(ReadModules());
    return ReadPrompts();
  }

 private:
  std::string File(absl::string_view name) const {
    return FileOf(checkpoint_, name);
  }

  absl::Status ReadModules() {
    absl::StatusOr<nlohmann::json> modules =
        checkpoint_.ReadJson("modules.json");
    if (absl::IsNotFound(modules.status())) return absl::OkStatus();
    if (!modules.ok()) return modules.status();
    const std::string file = File("modules.json");
    if (!modules->is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": expected a list of modules, found ",
                       DescribeJson(*modules)));
    }
    for (size_t i = 0; i < modules->size(); ++i) {
      const std::string where = absl::StrCat(file, ": module ", i);
      LANEWISE_ASSIGN_OR_RETURN(const std::string type,
                                GetString((*modules)[i], where, "type"));
      LANEWISE_ASSIGN_OR_RETURN(const std::string path,
                                GetStringOr((*modules)[i], where, "path", ""));
      LANEWISE_RETURN_IF_ERROR(ReadModule(where, type, path));
    }
    return absl::OkStatus();
  }

  absl::Status ReadModule(absl::string_view where, absl::string_view type,
                          absl::string_view path) {
    const absl::string_view name = ClassName(type);
    if (config_.normalize && name != "Dropout") {
      return absl::UnimplementedError(
          absl::StrCat(where, ": expected nothing after Normalize, found ",
                       Printable(type)));
    }
    if (name == "Transformer") {
      if (path.empty()) return absl::OkStatus();
      return absl::UnimplementedError(absl::StrCat(
          where,
          ": path: expected the Transformer in the folder itself, found "
          "it in \"",
          Printable(path), "\": name that folder as the model"));
    }
    if (name == "Pooling") return ReadPooling(path);
    if (name == "Dense") return ReadDense(path);
    if (name == "Normalize") config_.normalize = true;
    if (name == "Normalize" || name == "Dropout") return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        where,
        ": type: expected Transformer, Pooling, Dense, Dropout or Normalize, "
        "found ",
        Printable(type)));
  }

  absl::Status ReadPooling(absl::string_view path) {
    const std::string name = absl::StrCat(path, "/config.json");
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json json,
                              checkpoint_.ReadJson(name));
    const std::string file = File(name);
    config_.pooling.clear();
    for (const PoolingKey& known : kPoolingKeys) {
      LANEWISE_ASSIGN_OR_RETURN(const bool on,
                                GetBoolOr(json, file, known.key, false));
      if (on) config_.pooling.push_back(known.pooling);
    }
    if (config_.pooling.empty()) {
      LANEWISE_RETURN_IF_ERROR(ReadPoolingWord(json, file));
    }
    config_.pooling_stated = true;
    LANEWISE_ASSIGN_OR_RETURN(config_.pool_prompt,
                              GetBoolOr(json, file, "include_prompt", true));
    return absl::OkStatus();
  }

  // Newer files name the mode instead.
  absl::Status ReadPoolingWord(const nlohmann::json& json,
                               absl::string_view file) {
    LANEWISE_ASSIGN_OR_RETURN(const std::string word,
                              GetStringOr(json, file, "pooling_mode", ""));
    std::string words;
    for (const PoolingKey& known : kPoolingKeys) {
      if (word == known.word) {
        config_.pooling.push_back(known.pooling);
        return absl::OkStatus();
      }
      absl::StrAppend(&words, words.empty() ? "" : ", ", known.word);
    }
    return absl::UnimplementedError(
        absl::StrCat(file, ": pooling_mode: expected one of ", words,
                     ", found ", word.empty() ? "none" : Printable(word)));
  }

  absl::Status ReadDense(absl::string_view path) {
    if (config_.dense.size() == kMaxDense) {
      return absl::ResourceExhaustedError(
          absl::StrCat(File("modules.json"), ": expected at most ", kMaxDense,
                       " dense layers, found more"));
    }
    const std::string name = absl::StrCat(path, "/config.json");
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json json,
                              checkpoint_.ReadJson(name));
    const std::string file = File(name);
    EmbedDenseConfig dense;
    dense.file = File(absl::StrCat(path, "/model.safetensors"));
    LANEWISE_ASSIGN_OR_RETURN(dense.in,
                              GetUint(json, file, "in_features", kMaxWidth));
    LANEWISE_ASSIGN_OR_RETURN(dense.out,
                              GetUint(json, file, "out_features", kMaxWidth));
    LANEWISE_ASSIGN_OR_RETURN(dense.bias, GetBoolOr(json, file, "bias", true));
    LANEWISE_ASSIGN_OR_RETURN(
        const std::string type,
        GetStringOr(json, file, "activation_function", "Tanh"));
    std::string names;
    for (const ActivationClass& known : kActivationClasses) {
      if (ClassName(type) == known.name) {
        dense.activation = known.activation;
        config_.dense.push_back(std::move(dense));
        return absl::OkStatus();
      }
      absl::StrAppend(&names, names.empty() ? "" : ", ", known.name);
    }
    return absl::UnimplementedError(
        absl::StrCat(file, ": activation_function: expected one of ", names,
                     ", found ", Printable(type)));
  }

  absl::Status ReadPrompts() {
    constexpr absl::string_view kName = "config_sentence_transformers.json";
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json json,
                              ReadOptional(checkpoint_, kName));
    const std::string file = File(kName);
    LANEWISE_ASSIGN_OR_RETURN(
        config_.default_prompt,
        GetStringOr(json, file, "default_prompt_name", ""));
    if (FindJson(json, "prompts") != nullptr) {
      LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* prompts,
                                GetObject(json, file, "prompts"));
      for (const auto& entry : prompts->items()) {
        LANEWISE_ASSIGN_OR_RETURN(
            std::string text,
            GetString(*prompts, absl::StrCat(file, ": prompts"), entry.key()));
        config_.prompts.emplace_back(entry.key(), std::move(text));
      }
    }
    const auto is_default = [this](const auto& prompt) {
      return prompt.first == config_.default_prompt;
    };
    if (config_.default_prompt.empty() ||
        std::any_of(config_.prompts.begin(), config_.prompts.end(),
                    is_default)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": default_prompt_name: expected a name of prompts, found \"",
        Printable(config_.default_prompt), "\""));
  }

  const Checkpoint& checkpoint_;
  EmbedConfig& config_;
};

// Whatever the architecture that the key begins with.
absl::Status ReadMetadata(const Metadata& metadata, EmbedConfig* config) {
  config->normalize = true;
  const auto is_pooling = [](const std::string& key) {
    return absl::EndsWith(key, ".pooling_type");
  };
  const auto found =
      std::find_if(metadata.keys().begin(), metadata.keys().end(), is_pooling);
  if (found == metadata.keys().end()) return absl::OkStatus();
  const std::string& key = *found;
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t type,
                            metadata.GetUint(key, UINT32_MAX));
  // 0 is none; 4 ranks pairs.
  constexpr EmbedPooling kTypes[] = {EmbedPooling::kModel, EmbedPooling::kMean,
                                     EmbedPooling::kFirst, EmbedPooling::kLast};
  if (type == 0) return absl::OkStatus();
  if (type >= std::size(kTypes)) {
    return absl::UnimplementedError(
        absl::StrCat(metadata.file(), ": ", key,
                     ": expected 0 (none), 1 (mean), 2 (first) or 3 (last), "
                     "found ",
                     type));
  }
  config->pooling = {kTypes[type]};
  config->pooling_stated = true;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TextLimit> ReadTextLimit(const Checkpoint& checkpoint,
                                        const ModelSpec& spec,
                                        const Tokenizer& tokenizer) {
  TextLimit limit;
  limit.max_tokens = spec.max_positions;
  if (checkpoint.kind() == CheckpointKind::kGguf) return limit;
  constexpr absl::string_view kTokenizer = "tokenizer_config.json";
  constexpr absl::string_view kSentence = "sentence_bert_config.json";
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                            ReadOptional(checkpoint, kTokenizer));
  const std::string file = FileOf(checkpoint, kTokenizer);
  LANEWISE_ASSIGN_OR_RETURN(
      const std::string side,
      GetStringOr(config, file, "truncation_side", "right"));
  limit.truncate_left = side == "left";
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json sentence,
                            ReadOptional(checkpoint, kSentence));
  LANEWISE_ASSIGN_OR_RETURN(limit.lowercase,
                            GetBoolOr(sentence, FileOf(checkpoint, kSentence),
                                      "do_lower_case", false));
  LANEWISE_ASSIGN_OR_RETURN(uint64_t length,
                            GetUintOr(sentence, FileOf(checkpoint, kSentence),
                                      "max_seq_length", UINT32_MAX, 0));
  if (length == 0) {
    LANEWISE_ASSIGN_OR_RETURN(const double stated,
                              GetFloatOr(config, file, "model_max_length", 0));
    // 1e30 stands for no limit.
    if (stated >= 1 && stated < 1e9) length = static_cast<uint64_t>(stated);
  }
  if (length == 0) length = tokenizer.max_length().value_or(0);
  if (length > 0) limit.max_tokens = std::min<size_t>(limit.max_tokens, length);
  return limit;
}

absl::StatusOr<EmbedConfig> ReadEmbedConfig(const Checkpoint& checkpoint,
                                            const ModelSpec& spec,
                                            const Tokenizer& tokenizer) {
  EmbedConfig config;
  LANEWISE_ASSIGN_OR_RETURN(config.limit,
                            ReadTextLimit(checkpoint, spec, tokenizer));
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    LANEWISE_RETURN_IF_ERROR(ReadMetadata(checkpoint.metadata(), &config));
  } else {
    LANEWISE_RETURN_IF_ERROR(FolderReader(checkpoint, &config).Read());
  }
  if (config.pooling.empty()) {
    config.pooling = {spec.bidirectional() ? EmbedPooling::kMean
                                           : EmbedPooling::kLast};
  }
  return config;
}

}  // namespace lanewise
