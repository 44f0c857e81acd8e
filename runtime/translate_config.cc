#include "runtime/translate_config.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr uint64_t kMaxId = std::numeric_limits<int32_t>::max();

// Every task holds what it does not set itself, so lists are bounded.
constexpr size_t kMaxTasks = 64;
constexpr size_t kMaxIds = 1 << 17;  // of a list
constexpr size_t kMaxBadWords = 1 << 14;

// What the reference takes where sampling is on and nothing is said.
constexpr double kSampledTemperature = 1.0;
constexpr uint64_t kSampledTopK = 50;

// Settings that this library has no counterpart of, with the values that turn
// them off.
struct Unsupported {
  const char* key;
  nlohmann::json off;
};

const std::vector<Unsupported>& UnsupportedSettings() {
  static const auto& settings = *new std::vector<Unsupported>{
      {"num_beam_groups", 1},
      {"diversity_penalty", 0.0},
      {"encoder_repetition_penalty", 1.0},
      {"encoder_no_repeat_ngram_size", 0},
      {"penalty_alpha", 0.0},
      {"renormalize_logits", false},
      {"exponential_decay_length_penalty", nullptr},
      {"sequence_bias", nullptr},
      {"eta_cutoff", 0.0},
      {"forced_decoder_ids", nullptr},
  };
  return settings;
}

// Reads the settings in one object, over those that are there.
class SettingsReader {
 public:
  SettingsReader(const nlohmann::json& object, std::string file)
      : object_(object), file_(std::move(file)) {}

  absl::Status Read(TranslateOptions* options) const {
    LANEWISE_RETURN_IF_ERROR(ReadLengths(options));
    LANEWISE_RETURN_IF_ERROR(ReadBeams(&options->beams));
    if (const absl::Status valid = Validate(options->beams); !valid.ok()) {
      return absl::Status(valid.code(),
                          absl::StrCat(file_, ": ", valid.message()));
    }
    LANEWISE_RETURN_IF_ERROR(
        ReadProcessors(*options->end_ids, &options->sampling));
    LANEWISE_RETURN_IF_ERROR(ReadSampling(options));
    return ReadId("decoder_start_token_id", &options->start_id);
  }

  void NoteUnsupported(std::vector<std::string>* notices) const {
    for (const Unsupported& setting : UnsupportedSettings()) {
      const nlohmann::json* value = FindJson(object_, setting.key);
      if (value == nullptr || *value == setting.off) continue;
      notices->push_back(absl::StrCat(file_, ": ", setting.key,
                                      " is not supported and was ignored"));
    }
  }

