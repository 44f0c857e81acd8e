#include "model/tokenizer/unicode.h"

#include <algorithm>

#include "model/tokenizer/unicode_age.h"
#include "utf8proc.h"

namespace lanewise {
namespace {

utf8proc_category_t Category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Normal forms leave characters alone that are newer than the reference's.
bool IsLeftAlone(int32_t c) {
  return IsAfterUnicode9(static_cast<char32_t>(c));
}

int CombiningClass(int32_t c) {
  const int combining_class = utf8proc_get_property(c)->combining_class;
  return combining_class == 0 || IsLeftAlone(c) ? 0 : combining_class;
}

// Bytes of the valid character at bytes[pos], or 0; *bad gets the length of
// the maximal invalid part.
size_t ValidCharacter(absl::string_view bytes, size_t pos, size_t* bad) {
  const auto at = [&](size_t i) -> unsigned {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u;
  };
  const unsigned first = at(pos);
  if (first < 0x80) return 1;
  *bad = 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  unsigned low = 0x80, high = 0xBF;  // of the second byte
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    const unsigned c = at(pos + i);
    if (c < low || c > high) return 0;
    *bad = i + 1;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

}  // namespace

size_t Utf8Length(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

char32_t NextCodePoint(absl::string_view text, size_t* pos) {
  const auto first = static_cast<unsigned char>(text[*pos]);
  if (first < 0x80) {
    ++*pos;
    return first;
  }
  const size_t length = Utf8Length(first);
  char32_t c = first & (0x7F >> length);
  for (size_t i = 1; i < length && *pos + i < text.size(); ++i) {
    c = c << 6 | (static_cast<unsigned char>(text[*pos + i]) & 0x3F);
  }
  *pos = std::min(*pos + length, text.size());
  return c;
}

char32_t PreviousCodePoint(absl::string_view text, size_t* pos) {
  size_t begin = *pos - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80)
    --begin;
  *pos = begin;
  size_t next = begin;
  return NextCodePoint(text, &next);
}

void AppendUtf8(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
    return;
  }
  if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
  } else {
    if (c < 0x10000) {
      out->push_back(static_cast<char>(0xE0 | c >> 12));
    } else {
      out->push_back(static_cast<char>(0xF0 | c >> 18));
      out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    }
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
  }
  out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
}

size_t ValidUtf8Prefix(absl::string_view bytes) {
  size_t pos = 0, bad = 0;
  while (pos < bytes.size()) {
    const size_t length = ValidCharacter(bytes, pos, &bad);
    if (length == 0) break;
    pos += length;
  }
  return pos;
}

std::string ReplaceInvalidUtf8(absl::string_view bytes,
                               std::vector<size_t>* offsets) {
  std::string out;
  out.reserve(bytes.size());
  size_t pos = 0;
  while (pos < bytes.size()) {
    size_t bad = 0;
    size_t length = ValidCharacter(bytes, pos, &bad);
    const size_t before = out.size();
    if (length > 0) {
      out.append(bytes.data() + pos, length);
    } else {
      out.append("\xEF\xBF\xBD");
      length = bad;
    }
    if (offsets != nullptr) {
      offsets->insert(offsets->end(), out.size() - before, pos);
    }
    pos += length;
  }
  if (offsets != nullptr) offsets->push_back(pos);
  return out;
}

bool IsWhitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsAsciiPunctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

bool IsPunctuation(char32_t c) {
  if (c == 0x166D || c == 0x111C9) return true;  // until Unicode 12 and 11
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO &&
         !IsAfterUnicode8(c);
}

bool IsNumeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool IsMark(char32_t c) {
  if (c < 0x300 || c == 0x111C9) return false;  // punctuation until Unicode 11
  if (c == 0x1CF2 || c == 0x1CF3) return true;  // until Unicode 12
  const utf8proc_category_t category = Category(c);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME &&
         !IsAfterUnicode9(c);
}

bool IsNonspacingMark(char32_t c) {
  if (c < 0x300) return false;
  switch (c) {
    case 0x1734:   // spacing since Unicode 14
    case 0x1171E:  // spacing since Unicode 17
      return true;
    case 0x1885:  // letters until Unicode 9
    case 0x1886:
    case 0xA9BD:   // spacing until Unicode 11
    case 0x111C9:  // punctuation until Unicode 11
      return false;
    default:
      return Category(c) == UTF8PROC_CATEGORY_MN && !IsAfterUnicode8(c);
  }
}

