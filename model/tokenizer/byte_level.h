// GPT-2's way to write any bytes as printable characters: printable Latin-1
// bytes stand for themselves, the 68 others for U+0100 to U+0143. Vocabularies
// of byte-level BPE are spelled so ("Ġ" is a space).
#ifndef LANEWISE_MODEL_TOKENIZER_BYTE_LEVEL_H_
#define LANEWISE_MODEL_TOKENIZER_BYTE_LEVEL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lanewise {

// Appends the characters of `bytes`: one or two bytes of UTF-8 each.
void AppendByteLevel(absl::string_view bytes, std::string* out);

// Appends the bytes `token` stands for; a token with any other character is
// appended as it is.
void AppendByteLevelDecoded(absl::string_view token, std::string* out);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_BYTE_LEVEL_H_
