#include "tests/conformance/run_params.h"

#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr char kFile[] = "params";
constexpr int64_t kMaxId = (int64_t{1} << 31) - 1;
constexpr uint64_t kMaxTokens = 1 << 20;

absl::StatusOr<int32_t> ToId(const nlohmann::json& value,
                             const std::string& key) {
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t id,
                            ToUint(value, kFile, key, kMaxId));
  return static_cast<int32_t>(id);
}

absl::StatusOr<std::vector<int32_t>> ToIds(const nlohmann::json& value,
                                           const std::string& key) {
  std::vector<int32_t> ids;
  for (const nlohmann::json& one :
       value.is_array() ? value : nlohmann::json::array({value})) {
    LANEWISE_ASSIGN_OR_RETURN(const int32_t id, ToId(one, key));
    ids.push_back(id);
  }
  return ids;
}

// What a key of the parameters does to them.
using Reader = std::function<absl::Status(
    const nlohmann::json& value, const std::string& key, RunParams* params)>;

template <class Field>
Reader Id(Field field) {
  return [field](const nlohmann::json& value, const std::string& key,
                 RunParams* params) -> absl::Status {
    LANEWISE_ASSIGN_OR_RETURN(field(*params), ToId(value, key));
    return absl::OkStatus();
  };
}

template <class Field>
Reader Number(Field field) {
  return [field](const nlohmann::json& value, const std::string& key,
                 RunParams* params) -> absl::Status {
    LANEWISE_ASSIGN_OR_RETURN(field(*params), ToFloat(value, kFile, key));
    return absl::OkStatus();
  };
}

template <class Field>
Reader Count(Field field) {
  return [field](const nlohmann::json& value, const std::string& key,
                 RunParams* params) -> absl::Status {
    LANEWISE_ASSIGN_OR_RETURN(field(*params),
                              ToUint(value, kFile, key, kMaxTokens));
    return absl::OkStatus();
  };
}

absl::Status ReadEarlyStopping(const nlohmann::json& value,
                               const std::string& key, RunParams* params) {
  if (value.is_boolean()) {
    params->beams.early_stopping =
        value.get<bool>() ? EarlyStopping::kYes : EarlyStopping::kNo;
    return absl::OkStatus();
  }
  if (value == "never") {
    params->beams.early_stopping = EarlyStopping::kNever;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": expected true, false or \"never\""));
}

absl::Status ReadEnds(const nlohmann::json& value, const std::string& key,
                      RunParams* params) {
  LANEWISE_ASSIGN_OR_RETURN(params->eos_ids, ToIds(value, key));
  return absl::OkStatus();
}

template <class Field>
Reader List(Field field) {
  return [field](const nlohmann::json& value, const std::string& key,
                 RunParams* params) -> absl::Status {
    LANEWISE_ASSIGN_OR_RETURN(field(*params), ToIds(value, key));
    return absl::OkStatus();
  };
}

// Of an encoder-decoder's sequences, the start token counted.
absl::Status ReadMinLength(const nlohmann::json& value, const std::string& key,
                           RunParams* params) {
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t length,
                            ToUint(value, kFile, key, kMaxTokens));
  if (length > 0) {
    params->processors.min_new_tokens = static_cast<int32_t>(length - 1);
  }
  return absl::OkStatus();
}

absl::Status ReadBadWords(const nlohmann::json& value, const std::string& key,
                          RunParams* params) {
  for (const nlohmann::json& one : value) {
    LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> word, ToIds(one, key));
    params->processors.bad_words.push_back(std::move(word));
  }
  return absl::OkStatus();
}

