// What a checkpoint says of its special tokens and its chat template.
#ifndef LANEWISE_RUNTIME_SPECIAL_TOKENS_H_
#define LANEWISE_RUNTIME_SPECIAL_TOKENS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"

namespace lanewise {

struct SpecialTokens {
  std::optional<int32_t> bos;
  std::string bos_text, eos_text;  // as templates see them; empty: none
  std::vector<int32_t> end_ids;    // end of text, turn or message; ascending
};

// Folder: generation_config.json, else config.json, and tokenizer_config.json.
// GGUF: tokenizer.ggml.*_token_id. Special tokens that published chat formats
// end a turn with count as ends in both.
absl::StatusOr<SpecialTokens> ReadSpecialTokens(const Checkpoint& checkpoint,
                                                const Tokenizer& tokenizer);

// The source of the chat template; unset when there is none.
absl::StatusOr<std::optional<std::string>> ReadChatTemplate(
    const Checkpoint& checkpoint);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SPECIAL_TOKENS_H_
