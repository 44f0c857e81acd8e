#include "runtime/utf8.h"

namespace lanewise {

std::string Utf8Stream::Append(absl::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    if (missing_ > 0) {
      if (byte < low_ || byte > high_) {
        // The byte is looked at again as the first of a character.
        out += Finish();
        --i;
        continue;
      }
      held_ += bytes[i];
      low_ = 0x80;
      high_ = 0xBF;
      if (--missing_ == 0) {
        out += held_;
        held_.clear();
      }
    } else if (byte < 0x80) {
      out += bytes[i];
    } else if (byte < 0xC2 || byte > 0xF4) {
      out.append(kReplacementCharacter.data(), kReplacementCharacter.size());
    } else {
      held_ = bytes[i];
      missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      // No overlong forms, surrogates, or code points above U+10FFFF.
      if (byte == 0xE0) low_ = 0xA0;
      if (byte == 0xED) high_ = 0x9F;
      if (byte == 0xF0) low_ = 0x90;
      if (byte == 0xF4) high_ = 0x8F;
    }
  }
  return out;
}

std::string Utf8Stream::Finish() {
  const bool cut = incomplete();
  held_.clear();
  missing_ = 0;
  low_ = 0x80;
  high_ = 0xBF;
  return cut ? std::string(kReplacementCharacter) : std::string();
}

bool IsValidUtf8(absl::string_view bytes) {
  // A replaced part is the only way to differ: U+FFFD itself passes unchanged.
  Utf8Stream stream;
  return stream.Append(bytes) == bytes && !stream.incomplete();
}

std::string JsonString(absl::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  Utf8Stream stream;
  std::string valid = stream.Append(text);
  valid += stream.Finish();
  std::string out = "\"";
  out.reserve(valid.size() + 2);
  for (const char c : valid) {
    const uint8_t byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

}  // namespace lanewise
