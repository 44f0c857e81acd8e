#include "model/tokenizer/regex_syntax.h"

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/tokenizer/unicode.h"

namespace lanewise {
namespace {

constexpr absl::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside of classes Oniguruma looks Latin-1 up in a table of its own, where
// superscript digits and fractions are word characters too.
constexpr absl::string_view kWordAlone =
    "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xB2\\xB3\\xB9\\xBC-\\xBE]";

struct Name {
  absl::string_view from;
  absl::string_view to;
};

constexpr Name kCategories[] = {
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"casedletter", "L&"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"digit", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"punct", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"surrogate", "Cs"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
    {"space", "White_Space"},
    {"whitespace", "White_Space"},
    {"alpha", "Alphabetic"},
    {"alphabetic", "Alphabetic"},
    {"upper", "Uppercase"},
    {"uppercase", "Uppercase"},
    {"lower", "Lowercase"},
    {"lowercase", "Lowercase"},
    {"any", "Any"},
    {"emoji", "Emoji"},
    {"emojipresentation", "Emoji_Presentation"},
    {"extendedpictographic", "Extended_Pictographic"},
    {"ideographic", "Ideographic"},
    {"dash", "Dash"},
    {"math", "Math"},
    {"hexdigit", "Hex_Digit"},
    {"xidstart", "XID_Start"},
    {"xidcontinue", "XID_Continue"},
    {"idstart", "ID_Start"},
    {"idcontinue", "ID_Continue"},
};

// Letters that mean something behind a backslash in PCRE2 only, or nowhere.
constexpr absl::string_view kUnknownEscapes = "EFIJLQTUVijlmq";

// POSIX brackets as Unicode sets, within a class; "" for ^ where there is none.
struct Bracket {
  absl::string_view name;
  absl::string_view set;
  absl::string_view complement;
};

constexpr Bracket kBrackets[] = {
    {"alnum", "\\p{Alphabetic}\\p{Nd}", ""},
    {"alpha", "\\p{Alphabetic}", "\\P{Alphabetic}"},
    {"blank", "\\p{Zs}\\t", ""},
    {"cntrl", "\\p{Cc}", "\\P{Cc}"},
    {"digit", "\\p{Nd}", "\\P{Nd}"},
    {"graph", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}", ""},
    {"lower", "\\p{Lowercase}", "\\P{Lowercase}"},
    {"print", "\\p{L}\\p{M}\\p{N}\\p{P}\\p{S}\\p{Cf}\\p{Co}\\p{Zs}", ""},
    {"punct", "\\p{P}\\p{S}", ""},
    {"space", "\\p{White_Space}", "\\P{White_Space}"},
    {"upper", "\\p{Uppercase}", "\\P{Uppercase}"},
    {"word", kWord, ""},
    {"xdigit", "0-9a-fA-F", ""},
    {"ascii", "\\x00-\\x7F", ""},
};

// Copies a pattern construct by construct, remembering where the last atom
// began, for x{n,m}+.
class Translator {
 public:
  explicit Translator(absl::string_view in) : in_(in) {}

