#include "model/chat/text_ops.h"

#include <utility>

#include "model/chat/repr.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Whether `chars` holds the character s[begin, end).
bool HasChar(absl::string_view chars, absl::string_view s, size_t begin,
             size_t end) {
  return chars.find(s.substr(begin, end - begin)) != chars.npos;
}

bool IsLineEnd(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
         c == 0x2028 || c == 0x2029;
}

}  // namespace

Text Strip(const Text& text, Side side, absl::string_view chars) {
  const absl::string_view s = text.bytes();
  size_t begin = 0;
  size_t end = s.size();
  if (side != Side::kRight) {
    if (chars.empty()) {
      begin = SkipSpace(s, 0);
    } else {
      for (size_t next = 0; begin < end; begin = next) {
        DecodeUtf8(s, &next);
        if (!HasChar(chars, s, begin, next)) break;
      }
    }
  }
  if (side != Side::kLeft) {
    if (chars.empty()) {
      end = TrimSpaceEnd(s, begin, end);
    } else {
      while (end > begin) {
        size_t start = end - 1;
        while (start > begin && IsContinuation(s[start])) --start;
        if (!HasChar(chars, s, start, end)) break;
        end = start;
      }
    }
  }
  return text.Substr(begin, end - begin);
}

absl::StatusOr<Text> Replace(Machine& machine, const Text& text,
                             const Text& from, const Text& to, int64_t count) {
  const std::string& s = text.bytes();
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(text.footprint()));
  Text out;
  size_t begin = 0;
  size_t pos = 0;
  while (count != 0) {
    const size_t hit = FindLinear(s, from.bytes(), pos);
    if (hit == std::string::npos) break;
    LANEWISE_RETURN_IF_ERROR(machine.Step(1 + to.footprint() / 128));
    if (out.footprint() > (size_t{1} << 20)) {
      LANEWISE_RETURN_IF_ERROR(machine.Reserve(out.footprint() + to.size()));
    }
    out.AppendSlice(text, begin, hit - begin);
    out.Append(to);
    begin = hit + from.size();
    pos = begin;
    --count;
    if (!from.empty()) continue;
    // Between all characters, and at both ends.
    if (pos >= s.size()) break;
    DecodeUtf8(s, &pos);
  }
  out.AppendSlice(text, begin, s.size() - begin);
  return out;
}

std::vector<Text> SplitLines(const Text& text, bool keep_ends) {
  const std::string& s = text.bytes();
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < s.size();) {
    const size_t end = pos;
    const char32_t c = DecodeUtf8(s, &pos);
    if (!IsLineEnd(c)) continue;
    if (c == '\r' && pos < s.size() && s[pos] == '\n') ++pos;
    lines.push_back(text.Substr(begin, (keep_ends ? pos : end) - begin));
    begin = pos;
  }
  if (begin < s.size()) lines.push_back(text.Substr(begin));
  return lines;
}

absl::StatusOr<Text> Join(Machine& machine, const Text& separator,
                          const std::vector<Value>& parts) {
  Text out;
  size_t total = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(const Text part, Str(machine, parts[i]));
    total += part.footprint() + separator.footprint();
    LANEWISE_RETURN_IF_ERROR(machine.Step(1 + separator.footprint() / 128));
    if (total > (size_t{1} << 20)) {
      LANEWISE_RETURN_IF_ERROR(machine.Reserve(total));
    }
    if (i > 0) out.Append(separator);
    out.Append(part);
  }
  return out;
}

absl::StatusOr<Text> Justify(Machine& machine, const Text& text, int64_t width,
                             const Text& fill, Side text_side) {
  const auto length = static_cast<int64_t>(CountCodePoints(text.bytes()));
  if (width <= length) return text;
  const auto missing = static_cast<size_t>(width - length);
  size_t bytes = 0;
  if (__builtin_mul_overflow(missing, fill.footprint(), &bytes)) {
    bytes = SIZE_MAX;
  }
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(bytes));
  size_t left = 0;
  if (text_side == Side::kRight) left = missing;
  if (text_side == Side::kBoth) {
    left = missing / 2 + (missing & static_cast<size_t>(width) & 1);
  }
  Text out;
  for (size_t i = 0; i < left; ++i) out.Append(fill);
  out.Append(text);
  for (size_t i = left; i < missing; ++i) out.Append(fill);
  return out;
}

}  // namespace lanewise::chat