 private:
  absl::Status ReadLengths(TranslateOptions* options) const {
    int32_t& minimum = options->sampling.min_new_tokens;
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t min_length,
                              Count("min_length", uint64_t{0} + minimum + 1));
    LANEWISE_ASSIGN_OR_RETURN(
        const uint64_t min_new,
        Count("min_new_tokens", min_length > 0 ? min_length - 1 : 0));
    minimum = static_cast<int32_t>(min_new);
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t max_length,
                              Count("max_length", options->max_tokens + 1));
    LANEWISE_ASSIGN_OR_RETURN(
        options->max_tokens,
        Count("max_new_tokens", max_length > 0 ? max_length - 1 : 0));
    return absl::OkStatus();
  }

  absl::Status ReadBeams(BeamOptions* beams) const {
    LANEWISE_ASSIGN_OR_RETURN(
        const uint64_t num_beams,
        GetUintOr(object_, file_, "num_beams", BeamOptions::kMaxBeams,
                  uint64_t{0} + beams->num_beams, 1));
    beams->num_beams = static_cast<int32_t>(num_beams);
    LANEWISE_ASSIGN_OR_RETURN(
        const uint64_t returned,
        GetUintOr(object_, file_, "num_return_sequences",
                  BeamOptions::kMaxBeams,
                  uint64_t{0} + beams->num_return_sequences, 1));
    beams->num_return_sequences =
        static_cast<int32_t>(std::min(returned, num_beams));
    LANEWISE_ASSIGN_OR_RETURN(beams->length_penalty,
                              Number("length_penalty", beams->length_penalty));
    const nlohmann::json* early = FindJson(object_, "early_stopping");
    if (early == nullptr) return absl::OkStatus();
    if (early->is_boolean()) {
      beams->early_stopping =
          early->get<bool>() ? EarlyStopping::kYes : EarlyStopping::kNo;
    } else if (*early == "never") {
      beams->early_stopping = EarlyStopping::kNever;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          file_, ": early_stopping: expected true, false or \"never\", found ",
          DescribeJson(*early)));
    }
    return absl::OkStatus();
  }

  absl::Status ReadProcessors(const std::vector<int32_t>& end_ids,
                              SamplingOptions* options) const {
    LANEWISE_ASSIGN_OR_RETURN(
        options->repetition_penalty,
        Number("repetition_penalty", options->repetition_penalty));
    LANEWISE_ASSIGN_OR_RETURN(
        const uint64_t ngram,
        Count("no_repeat_ngram_size", uint64_t{0} + options->no_repeat_ngram));
    options->no_repeat_ngram = static_cast<int32_t>(ngram);
    LANEWISE_RETURN_IF_ERROR(
        ReadId("forced_bos_token_id", &options->forced_first_id));
    LANEWISE_RETURN_IF_ERROR(
        ReadId("forced_eos_token_id", &options->forced_last_id));
    LANEWISE_RETURN_IF_ERROR(
        ReadIds("suppress_tokens", &options->suppressed_ids));
    LANEWISE_RETURN_IF_ERROR(
        ReadIds("begin_suppress_tokens", &options->begin_suppressed_ids));
    return ReadBadWords(end_ids, &options->bad_words);
  }

  absl::Status ReadSampling(TranslateOptions* options) const {
    SamplingOptions& sampling = options->sampling;
    LANEWISE_ASSIGN_OR_RETURN(
        const bool sample,
        GetBoolOr(object_, file_, "do_sample", sampling.temperature > 0));
    if (!sample || options->beams.num_beams > 1) {
      sampling.temperature = 0;
      return absl::OkStatus();
    }
    LANEWISE_ASSIGN_OR_RETURN(sampling.temperature,
                              Number("temperature", kSampledTemperature));
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t top_k,
                              Count("top_k", kSampledTopK));
    sampling.top_k = static_cast<int32_t>(top_k);
    LANEWISE_ASSIGN_OR_RETURN(sampling.top_p, Number("top_p", 1.0));
    LANEWISE_ASSIGN_OR_RETURN(sampling.min_p, Number("min_p", 0.0));
    LANEWISE_ASSIGN_OR_RETURN(sampling.typical_p, Number("typical_p", 1.0));
    LANEWISE_ASSIGN_OR_RETURN(sampling.epsilon_cutoff,
                              Number("epsilon_cutoff", 0.0));
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Count(absl::string_view key, uint64_t absent) const {
    return GetUintOr(object_, file_, key, kMaxPositions, absent);
  }

  absl::StatusOr<double> Number(absl::string_view key, double absent) const {
    return GetFloatOr(object_, file_, key, absent);
  }

  // An id; of a list the first one.
  absl::Status ReadId(absl::string_view key,
                      std::optional<int32_t>* out) const {
    const nlohmann::json* value = FindJson(object_, key);
    if (value != nullptr && value->is_array()) {
      value = value->empty() ? nullptr : &value->front();
    }
    if (value == nullptr) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t id,
                              ToUint(*value, file_, key, kMaxId));
    *out = static_cast<int32_t>(id);
    return absl::OkStatus();
  }

  absl::Status ReadIds(absl::string_view key, std::vector<int32_t>* out) const {
    if (FindJson(object_, key) == nullptr) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* list,
                              GetArray(object_, file_, key));
    LANEWISE_ASSIGN_OR_RETURN(*out, ToIds(*list, key));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int32_t>> ToIds(const nlohmann::json& list,
                                             absl::string_view key) const {
    LANEWISE_RETURN_IF_ERROR(CheckSize(list, key, kMaxIds));
    std::vector<int32_t> ids;
    for (const nlohmann::json& value : list) {
      LANEWISE_ASSIGN_OR_RETURN(const uint64_t id,
                                ToUint(value, file_, key, kMaxId));
      ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
  }

  absl::Status CheckSize(const nlohmann::json& list, absl::string_view key,
                         size_t most) const {
    if (list.size() <= most) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ": ", key, ": expected at most ", most,
                     " entries, found ", list.size()));
  }

  // The reference does not forbid what ends a text, even if a list names it.
  absl::Status ReadBadWords(const std::vector<int32_t>& end_ids,
                            std::vector<std::vector<int32_t>>* out) const {
    constexpr absl::string_view kKey = "bad_words_ids";
    if (FindJson(object_, kKey) == nullptr) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* list,
                              GetArray(object_, file_, kKey));
    LANEWISE_RETURN_IF_ERROR(CheckSize(*list, kKey, kMaxBadWords));
    size_t left = kMaxIds;
    out->clear();
    for (const nlohmann::json& entry : *list) {
      if (!entry.is_array() || entry.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat(file_, ": ", kKey, ": expected lists of ids, found ",
                         DescribeJson(entry)));
      }
      LANEWISE_RETURN_IF_ERROR(CheckSize(entry, kKey, left));
      left -= entry.size();
      LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> word, ToIds(entry, kKey));
      const bool ends =
          word.size() == 1 &&
          std::binary_search(end_ids.begin(), end_ids.end(), word.front());
      if (!ends) out->push_back(std::move(word));
    }
    return absl::OkStatus();
  }

  const nlohmann::json& object_;
  std::string file_;
};

