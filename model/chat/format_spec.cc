// FormatValue: one value by a format spec.
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/chat/format.h"
#include "model/chat/repr.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

constexpr size_t kMaxWidth = 1 << 20;

struct Spec {
  std::string fill = " ";
  char align = 0;
  char sign = '-';
  bool alternate = false;
  char grouping = 0;
  size_t width = 0;
  int precision = -1;
  char type = 0;
};

absl::StatusOr<size_t> ParseWidth(absl::string_view s, size_t* pos) {
  size_t n = 0;
  while (*pos < s.size() && absl::ascii_isdigit(s[*pos])) {
    n = n * 10 + static_cast<size_t>(s[(*pos)++] - '0');
    if (n > kMaxWidth) {
      return absl::ResourceExhaustedError("a format is wider than 1 MiB");
    }
  }
  return n;
}

bool IsAlign(char c) { return absl::StrContains("<>=^", c); }

absl::StatusOr<Spec> ParseSpec(absl::string_view s) {
  Spec spec;
  size_t pos = 0;
  const auto at = [&](absl::string_view set) {
    return pos < s.size() && absl::StrContains(set, s[pos]);
  };
  if (!s.empty()) {
    size_t next = 0;
    DecodeUtf8(s, &next);
    if (next < s.size() && IsAlign(s[next])) {
      spec.fill = std::string(s.substr(0, next));
      spec.align = s[next];
      pos = next + 1;
    } else if (IsAlign(s[0])) {
      spec.align = s[0];
      pos = 1;
    }
  }
  if (at("+- ")) spec.sign = s[pos++];
  if (at("#")) {
    spec.alternate = true;
    ++pos;
  }
  if (at("0")) {
    ++pos;
    if (spec.align == 0) {
      spec.fill = "0";
      spec.align = '=';
    }
  }
  LANEWISE_ASSIGN_OR_RETURN(spec.width, ParseWidth(s, &pos));
  if (at(",_")) spec.grouping = s[pos++];
  if (at(".")) {
    ++pos;
    if (!at("0123456789")) return Fail("Format specifier missing precision");
    LANEWISE_ASSIGN_OR_RETURN(const size_t precision, ParseWidth(s, &pos));
    spec.precision = static_cast<int>(precision);
  }
  if (pos < s.size()) spec.type = s[pos++];
  if (pos < s.size()) return Fail("Invalid format specifier '", s, "'");
  return spec;
}

std::string Repeat(absl::string_view s, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out.append(s);
  return out;
}

std::string Group(absl::string_view digits, char separator, size_t size) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out;
}

// `body` keeps its origins; `sign` goes before the padding for '='.
Text Pad(const Spec& spec, char default_align, absl::string_view sign,
         const Text& body) {
  const size_t length = CountCodePoints(body.bytes()) + sign.size();
  const size_t missing = spec.width > length ? spec.width - length : 0;
  const char align = spec.align == 0 ? default_align : spec.align;
  const size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  Text out;
  if (align == '=') out.AppendTemplate(sign);
  out.AppendTemplate(Repeat(spec.fill, left));
  if (align != '=') out.AppendTemplate(sign);
  out.Append(body);
  out.AppendTemplate(Repeat(spec.fill, missing - left));
  return out;
}

std::string Sign(const Spec& spec, bool negative) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string InBase(uint64_t n, unsigned base, bool upper) {
  const absl::string_view digits =
      upper ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string out;
  do {
    out.insert(out.begin(), digits[n % base]);
    n /= base;
  } while (n > 0);
  return out;
}