bool IsOther(char32_t c) {
  const utf8proc_category_t category = Category(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CO ||
         (category == UTF8PROC_CATEGORY_CF && !IsAfterUnicode8(c));
}

bool IsWordCharacter(char32_t c) {
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (c >= 'a' && c <= 'z');
  }
  if (c == 0x200C || c == 0x200D) return true;
  // Other_Alphabetic beyond letters and marks: circled letters and such.
  if ((c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
      (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189)) {
    return true;
  }
  switch (Category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

void AppendLowercase(char32_t c, std::string* out) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x130) {
    out->append("i\xCC\x87");
  } else {
    AppendUtf8(static_cast<char32_t>(utf8proc_tolower(static_cast<int32_t>(c))),
               out);
  }
}

namespace {

// Decomposes, orders marks, composes: one chunk that no normal form ties to
// its neighbours.
void NormalizeChunk(NormalForm form, absl::string_view text,
                    std::vector<int32_t>* buffer, std::string* out) {
  const bool compatible =
      form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                     (compatible ? UTF8PROC_COMPAT : 0));
  buffer->clear();
  for (size_t pos = 0; pos < text.size();) {
    const auto c = static_cast<int32_t>(NextCodePoint(text, &pos));
    if (IsLeftAlone(c)) {
      buffer->push_back(c);
      continue;
    }
    int32_t parts[32];  // the longest decomposition has 18
    int boundary = 0;
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(c, parts, 32, options, &boundary);
    if (n <= 0 || n > 32) {
      buffer->push_back(c);
    } else {
      buffer->insert(buffer->end(), parts, parts + n);
    }
  }
  for (size_t i = 0; i < buffer->size();) {
    if (CombiningClass((*buffer)[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < buffer->size() && CombiningClass((*buffer)[end]) != 0) ++end;
    std::stable_sort(buffer->begin() + i, buffer->begin() + end,
                     [](int32_t a, int32_t b) {
                       return CombiningClass(a) < CombiningClass(b);
                     });
    i = end;
  }
  // Nothing composes with a newer character or across it.
  for (size_t begin = 0; begin < buffer->size();) {
    size_t end = begin;
    while (end < buffer->size() && !IsLeftAlone((*buffer)[end])) ++end;
    size_t size = end - begin;
    int32_t* const run = buffer->data() + begin;
    if (compose && size > 1) {
      const utf8proc_ssize_t n = utf8proc_normalize_utf32(
          run, static_cast<utf8proc_ssize_t>(size),
          static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
      if (n >= 0) size = static_cast<size_t>(n);
    }
    for (size_t i = 0; i < size; ++i) {
      AppendUtf8(static_cast<char32_t>(run[i]), out);
    }
    if (end < buffer->size()) {
      AppendUtf8(static_cast<char32_t>((*buffer)[end]), out);
    }
    begin = end + 1;
  }
}

bool IsAsciiByte(char c) { return static_cast<unsigned char>(c) < 0x80; }

}  // namespace

void AppendNormalForm(NormalForm form, absl::string_view text,
                      std::string* out) {
  std::vector<int32_t> buffer;
  size_t pos = 0;
  while (pos < text.size()) {
    // ASCII changes in no form, but its last character may compose with a
    // mark that follows.
    size_t end = pos;
    while (end < text.size() && IsAsciiByte(text[end])) ++end;
    if (end == text.size()) {
      out->append(text.data() + pos, end - pos);
      return;
    }
    const size_t chunk = end > pos ? end - 1 : end;
    out->append(text.data() + pos, chunk - pos);
    while (end < text.size() && !IsAsciiByte(text[end])) ++end;
    NormalizeChunk(form, text.substr(chunk, end - chunk), &buffer, out);
    pos = end;
  }
}

size_t CombiningEnd(absl::string_view text, size_t begin) {
  size_t end = begin;
  NextCodePoint(text, &end);
  for (size_t pos = end; pos < text.size(); end = pos) {
    const auto c = static_cast<int32_t>(NextCodePoint(text, &pos));
    if (CombiningClass(c) == 0) break;
  }
  return end;
}

size_t GraphemeEnd(absl::string_view text, size_t begin) {
  size_t pos = begin;
  auto previous = static_cast<int32_t>(NextCodePoint(text, &pos));
  int32_t state = 0;
  while (pos < text.size()) {
    size_t next = pos;
    const auto c = static_cast<int32_t>(NextCodePoint(text, &next));
    if (utf8proc_grapheme_break_stateful(previous, c, &state)) break;
    previous = c;
    pos = next;
  }
  return pos;
}

}  // namespace lanewise
