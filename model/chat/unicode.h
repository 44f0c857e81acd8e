// UTF-8 and the character classes of Python's str, as the template language
// sees them.
//
//   size_t pos = 0;
//   while (pos < s.size()) { char32_t c = DecodeUtf8(s, &pos); … }
//
// All functions expect valid UTF-8 (ValidUtf8); on anything else they stay in
// bounds and treat a stray byte as one character.
#ifndef LANEWISE_MODEL_CHAT_UNICODE_H_
#define LANEWISE_MODEL_CHAT_UNICODE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lanewise::chat {

// No surrogates, no overlong forms, nothing above U+10FFFF.
bool ValidUtf8(absl::string_view s);
bool IsAscii(absl::string_view s);

// Reads the character at *pos (< s.size()) and moves *pos behind it.
char32_t DecodeUtf8(absl::string_view s, size_t* pos);
void AppendUtf8(char32_t c, std::string* out);

// Length in code points, and the byte where code point `index` starts (or
// s.size() when there are fewer).
size_t CountCodePoints(absl::string_view s);
size_t ByteOffset(absl::string_view s, size_t index);

// str.isspace, str.isalpha, … of one character.
bool IsSpace(char32_t c);
bool IsAlpha(char32_t c);
bool IsDigit(char32_t c);
bool IsUpper(char32_t c);
bool IsLower(char32_t c);
// False where Python's repr escapes.
bool IsPrintable(char32_t c);
// Part of an identifier (XID_Continue, nearly: letters, marks, digits, _).
bool IsIdentifierPart(char32_t c);

// str.upper and so on. Full mappings for the characters that templates can
// plausibly meet (ß, ligatures, İ, the final Σ); simple ones elsewhere.
std::string ToUpper(absl::string_view s);
std::string ToLower(absl::string_view s);
std::string ToTitle(absl::string_view s);
std::string Capitalize(absl::string_view s);

// Bounds [begin, end) in bytes of `s` without white space at its ends.
size_t SkipSpace(absl::string_view s, size_t begin);
size_t TrimSpaceEnd(absl::string_view s, size_t begin, size_t end);

// Where `needle` starts at or after `from`, or npos; linear in time.
size_t FindLinear(absl::string_view s, absl::string_view needle, size_t from);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_UNICODE_H_
