// Escapes in the string literals of a template, with Python's meaning.
#ifndef LANEWISE_MODEL_CHAT_STRING_LITERAL_H_
#define LANEWISE_MODEL_CHAT_STRING_LITERAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise::chat {

// `body`: what stands between the quotes. Unknown escapes stay as they are.
// INVALID_ARGUMENT for malformed ones, UNIMPLEMENTED for \N{…}.
absl::StatusOr<std::string> UnescapeLiteral(absl::string_view body);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_STRING_LITERAL_H_
