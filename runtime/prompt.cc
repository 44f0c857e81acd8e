#include "runtime/prompt.h"

#include <ctime>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/utf8.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Byte ranges of a rendered prompt are of the text that is tokenized, so
// invalid bytes are replaced before, not after.
std::string ToValidUtf8(absl::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.Append(bytes);
  return text + stream.Finish();
}

constexpr size_t kMaxTemplateError = 1000;  // bytes: templates raise their own

// What a template's parser or renderer says, with the model's path.
absl::Status TemplateError(const absl::Status& status, absl::string_view path) {
  constexpr absl::string_view kPrefix = "chat template: ";
  absl::string_view text = status.message();
  absl::ConsumePrefix(&text, kPrefix);
  const bool cut = text.size() > kMaxTemplateError;
  if (cut) text = text.substr(0, kMaxTemplateError);
  return absl::Status(
      status.code(),
      absl::StrCat(path, ": ", kPrefix, ToValidUtf8(text), cut ? "..." : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PromptBuilder>> PromptBuilder::Load(
    const Checkpoint& checkpoint) {
  auto builder = absl::WrapUnique(new PromptBuilder);
  builder->path_ = checkpoint.path();
  LANEWISE_ASSIGN_OR_RETURN(builder->tokenizer_, Tokenizer::Load(checkpoint));
  LANEWISE_ASSIGN_OR_RETURN(
      builder->special_, ReadSpecialTokens(checkpoint, *builder->tokenizer_));
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> around_nothing,
                            builder->tokenizer_->Encode("", {}));
  builder->adds_bos_ = builder->special_.bos.has_value() &&
                       !around_nothing.empty() &&
                       around_nothing.front() == *builder->special_.bos;
  LANEWISE_ASSIGN_OR_RETURN(const std::optional<std::string> source,
                            ReadChatTemplate(checkpoint));
  if (source.has_value()) {
    builder->has_template_ = true;
    builder->template_ = ChatTemplate::Parse(*source);
  }
  return builder;
}

absl::StatusOr<RenderedPrompt> PromptBuilder::Render(
    absl::Span<const Message> messages) const {
  if (!has_template_) {
    return absl::FailedPreconditionError(absl::StrCat(
        path_,
        ": the model has no chat template; give the prompt as plain text"));
  }
  if (!template_.ok()) {
    return TemplateError(template_.status(), path_);
  }
  nlohmann::ordered_json variables;
  variables["messages"] = nlohmann::ordered_json::array();
  for (const Message& message : messages) {
    variables["messages"].push_back(
        {{"role", ToValidUtf8(message.role)},
         {"content", ToValidUtf8(message.content)}});
  }
  variables["add_generation_prompt"] = true;
  variables["bos_token"] = special_.bos_text;
  variables["eos_token"] = special_.eos_text;
  ChatTemplate::RenderOptions options;
  options.now_unix_seconds = static_cast<int64_t>(std::time(nullptr));
  absl::StatusOr<RenderedPrompt> prompt =
      template_->Render(variables, {"bos_token", "eos_token"}, options);
  if (!prompt.ok()) {
    return TemplateError(prompt.status(), path_);
  }
  return prompt;
}

absl::StatusOr<std::vector<int32_t>> PromptBuilder::ChatIds(
    absl::Span<const Message> messages) const {
  LANEWISE_ASSIGN_OR_RETURN(const RenderedPrompt prompt, Render(messages));
  EncodeOptions options;
  options.add_special_tokens = options.truncate = options.pad = false;
  options.parse_special_tokens = true;
  options.plain_ranges = prompt.from_input;
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            tokenizer_->Encode(prompt.text, options));
  // A template that writes the beginning token itself gets no second one.
  if (adds_bos_ && (ids.empty() || ids.front() != *special_.bos)) {
    ids.insert(ids.begin(), *special_.bos);
  }
  return ids;
}

absl::StatusOr<std::vector<int32_t>> PromptBuilder::Ids(
    const GenerateRequest& request) const {
  const int given = !request.messages.empty() + !request.prompt.empty() +
                    !request.prompt_ids.empty();
  if (given == 0) {
    return absl::InvalidArgumentError(
        "request: expected messages, a prompt or token ids, found none (an "
        "empty prompt cannot be continued)");
  }
  if (given > 1) {
    return absl::InvalidArgumentError(
        "request: expected one of messages, prompt and prompt_ids, found "
        "several");
  }
  if (!request.prompt_ids.empty()) return request.prompt_ids;
  if (!request.messages.empty()) return ChatIds(request.messages);
  // What a tokenizer file pads to or cuts at is not the caller's text.
  EncodeOptions options;
  options.truncate = options.pad = false;
  options.parse_special_tokens = request.parse_special;
  return tokenizer_->Encode(request.prompt, options);
}

}  // namespace lanewise