  absl::StatusOr<Pcre2Pattern> Run() {
    while (pos_ < in_.size()) {
      if (absl::Status status = Step(); !status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  absl::Status Unsupported(absl::string_view what) const {
    return absl::UnimplementedError(
        absl::StrCat("regular expression ", in_, ": ", what,
                     " is not supported, at byte ", pos_));
  }

  std::string& out() { return result_.text; }
  char Peek(size_t i) const {
    return pos_ + i < in_.size() ? in_[pos_ + i] : '\0';
  }

  absl::Status Step() {
    const char c = in_[pos_];
    switch (c) {
      case '\\':
        atom_ = out().size();
        return Escape(/*in_class=*/false);
      case '[':
        atom_ = out().size();
        return Class();
      case '(':
        groups_.push_back(out().size());
        return OpenGroup();
      case ')':
        out().push_back(c);
        ++pos_;
        if (!groups_.empty()) {
          atom_ = groups_.back();
          groups_.pop_back();
        }
        return absl::OkStatus();
      case '{':
        Repeat();
        return absl::OkStatus();
      case '*':
      case '+':
      case '?':
      case '|':
        out().push_back(c);
        ++pos_;
        return absl::OkStatus();
      default:
        atom_ = out().size();
        CopyCharacter();
        return absl::OkStatus();
    }
  }

  void CopyCharacter() {
    const size_t length = Utf8Length(static_cast<unsigned char>(in_[pos_]));
    absl::StrAppend(&out(), in_.substr(pos_, length));
    pos_ += length;
  }

  // {n}, {n,}, {n,m}, {,m}; other braces are literal in both.
  void Repeat() {
    size_t end = pos_ + 1;
    while (end < in_.size() &&
           (absl::ascii_isdigit(in_[end]) || in_[end] == ','))
      ++end;
    const bool is_repeat =
        end > pos_ + 1 && end < in_.size() && in_[end] == '}';
    if (!is_repeat) {
      atom_ = out().size();
      out().append("\\{");
      ++pos_;
      return;
    }
    std::string body(in_.substr(pos_ + 1, end - pos_ - 1));
    if (body[0] == ',') body.insert(0, "0");
    absl::StrAppend(&out(), "{", body, "}");
    pos_ = end + 1;
    if (Peek(0) == '+') {
      out().insert(atom_, "(?:");
      out().append(")+");
      ++pos_;
    }
  }

  absl::Status OpenGroup() {
    out().push_back('(');
    ++pos_;
    if (Peek(0) != '?') return absl::OkStatus();
    if (Peek(1) == '~') return Unsupported("the absent operator (?~");
    if (Peek(1) == '(') return Unsupported("a condition (?(");
    // Options: (?imx-imx:…) and (?imx-imx).
    size_t end = pos_ + 1;
    while (end < in_.size() && (in_[end] == 'i' || in_[end] == 'm' ||
                                in_[end] == 'x' || in_[end] == '-')) {
      ++end;
    }
    if (end < in_.size() && end > pos_ + 1 &&
        (in_[end] == ':' || in_[end] == ')')) {
      if (in_[end] == ')' && pos_ != 1) {
        return Unsupported("an option that is not at the start");
      }
      out().push_back('?');
      for (size_t i = pos_ + 1; i < end; ++i) {
        out().push_back(in_[i] == 'm' ? 's' : in_[i]);
      }
      pos_ = end;
      if (in_[end] == ':') {
        out().push_back(':');
        ++pos_;
      }
      return absl::OkStatus();
    }
    // (?: (?= (?! (?> (?<= (?<! (?<name> (?#
    out().push_back('?');
    ++pos_;
    return absl::OkStatus();
  }

  absl::Status Escape(bool in_class) {
    const char c = Peek(1);
    if (c == '\0') return Unsupported("a backslash at the end");
    absl::string_view to;
    switch (c) {
      case 's':
        to = "\\p{White_Space}";
        break;
      case 'S':
        to = "\\P{White_Space}";
        break;
      case 'h':
        to = in_class ? "0-9a-fA-F" : "[0-9a-fA-F]";
        break;
      case 'H':
        if (in_class) return Unsupported("\\H in a class");
        to = "[^0-9a-fA-F]";
        break;
      case 'w':
        if (in_class) {
          to = kWord;
        } else {
          to = kWordAlone;
        }
        break;
      case 'W':
        if (in_class) return Unsupported("\\W in a class");
        absl::StrAppend(&out(), "[^", kWordAlone.substr(1));
        break;
      case 'b':
      case 'B':
        // PCRE2's words are without marks.
        if (in_class) {
          to = c == 'b' ? "\\x08" : "B";
        } else {
          absl::StrAppend(&out(), c == 'b' ? "(?:(?<=" : "(?:(?<!", kWordAlone,
                          ")(?!", kWordAlone,
                          c == 'b' ? ")|(?<!" : ")|(?<=", kWordAlone,
                          ")(?=", kWordAlone, "))");
        }
        break;
      case 'p':
      case 'P':
        if (Peek(2) == '{') return Property();
        return Unsupported("\\p without braces");
      case 'v':
        to = "\\x0B";
        break;
      case 'u':
        return HexEscape();
      case 'O':
        if (in_class) return Unsupported("\\O in a class");
        to = "(?s:.)";
        break;
      default:
        if (absl::StrContains(kUnknownEscapes, c)) {
          to = in_.substr(pos_ + 1, 1);  // a letter like any other
          break;
        }
        out().push_back('\\');
        ++pos_;
        CopyCharacter();
        return absl::OkStatus();
    }
    absl::StrAppend(&out(), to);
    pos_ += 2;
    return absl::OkStatus();
  }

  // \uHHHH
  absl::Status HexEscape() {
    const absl::string_view digits = in_.substr(pos_ + 2, 4);
    for (const char digit : digits) {
      if (!absl::ascii_isxdigit(static_cast<unsigned char>(digit))) {
        return Unsupported("\\u without four digits");
      }
    }
    if (digits.size() < 4) return Unsupported("\\u without four digits");
    absl::StrAppend(&out(), "\\x{", digits, "}");
    pos_ += 6;
    return absl::OkStatus();
  }

  absl::Status Property() {
    const size_t end = in_.find('}', pos_);
    if (end == absl::string_view::npos) return Unsupported("\\p{ without }");
    absl::string_view name = in_.substr(pos_ + 3, end - pos_ - 3);
    bool negative = in_[pos_ + 1] == 'P';
    if (!name.empty() && name[0] == '^') {
      negative = !negative;
      name.remove_prefix(1);
    }
    std::string key;
    for (const char c : name) {
      if (c != '_' && c != ' ' && c != '-') {
        key.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
      }
    }
    absl::StrAppend(&out(), negative ? "\\P{" : "\\p{");
    absl::string_view known;
    for (const Name& category : kCategories) {
      if (key == category.from) known = category.to;
    }
    if (!known.empty()) {
      absl::StrAppend(&out(), known);
    } else if (key.size() <= 2) {
      absl::StrAppend(&out(), name);
    } else {
      absl::StrAppend(&out(), "sc:", name);
    }
    out().push_back('}');
    pos_ = end + 1;
    return absl::OkStatus();
  }

  // From '[' to its ']'.
  absl::Status Class() {
    int depth = 0;
    bool at_start = false;  // a ']' here is literal
    do {
      const char c = Peek(0);
      if (pos_ >= in_.size()) return Unsupported("a class without ]");
      const bool literal_bracket = at_start && c == ']';
      at_start = false;
      if (c == '\\') {
        if (absl::Status status = Escape(true); !status.ok()) return status;
      } else if (c == '[' && Peek(1) == ':' && depth > 0) {
        if (absl::Status status = PosixClass(); !status.ok()) return status;
      } else if (c == '[') {
        if (++depth > 1) result_.nested_classes = true;
        out().push_back(c);
        ++pos_;
        if (Peek(0) == '^') {
          out().push_back('^');
          ++pos_;
        }
        at_start = true;
      } else if (c == ']' && !literal_bracket) {
        --depth;
        out().push_back(c);
        ++pos_;
      } else if (c == ']') {
        out().append("\\]");
        ++pos_;
      } else {
        if (c == '&' && Peek(1) == '&') {
          result_.nested_classes = true;
          out().push_back(c);
          ++pos_;
        }
        CopyCharacter();
      }
    } while (depth > 0);
    return absl::OkStatus();
  }

  absl::Status PosixClass() {
    const size_t end = in_.find(":]", pos_ + 2);
    if (end == absl::string_view::npos) return Unsupported("[: without :]");
    const absl::string_view name = in_.substr(pos_ + 2, end - pos_ - 2);
    const bool negative = absl::StartsWith(name, "^");
    absl::string_view set;
    for (const Bracket& bracket : kBrackets) {
      if (name.substr(negative) != bracket.name) continue;
      set = negative ? bracket.complement : bracket.set;
    }
    if (set.empty()) return Unsupported(absl::StrCat("[:", name, ":]"));
    absl::StrAppend(&out(), set);
    pos_ = end + 2;
    return absl::OkStatus();
  }

  absl::string_view in_;
  size_t pos_ = 0;
  Pcre2Pattern result_;
  size_t atom_ = 0;             // where the last atom begins in the output
  std::vector<size_t> groups_;  // where the open groups do
};

}  // namespace

absl::StatusOr<Pcre2Pattern> TranslateOniguruma(absl::string_view pattern) {
  return Translator(pattern).Run();
}

}  // namespace lanewise
