#include "model/chat/unicode.h"

#include <cstdint>
#include <vector>

#include "utf8proc.h"

namespace lanewise::chat {
namespace {

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

utf8proc_category_t Category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c); }

struct Expansion {
  char32_t from;
  const char* upper;
  const char* title;
};
constexpr Expansion kExpansions[] = {
    {0x00DF, "SS", "Ss"},           {0x0149, "ʼN", "ʼN"},
    {0x01F0, "J\u030C", "J\u030C"}, {0x0587, "ԵՒ", "Եւ"},
    {0xFB00, "FF", "Ff"},           {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},           {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},         {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
};

void AppendUpper(char32_t c, bool title, std::string* out) {
  for (const Expansion& e : kExpansions) {
    if (e.from != c) continue;
    out->append(title ? e.title : e.upper);
    return;
  }
  const auto cp = static_cast<utf8proc_int32_t>(c);
  AppendUtf8(static_cast<char32_t>(title ? utf8proc_totitle(cp)
                                         : utf8proc_toupper(cp)),
             out);
}

// Case-ignorable, as the rule for the final sigma asks.
bool IsCaseIgnorable(char32_t c) {
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xB7 || c == 0x2019;
  }
}

// `cased_before`: whether the last character that is not case-ignorable
// before the one at [.., pos) is cased.
void AppendLower(absl::string_view s, size_t pos, char32_t c, bool cased_before,
                 std::string* out) {
  if (c == 0x0130) {
    out->append("i\u0307");
    return;
  }
  if (c == 0x03A3) {
    bool cased_after = false;
    // Bounded look-ahead keeps the whole linear; no word has more marks.
    for (int n = 0; pos < s.size() && n < 32; ++n) {
      const char32_t next = DecodeUtf8(s, &pos);
      if (IsCaseIgnorable(next)) continue;
      cased_after = IsCased(next);
      break;
    }
    AppendUtf8(cased_before && !cased_after ? 0x03C2 : 0x03C3, out);
    return;
  }
  AppendUtf8(
      static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))),
      out);
}

enum class Casing { kLower, kTitle, kCapitalize };

std::string MapCase(absl::string_view s, Casing casing) {
  std::string out;
  out.reserve(s.size());
  bool in_word = false;
  bool cased_before = false;
  for (size_t pos = 0; pos < s.size();) {
    const bool first = pos == 0;
    const char32_t c = DecodeUtf8(s, &pos);
    const bool raise = (casing == Casing::kTitle && !in_word) ||
                       (casing == Casing::kCapitalize && first);
    if (raise) {
      AppendUpper(c, true, &out);
    } else {
      AppendLower(s, pos, c, cased_before, &out);
    }
    in_word = IsCased(c);
    if (!IsCaseIgnorable(c)) cased_before = in_word;
  }
  return out;
}

}  // namespace

bool ValidUtf8(absl::string_view s) {
  const auto* p = reinterpret_cast<const utf8proc_uint8_t*>(s.data());
  size_t pos = 0;
  while (pos < s.size()) {
    if (p[pos] < 0x80) {
      ++pos;
      continue;
    }
    utf8proc_int32_t cp = 0;
    const utf8proc_ssize_t n = utf8proc_iterate(
        p + pos, static_cast<utf8proc_ssize_t>(s.size() - pos), &cp);
    if (n <= 0) return false;
    pos += static_cast<size_t>(n);
  }
  return true;
}

bool IsAscii(absl::string_view s) {
  unsigned char all = 0;
  for (const char c : s) all |= static_cast<unsigned char>(c);
  return all < 0x80;
}

char32_t DecodeUtf8(absl::string_view s, size_t* pos) {
  const auto lead = static_cast<unsigned char>(s[(*pos)++]);
  if (lead < 0xC0) return lead;
  const int extra = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  char32_t c = lead & (0x3F >> extra);
  for (int i = 0; i < extra; ++i) {
    if (*pos >= s.size() || !IsContinuation(s[*pos])) return 0xFFFD;
    c = (c << 6) | (static_cast<unsigned char>(s[(*pos)++]) & 0x3F);
  }
  return c;
}

void AppendUtf8(char32_t c, std::string* out) {
  utf8proc_uint8_t buffer[4];
  const utf8proc_ssize_t n =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), buffer);
  out->append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(n));
}

size_t CountCodePoints(absl::string_view s) {
  size_t n = 0;
  for (const char c : s) n += IsContinuation(c) ? 0 : 1;
  return n;
}

size_t ByteOffset(absl::string_view s, size_t index) {
  for (size_t pos = 0; pos < s.size(); ++pos) {
    if (IsContinuation(s[pos])) continue;
    if (index-- == 0) return pos;
  }
  return s.size();
}

bool IsSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool IsAlpha(char32_t c) {
  const utf8proc_category_t k = Category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool IsDigit(char32_t c) { return Category(c) == UTF8PROC_CATEGORY_ND; }

bool IsUpper(char32_t c) {
  return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0;
}

bool IsLower(char32_t c) {
  return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0;
}

bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  const utf8proc_category_t k = Category(c);
  return k != UTF8PROC_CATEGORY_CN && k < UTF8PROC_CATEGORY_ZS;
}

bool IsIdentifierPart(char32_t c) {
  if (c == '_') return true;
  const utf8proc_category_t k = Category(c);
  return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) ||
         k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC ||
         k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL ||
         k == UTF8PROC_CATEGORY_PC;
}

std::string ToUpper(absl::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (size_t pos = 0; pos < s.size();) {
    AppendUpper(DecodeUtf8(s, &pos), false, &out);
  }
  return out;
}

std::string ToLower(absl::string_view s) { return MapCase(s, Casing::kLower); }

std::string ToTitle(absl::string_view s) { return MapCase(s, Casing::kTitle); }

std::string Capitalize(absl::string_view s) {
  return MapCase(s, Casing::kCapitalize);
}

size_t SkipSpace(absl::string_view s, size_t begin) {
  while (begin < s.size()) {
    size_t next = begin;
    if (!IsSpace(DecodeUtf8(s, &next))) break;
    begin = next;
  }
  return begin;
}

size_t TrimSpaceEnd(absl::string_view s, size_t begin, size_t end) {
  while (end > begin) {
    size_t start = end - 1;
    while (start > begin && IsContinuation(s[start])) --start;
    size_t pos = start;
    if (!IsSpace(DecodeUtf8(s, &pos))) break;
    end = start;
  }
  return end;
}

size_t FindLinear(absl::string_view s, absl::string_view needle, size_t from) {
  if (needle.size() <= 16 || from > s.size()) return s.find(needle, from);
  // Knuth, Morris, Pratt: fail[i] = longest proper border of needle[0..i].
  std::vector<size_t> fail(needle.size(), 0);
  for (size_t i = 1, k = 0; i < needle.size(); ++i) {
    while (k > 0 && needle[i] != needle[k]) k = fail[k - 1];
    if (needle[i] == needle[k]) ++k;
    fail[i] = k;
  }
  for (size_t i = from, k = 0; i < s.size(); ++i) {
    while (k > 0 && s[i] != needle[k]) k = fail[k - 1];
    if (s[i] == needle[k]) ++k;
    if (k == needle.size()) return i + 1 - k;
  }
  return absl::string_view::npos;
}

}  // namespace lanewise::chat