absl::StatusOr<nlohmann::json> ReadOptional(const Checkpoint& checkpoint,
                                            absl::string_view name) {
  absl::StatusOr<nlohmann::json> json = checkpoint.ReadJson(name);
  if (absl::IsNotFound(json.status())) return nlohmann::json::object();
  return json;
}

absl::Status ReadTasks(const nlohmann::json& config, const std::string& file,
                       TranslateConfig* out) {
  constexpr absl::string_view kKey = "task_specific_params";
  if (FindJson(config, kKey) == nullptr) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* tasks,
                            GetObject(config, file, kKey));
  if (tasks->size() > kMaxTasks) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", kKey, ": expected at most ", kMaxTasks,
                     " tasks, found ", tasks->size()));
  }
  for (const auto& [name, params] : tasks->items()) {
    const std::string where =
        absl::StrCat(file, ": ", kKey, ": ", Printable(name));
    if (!params.is_object()) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": expected an object, found ", DescribeJson(params)));
    }
    TranslateTask task{name, "", out->defaults};
    LANEWISE_ASSIGN_OR_RETURN(task.prefix,
                              GetStringOr(params, where, "prefix", ""));
    LANEWISE_RETURN_IF_ERROR(SettingsReader(params, where).Read(&task.options));
    out->tasks.push_back(std::move(task));
  }
  std::sort(out->tasks.begin(), out->tasks.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return absl::OkStatus();
}

absl::Status ReadFolder(const Checkpoint& checkpoint, TranslateConfig* out) {
  const std::string file = absl::StrCat(checkpoint.path(), "/config.json");
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                            ReadOptional(checkpoint, "config.json"));
  absl::StatusOr<nlohmann::json> generation =
      checkpoint.ReadJson("generation_config.json");
  if (generation.ok()) {
    // Some folders tell the start token in config.json alone.
    nlohmann::json start = nlohmann::json::object();
    if (const auto* id = FindJson(config, "decoder_start_token_id")) {
      start["decoder_start_token_id"] = *id;
    }
    LANEWISE_RETURN_IF_ERROR(SettingsReader(start, file).Read(&out->defaults));
    const SettingsReader reader(
        *generation,
        absl::StrCat(checkpoint.path(), "/generation_config.json"));
    LANEWISE_RETURN_IF_ERROR(reader.Read(&out->defaults));
    reader.NoteUnsupported(&out->notices);
  } else if (absl::IsNotFound(generation.status())) {
    const SettingsReader reader(config, file);
    LANEWISE_RETURN_IF_ERROR(reader.Read(&out->defaults));
    reader.NoteUnsupported(&out->notices);
  } else {
    return generation.status();
  }
  return ReadTasks(config, file, out);
}

absl::Status ReadGguf(const Metadata& metadata, TranslateOptions* defaults) {
  const std::string key = metadata.ArchitectureKey("decoder_start_token_id");
  if (!metadata.Has(key)) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t id, metadata.GetUint(key, kMaxId));
  defaults->start_id = static_cast<int32_t>(id);
  return absl::OkStatus();
}

}  // namespace

const TranslateTask* TranslateConfig::FindTask(absl::string_view name) const {
  for (const TranslateTask& task : tasks) {
    if (task.name == name) return &task;
  }
  return nullptr;
}

absl::StatusOr<TranslateConfig> ReadTranslateConfig(
    const Checkpoint& checkpoint, const SpecialTokens& special) {
  TranslateConfig config;
  config.defaults.end_ids = special.end_ids;
  config.defaults.start_id = special.bos;
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    LANEWISE_RETURN_IF_ERROR(ReadGguf(checkpoint.metadata(), &config.defaults));
  } else {
    LANEWISE_RETURN_IF_ERROR(ReadFolder(checkpoint, &config));
  }
  return config;
}

}  // namespace lanewise