const std::map<std::string, Reader>& Readers() {
  static const auto& readers = *new std::map<std::string, Reader>{
      {"num_beams",
       Count([](RunParams & p) -> auto& { return p.beams.num_beams; })},
      {"num_return_sequences", Count([](RunParams & p) -> auto& {
         return p.beams.num_return_sequences;
       })},
      {"length_penalty",
       Number([](RunParams & p) -> auto& { return p.beams.length_penalty; })},
      {"early_stopping", ReadEarlyStopping},
      {"max_new_tokens",
       Count([](RunParams & p) -> auto& { return p.max_new_tokens; })},
      {"max_length",
       Count([](RunParams & p) -> auto& { return p.max_length; })},
      {"eos_token_id", ReadEnds},
      {"pad_token_id", Id([](RunParams & p) -> auto& { return p.pad_id; })},
      {"decoder_start_token_id",
       Id([](RunParams & p) -> auto& { return p.start_id; })},
      {"repetition_penalty", Number([](RunParams & p) -> auto& {
         return p.processors.repetition_penalty;
       })},
      {"no_repeat_ngram_size", Count([](RunParams & p) -> auto& {
         return p.processors.no_repeat_ngram;
       })},
      {"min_new_tokens", Count([](RunParams & p) -> auto& {
         return p.processors.min_new_tokens;
       })},
      {"min_length", ReadMinLength},
      {"bad_words_ids", ReadBadWords},
      {"suppress_tokens", List([](RunParams & p) -> auto& {
         return p.processors.suppressed_ids;
       })},
      {"begin_suppress_tokens", List([](RunParams & p) -> auto& {
         return p.processors.begin_suppressed_ids;
       })},
      {"forced_bos_token_id",
       Id([](RunParams & p) -> auto& { return p.processors.forced_first_id; })},
      {"forced_eos_token_id",
       Id([](RunParams & p) -> auto& { return p.processors.forced_last_id; })},
  };
  return readers;
}

}  // namespace

bool HasBeams(const nlohmann::json& run) {
  const nlohmann::json* params = FindJson(run, "params");
  const nlohmann::json* beams =
      params == nullptr ? nullptr : FindJson(*params, "num_beams");
  return beams != nullptr && beams->is_number() && *beams > 1;
}

absl::StatusOr<RunParams> ReadRunParams(const nlohmann::json& run) {
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* object,
                            GetObject(run, "run", "params"));
  LANEWISE_ASSIGN_OR_RETURN(RunParams params, ReadParams(*object));
  LANEWISE_ASSIGN_OR_RETURN(
      params.prompt_length,
      GetUintOr(run, "run", "prompt_length", kMaxTokens, 0));
  return params;
}

absl::StatusOr<RunParams> ReadParams(const nlohmann::json& params) {
  // What these say holds for every run, or is of no effect here.
  const std::set<std::string> understood = {
      "do_sample", "use_cache", "bos_token_id", "transformers_version"};
  RunParams out;
  for (const auto& [key, value] : params.items()) {
    if (value.is_null() || understood.count(key) != 0) continue;
    const auto reader = Readers().find(key);
    if (reader == Readers().end()) {
      return absl::UnimplementedError(
          absl::StrCat("parameter ", key, " is not supported"));
    }
    LANEWISE_RETURN_IF_ERROR(reader->second(value, key, &out));
  }
  return out;
}

absl::StatusOr<TextRun> ReadTextRun(const nlohmann::json& run,
                                    const std::string& file) {
  TextRun out;
  LANEWISE_ASSIGN_OR_RETURN(out.name, GetStringOr(run, file, "run", ""));
  LANEWISE_ASSIGN_OR_RETURN(out.text, GetString(run, file, "text"));
  if (FindJson(run, "pair") != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(out.pair, GetString(run, file, "pair"));
  }
  const auto ids = [&](const char* key,
                       std::vector<int32_t>* to) -> absl::Status {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* found,
                              GetArray(run, file, key));
    LANEWISE_ASSIGN_OR_RETURN(*to, ToIds(*found, key));
    return absl::OkStatus();
  };
  LANEWISE_RETURN_IF_ERROR(ids("input_ids", &out.input_ids));
  if (run.contains("token_type_ids")) {
    LANEWISE_RETURN_IF_ERROR(ids("token_type_ids", &out.type_ids));
  }
  if (run.contains("new_ids")) {
    LANEWISE_RETURN_IF_ERROR(ids("new_ids", &out.new_ids));
    LANEWISE_ASSIGN_OR_RETURN(out.new_text, GetString(run, file, "new_text"));
  }
  return out;
}

}  // namespace lanewise
