#include "runtime/special_tokens.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Control tokens that end a turn in published chat formats. A vocabulary that
// has one of them as a special token means just that by it.
constexpr absl::string_view kEndTexts[] = {
    "<|im_end|>",    "<|eot_id|>",      "<|eom_id|>",     "<|end|>",
    "<end_of_turn>", "<|end_of_text|>", "<|end_of_turn|>"};

void AddEnd(int64_t id, SpecialTokens* special) {
  if (id < 0 || id > INT32_MAX) return;
  special->end_ids.push_back(static_cast<int32_t>(id));
}

// An id or a list of ids.
absl::Status AddEndIds(const nlohmann::json& object, absl::string_view file,
                       SpecialTokens* special) {
  const nlohmann::json* value = FindJson(object, "eos_token_id");
  if (value == nullptr) return absl::OkStatus();
  const auto add = [&](const nlohmann::json& id) -> absl::Status {
    if (!id.is_number_integer()) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": eos_token_id: expected integers, found ", id.type_name()));
    }
    AddEnd(id.get<int64_t>(), special);
    return absl::OkStatus();
  };
  if (!value->is_array()) return add(*value);
  for (const nlohmann::json& id : *value) LANEWISE_RETURN_IF_ERROR(add(id));
  return absl::OkStatus();
}

// A token as tokenizer_config.json spells it: text, or {"content": text}.
std::string TokenTextOf(const nlohmann::json& config, const char* key) {
  const nlohmann::json* value = FindJson(config, key);
  if (value != nullptr && value->is_object()) {
    value = FindJson(*value, "content");
  }
  if (value == nullptr || !value->is_string()) return "";
  return value->get<std::string>();
}

// A JSON file beside the weights; an empty object when there is none.
absl::StatusOr<nlohmann::json> ReadOptional(const Checkpoint& checkpoint,
                                            absl::string_view name) {
  absl::StatusOr<nlohmann::json> json = checkpoint.ReadJson(name);
  if (absl::IsNotFound(json.status())) return nlohmann::json::object();
  return json;
}

absl::Status ReadFromFolder(const Checkpoint& checkpoint,
                            const Tokenizer& tokenizer,
                            SpecialTokens* special) {
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json generation,
                            ReadOptional(checkpoint, "generation_config.json"));
  LANEWISE_RETURN_IF_ERROR(AddEndIds(
      generation, absl::StrCat(checkpoint.path(), "/generation_config.json"),
      special));
  if (special->end_ids.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                              ReadOptional(checkpoint, "config.json"));
    LANEWISE_RETURN_IF_ERROR(AddEndIds(
        config, absl::StrCat(checkpoint.path(), "/config.json"), special));
  }
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json tokenizer_config,
                            ReadOptional(checkpoint, "tokenizer_config.json"));
  special->bos_text = TokenTextOf(tokenizer_config, "bos_token");
  special->eos_text = TokenTextOf(tokenizer_config, "eos_token");
  special->bos = tokenizer.TokenId(special->bos_text);
  if (const auto id = tokenizer.TokenId(special->eos_text)) {
    AddEnd(*id, special);
  }
  return absl::OkStatus();
}

absl::Status ReadFromGguf(const Metadata& metadata, const Tokenizer& tokenizer,
                          SpecialTokens* special) {
  special->bos = tokenizer.bos_id();
  if (special->bos) special->bos_text = tokenizer.TokenText(*special->bos);
  if (const auto eos = tokenizer.eos_id()) {
    special->eos_text = tokenizer.TokenText(*eos);
    AddEnd(*eos, special);
  }
  for (const char* key :
       {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (!metadata.Has(key)) continue;
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t id,
                              metadata.GetUint(key, INT32_MAX));
    AddEnd(static_cast<int64_t>(id), special);
  }
  return absl::OkStatus();
}

// Newer folders hold a file; older ones a string, or a list of named templates
// of which "default" counts.
absl::StatusOr<std::optional<std::string>> TemplateOfFolder(
    const Checkpoint& checkpoint) {
  absl::StatusOr<std::string> text = checkpoint.ReadText("chat_template.jinja");
  if (text.ok()) return *std::move(text);
  if (!absl::IsNotFound(text.status())) return text.status();
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                            ReadOptional(checkpoint, "tokenizer_config.json"));
  const nlohmann::json* value = FindJson(config, "chat_template");
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_array()) {
    for (const nlohmann::json& entry : *value) {
      if (TokenTextOf(entry, "name") == "default") {
        return TokenTextOf(entry, "template");
      }
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      checkpoint.path(),
      "/tokenizer_config.json: chat_template: expected a string or a list with "
      "an entry named \"default\", found ",
      value->type_name()));
}

}  // namespace

absl::StatusOr<SpecialTokens> ReadSpecialTokens(const Checkpoint& checkpoint,
                                                const Tokenizer& tokenizer) {
  SpecialTokens special;
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    LANEWISE_RETURN_IF_ERROR(
        ReadFromGguf(checkpoint.metadata(), tokenizer, &special));
  } else {
    LANEWISE_RETURN_IF_ERROR(ReadFromFolder(checkpoint, tokenizer, &special));
  }
  for (const absl::string_view text : kEndTexts) {
    const std::optional<int32_t> id = tokenizer.TokenId(text);
    if (id && tokenizer.IsSpecial(*id)) AddEnd(*id, &special);
  }
  std::vector<int32_t>& ends = special.end_ids;
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return special;
}

absl::StatusOr<std::optional<std::string>> ReadChatTemplate(
    const Checkpoint& checkpoint) {
  if (checkpoint.kind() != CheckpointKind::kGguf) {
    return TemplateOfFolder(checkpoint);
  }
  constexpr absl::string_view kKey = "tokenizer.chat_template";
  if (!checkpoint.metadata().Has(kKey)) return std::nullopt;
  LANEWISE_ASSIGN_OR_RETURN(const absl::string_view text,
                            checkpoint.metadata().GetString(kKey));
  return std::string(text);
}

}  // namespace lanewise