absl::StatusOr<Text> FormatInt(const Spec& spec, int64_t v) {
  if (spec.precision >= 0) {
    return Fail("Precision not allowed in integer format specifier");
  }
  const uint64_t magnitude =
      v < 0 ? ~static_cast<uint64_t>(v) + 1 : static_cast<uint64_t>(v);
  std::string sign = Sign(spec, v < 0);
  std::string digits;
  size_t group = 3;
  if (spec.type == 'c') {
    if (v < 0 || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000)) {
      return Fail("%c arg not in range(0x110000)");
    }
    AppendUtf8(static_cast<char32_t>(v), &digits);
    return Pad(spec, '<', "", Text::Template(digits));
  }
  if (spec.type == 0 || spec.type == 'd' || spec.type == 'n') {
    digits = absl::StrCat(magnitude);
  } else {
    const char kind = absl::ascii_tolower(spec.type);
    const unsigned base = kind == 'x' ? 16 : kind == 'o' ? 8 : 2;
    digits = InBase(magnitude, base, spec.type == 'X');
    if (spec.alternate) absl::StrAppend(&sign, "0", std::string(1, spec.type));
    group = 4;
  }
  if (spec.grouping != 0) digits = Group(digits, spec.grouping, group);
  return Pad(spec, '>', sign, Text::Template(digits));
}

absl::StatusOr<Text> FormatFloat(const Spec& spec, double v) {
  const bool negative = std::signbit(v) && !std::isnan(v);
  const double a = std::fabs(v);
  const bool upper = absl::ascii_isupper(spec.type);
  const char type = absl::ascii_tolower(spec.type);
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  if (precision > 1000) {
    return absl::ResourceExhaustedError("a precision above 1000");
  }
  std::string digits;
  if (!std::isfinite(a)) {
    digits = std::isnan(a) ? "nan" : "inf";
    if (type == '%') digits += '%';
  } else if (type == 'f') {
    digits = absl::StrFormat("%.*f", precision, a);
  } else if (type == 'e') {
    digits = absl::StrFormat("%.*e", precision, a);
  } else if (type == '%') {
    digits = absl::StrFormat("%.*f%%", precision, a * 100);
  } else if (type == 0 && spec.precision < 0) {
    digits = FloatRepr(a);
  } else {
    digits = absl::StrFormat("%.*g", precision, a);
    if (type == 0 && digits.find_first_not_of("0123456789") == digits.npos) {
      digits += ".0";
    }
  }
  if (spec.grouping != 0) {
    const size_t end =
        std::min(digits.find_first_not_of("0123456789"), digits.size());
    digits =
        Group(digits.substr(0, end), spec.grouping, 3) + digits.substr(end);
  }
  if (upper) absl::AsciiStrToUpper(&digits);
  return Pad(spec, '>', Sign(spec, negative), Text::Template(digits));
}

absl::StatusOr<Text> FormatString(const Spec& spec, const Text& text) {
  if (spec.align == '=' && spec.fill != "0") {
    return Fail("'=' alignment not allowed in string format specifier");
  }
  Spec adjusted = spec;
  if (spec.align == '=') adjusted.align = '<';
  if (spec.precision < 0) return Pad(adjusted, '<', "", text);
  const size_t end =
      ByteOffset(text.bytes(), static_cast<size_t>(spec.precision));
  return Pad(adjusted, '<', "", text.Substr(0, end));
}

}  // namespace

absl::StatusOr<Text> FormatValue(Machine& machine, const Value& v,
                                 absl::string_view spec_text) {
  if (spec_text.empty()) return Str(machine, v);
  LANEWISE_ASSIGN_OR_RETURN(const Spec spec, ParseSpec(spec_text));
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(spec.width * spec.fill.size()));
  if (v.is_string() && (spec.type == 0 || spec.type == 's')) {
    LANEWISE_RETURN_IF_ERROR(machine.Reserve(v.text().footprint()));
    return FormatString(spec, v.text());
  }
  if (v.is_numeric()) {
    const bool float_type = absl::StrContains("eEfFgG%", spec.type);
    if (spec.type != 0 && float_type) return FormatFloat(spec, v.as_double());
    if (v.is(Kind::kFloat) && spec.type == 0) {
      return FormatFloat(spec, v.float_value());
    }
    if (v.is_integral() &&
        (spec.type == 0 || absl::StrContains("bcdoxXn", spec.type))) {
      return FormatInt(spec, v.int_value());
    }
  } else if (!v.is_string()) {
    return Fail("unsupported format string passed to ", TypeName(v),
                ".__format__");
  }
  return Fail("Unknown format code '", std::string(1, spec.type),
              "' for object of type '", TypeName(v), "'");
}

}  // namespace lanewise::chat
