#include "tools/escaped.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lanewise {
namespace {

// Length of the well-formed UTF-8 character at the start of `text`, 0 if there
// is none; its code point in *code. Unicode 15, table 3-7.
size_t Character(absl::string_view text, uint32_t* code) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) {
    *code = lead;
    return 1;
  }
  const size_t length = lead < 0xC2   ? 0
                        : lead < 0xE0 ? 2
                        : lead < 0xF0 ? 3
                        : lead < 0xF5 ? 4
                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  uint32_t value = lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  const bool overlong =
      (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || (value >= 0xD800 && value < 0xE000) || value > 0x10FFFF) {
    return 0;
  }
  *code = value;
  return length;
}

bool IsControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

bool MovesText(uint32_t code) {
  return (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x200E ||
         code == 0x200F || code == 0x061C;
}

struct Rules {
  bool one_line = true;
  bool backslash = true;  // doubled
};

std::string Escape(absl::string_view text, Rules rules) {
  std::string out;
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t length = Character(text, &code);
    if (length == 0) {
      absl::StrAppendFormat(&out, "\\x%02x", static_cast<uint8_t>(text[0]));
    } else if (!rules.one_line && (code == '\n' || code == '\t')) {
      out.push_back(text[0]);
    } else if (code == '\n' || code == '\t' || code == '\r') {
      absl::StrAppend(&out, code == '\n'   ? "\\n"
                            : code == '\t' ? "\\t"
                                           : "\\r");
    } else if (rules.backslash && code == '\\') {
      absl::StrAppend(&out, "\\\\");
    } else if (IsControl(code) || (rules.one_line && MovesText(code))) {
      absl::StrAppendFormat(&out, "\\u{%x}", code);
    } else {
      out.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string Cut(absl::string_view text, size_t max, Rules rules) {
  if (text.size() <= max) return Escape(text, rules);
  // Not in the middle of a character.
  while (max > 0 && (static_cast<uint8_t>(text[max]) & 0xC0) == 0x80) --max;
  return Escape(text.substr(0, max), rules) + "...";
}

}  // namespace

std::string Escaped(absl::string_view text, size_t max) {
  return Cut(text, max, {});
}

std::string OneLine(absl::string_view text, size_t max) {
  return Cut(text, max, {true, false});
}

std::string ForTerminal(absl::string_view text) {
  return Escape(text, {false, false});
}

}  // namespace lanewise
