// Splits a template into text and the tokens of its tags.
//
//   Tokenize("Hi {{ name }}") -> text "Hi ", {{, name "name", }}, end
//
// White space is already controlled (trim_blocks, lstrip_blocks, `-`, `+`),
// comments are gone, raw blocks are text, line ends are "\n" and one at the end
// of the template is dropped.
#ifndef LANEWISE_MODEL_CHAT_LEXER_H_
#define LANEWISE_MODEL_CHAT_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise::chat {

constexpr size_t kMaxTemplateBytes = size_t{16} << 20;

enum class TokenType {
  kText,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,   // `text` is the value, escapes resolved
  kInteger,  // `integer`
  kFloat,    // `number`
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;
  int line = 1;
  int column = 1;  // in bytes
  int64_t integer = 0;
  double number = 0;
};

// INVALID_ARGUMENT "line L, column C: what".
absl::Status SyntaxError(int line, int column, absl::string_view what);

// The last token is kEnd. INVALID_ARGUMENT with line and column.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_LEXER_H_
