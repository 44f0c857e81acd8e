#include "model/chat/string_literal.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

// The character that stands for itself after a backslash, or 0.
char SimpleEscape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return 0;
  }
}

absl::StatusOr<uint32_t> HexDigits(absl::string_view body, size_t pos,
                                   size_t n) {
  const absl::string_view digits = body.substr(pos, n);
  uint32_t value = 0;
  if (digits.size() < n || !absl::SimpleHexAtoi(digits, &value) ||
      !absl::ascii_isxdigit(digits[0])) {
    return absl::InvalidArgumentError("a truncated \\x, \\u or \\U escape");
  }
  return value;
}

// \x, \u, \U at *pos (the letter); moves behind the digits.
absl::Status HexEscape(absl::string_view body, size_t* pos, std::string* out) {
  const char letter = body[*pos];
  const size_t n = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
  LANEWISE_ASSIGN_OR_RETURN(uint32_t c, HexDigits(body, *pos + 1, n));
  *pos += n + 1;
  if (c >= 0xD800 && c < 0xE000) {
    return absl::InvalidArgumentError("an escape spells half a surrogate pair");
  }
  if (c > 0x10FFFF) {
    return absl::InvalidArgumentError("an escape beyond U+10FFFF");
  }
  AppendUtf8(c, out);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> UnescapeLiteral(absl::string_view body) {
  std::string out;
  out.reserve(body.size());
  for (size_t pos = 0; pos < body.size();) {
    if (body[pos] != '\\' || pos + 1 == body.size()) {
      out += body[pos++];
      continue;
    }
    const char c = body[++pos];
    if (const char simple = SimpleEscape(c); simple != 0) {
      out += simple;
      ++pos;
    } else if (c == '\n') {
      ++pos;  // the line goes on
    } else if (c == 'x' || c == 'u' || c == 'U') {
      LANEWISE_RETURN_IF_ERROR(HexEscape(body, &pos, &out));
    } else if (c >= '0' && c <= '7') {
      char32_t value = 0;
      for (int i = 0;
           i < 3 && pos < body.size() && body[pos] >= '0' && body[pos] <= '7';
           ++i) {
        value = value * 8 + static_cast<char32_t>(body[pos++] - '0');
      }
      AppendUtf8(value, &out);
    } else if (c == 'N') {
      return absl::UnimplementedError("the escape \\N{…} in a string");
    } else {
      out += '\\';
    }
  }
  return out;
}

}  // namespace lanewise::chat
