// From a request to token ids: chat template, special tokens, tokenizer.
#ifndef LANEWISE_RUNTIME_PROMPT_H_
#define LANEWISE_RUNTIME_PROMPT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "model/chat/chat_template.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/special_tokens.h"

namespace lanewise {

class PromptBuilder {
 public:
  // Reads tokenizer, special tokens and chat template. A template that does not
  // parse is an error only when it is used.
  static absl::StatusOr<std::unique_ptr<PromptBuilder>> Load(
      const Checkpoint& checkpoint);

  // The ids of a request. Message contents never become control tokens, and at
  // most one beginning-of-sequence token stands in front.
  absl::StatusOr<std::vector<int32_t>> Ids(
      const GenerateRequest& request) const;

  absl::StatusOr<RenderedPrompt> Render(
      absl::Span<const Message> messages) const;

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const SpecialTokens& special() const { return special_; }
  bool has_chat_template() const { return has_template_; }

 private:
  PromptBuilder() = default;

  absl::StatusOr<std::vector<int32_t>> ChatIds(
      absl::Span<const Message> messages) const;

  std::string path_;
  std::unique_ptr<Tokenizer> tokenizer_;
  SpecialTokens special_;
  bool adds_bos_ = false;  // whether the tokenizer puts one before a text
  bool has_template_ = false;
  absl::StatusOr<ChatTemplate> template_ =
      absl::FailedPreconditionError("no chat template");
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_PROMPT_H_
