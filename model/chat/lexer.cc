#include "model/chat/lexer.h"

#include <charconv>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "model/chat/string_literal.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

constexpr size_t kNone = absl::string_view::npos;

bool IsDigitByte(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}
  absl::StatusOr<std::vector<Token>> Run();

 private:
  absl::string_view Rest(size_t pos) const {
    return absl::string_view(source_).substr(pos);
  }
  bool At(size_t pos, absl::string_view s) const {
    return Rest(pos).substr(0, s.size()) == s;
  }
  void MoveTo(size_t pos);
  absl::Status Error(absl::string_view what) const {
    return SyntaxError(line_, static_cast<int>(pos_ - line_start_) + 1, what);
  }
  Token Make(TokenType type, absl::string_view text = "") const;

  void EmitText(size_t end, char strip_sign, bool is_variable);
  absl::Status LexComment(size_t begin);
  absl::StatusOr<bool> LexRaw(size_t begin);
  absl::Status LexTag(size_t begin, bool is_variable);
  absl::StatusOr<bool> LexTagEnd(bool is_variable);
  absl::Status LexToken();
  void LexName();
  absl::Status LexString();
  absl::Status LexNumber();
  absl::Status LexOperator();
  size_t Digits(size_t pos) const;
  size_t SkipTagEnd(size_t pos, char sign) const;

  std::string source_;
  size_t pos_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  // Where the text that a tag may strip begins on a fresh line.
  bool line_starting_ = true;
  std::string open_;  // brackets that wait for their partner
  std::vector<Token> tokens_;
};

void Lexer::MoveTo(size_t pos) {
  for (; pos_ < pos; ++pos_) {
    if (source_[pos_] != '\n') continue;
    ++line_;
    line_start_ = pos_ + 1;
  }
}

Token Lexer::Make(TokenType type, absl::string_view text) const {
  Token token;
  token.type = type;
  token.text = std::string(text);
  token.line = line_;
  token.column = static_cast<int>(pos_ - line_start_) + 1;
  return token;
}

// Text from pos_ to `end`, where a tag opens with `strip_sign` (or 0).
void Lexer::EmitText(size_t end, char strip_sign, bool is_variable) {
  absl::string_view text = Rest(pos_).substr(0, end - pos_);
  if (strip_sign == '-') {
    text = text.substr(0, TrimSpaceEnd(text, 0, text.size()));
  } else if (strip_sign != '+' && !is_variable) {
    const size_t newline = text.rfind('\n');
    const size_t line = newline == kNone ? 0 : newline + 1;
    if ((line > 0 || line_starting_) && SkipSpace(text, line) == text.size()) {
      text = text.substr(0, line);
    }
  }
  if (!text.empty()) tokens_.push_back(Make(TokenType::kText, text));
  MoveTo(end);
}

// The byte behind a tag's end at `pos` (behind its brackets): `-` eats white
// space, none eats one line end, `+` nothing.
size_t Lexer::SkipTagEnd(size_t pos, char sign) const {
  if (sign == '-') return SkipSpace(source_, pos);
  if (sign != '+' && At(pos, "\n")) return pos + 1;
  return pos;
}

absl::Status Lexer::LexComment(size_t begin) {
  const char sign = begin + 2 < source_.size() ? source_[begin + 2] : 0;
  EmitText(begin, sign, false);
  const size_t close = source_.find("#}", begin + 2);
  if (close == kNone) return Error("missing end of comment tag");
  const char end_sign = close > begin + 2 ? source_[close - 1] : 0;
  const size_t end = SkipTagEnd(close + 2, end_sign);
  line_starting_ = source_[end - 1] == '\n';
  MoveTo(end);
  return absl::OkStatus();
}

// {% raw %}…{% endraw %} at `begin`; false when it is some other tag.
absl::StatusOr<bool> Lexer::LexRaw(size_t begin) {
  size_t pos = begin + 2;
  char sign = 0;
  if (At(pos, "-") || At(pos, "+")) sign = source_[pos++];
  pos = SkipSpace(source_, pos);
  if (!At(pos, "raw")) return false;
  pos = SkipSpace(source_, pos + 3);
  if (At(pos, "-%}")) {
    pos = SkipSpace(source_, pos + 3);
  } else if (At(pos, "%}")) {
    pos += 2;
  } else {
    return false;
  }
  EmitText(begin, sign, false);
  const int line = line_;
  line_starting_ = source_[pos - 1] == '\n';
  MoveTo(pos);
  for (size_t open = source_.find("{%", pos_); open != kNone;
       open = source_.find("{%", open + 1)) {
    pos = open + 2;
    sign = 0;
    if (At(pos, "-") || At(pos, "+")) sign = source_[pos++];
    pos = SkipSpace(source_, pos);
    if (!At(pos, "endraw")) continue;
    pos = SkipSpace(source_, pos + 6);
    char end_sign = 0;
    if (At(pos, "-") || At(pos, "+")) end_sign = source_[pos++];
    if (!At(pos, "%}")) continue;
    EmitText(open, sign, false);
    pos = SkipTagEnd(pos + 2, end_sign);
    line_starting_ = source_[pos - 1] == '\n';
    MoveTo(pos);
    return true;
  }
  return SyntaxError(line, 1, "missing end of raw directive");
}

absl::Status Lexer::LexTag(size_t begin, bool is_variable) {
  const char sign = begin + 2 < source_.size() ? source_[begin + 2] : 0;
  const bool has_sign = sign == '-' || sign == '+';
  EmitText(begin, has_sign ? sign : 0, is_variable);
  const int line = line_;
  tokens_.push_back(
      Make(is_variable ? TokenType::kVariableBegin : TokenType::kBlockBegin));
  MoveTo(begin + (has_sign ? 3 : 2));
  while (true) {
    LANEWISE_ASSIGN_OR_RETURN(const bool done, LexTagEnd(is_variable));
    if (done) break;
    if (pos_ >= source_.size()) {
      return SyntaxError(
          line, 1,
          open_.empty()
              ? std::string("unexpected end of template: the "
                            "tag is not closed")
              : absl::StrCat("unexpected end of template: '",
                             std::string(1, open_.back()), "' is not closed"));
    }
    LANEWISE_RETURN_IF_ERROR(LexToken());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Lexer::LexTagEnd(bool is_variable) {
  if (!open_.empty()) return false;
  const absl::string_view close = is_variable ? "}}" : "%}";
  char sign = 0;
  size_t pos = pos_;
  if (At(pos, "-") || (!is_variable && At(pos, "+"))) sign = source_[pos++];
  if (!At(pos, close)) return false;
  tokens_.push_back(
      Make(is_variable ? TokenType::kVariableEnd : TokenType::kBlockEnd));
  pos += 2;
  if (is_variable) {
    if (sign == '-') pos = SkipSpace(source_, pos);
  } else {
    pos = SkipTagEnd(pos, sign);
  }
  line_starting_ = source_[pos - 1] == '\n';
  MoveTo(pos);
  return true;
}

absl::Status Lexer::LexToken() {
  const size_t space = SkipSpace(source_, pos_);
  if (space > pos_) {
    MoveTo(space);
    return absl::OkStatus();
  }
  const char c = source_[pos_];
  if (IsDigitByte(c)) return LexNumber();
  if (c == '\'' || c == '"') return LexString();
  size_t next = pos_;
  if (IsIdentifierPart(DecodeUtf8(source_, &next))) {
    LexName();
    return absl::OkStatus();
  }
  return LexOperator();
}

void Lexer::LexName() {
  size_t end = pos_;
  while (end < source_.size()) {
    size_t next = end;
    if (!IsIdentifierPart(DecodeUtf8(source_, &next))) break;
    end = next;
  }
  tokens_.push_back(Make(TokenType::kName, Rest(pos_).substr(0, end - pos_)));
  MoveTo(end);
}

absl::Status Lexer::LexString() {
  const char quote = source_[pos_];
  size_t end = pos_ + 1;
  while (end < source_.size() && source_[end] != quote) {
    end += source_[end] == '\\' ? 2 : 1;
  }
  if (end >= source_.size()) return Error("a string is not closed");
  Token token = Make(TokenType::kString);
  absl::StatusOr<std::string> value =
      UnescapeLiteral(Rest(pos_ + 1).substr(0, end - pos_ - 1));
  if (!value.ok()) {
    const absl::Status placed = Error(value.status().message());
    return absl::Status(value.status().code(), placed.message());
  }
  token.text = *std::move(value);
  tokens_.push_back(std::move(token));
  MoveTo(end + 1);
  return absl::OkStatus();
}

// End of (\d+_)*\d+ at pos, or pos.
size_t Lexer::Digits(size_t pos) const {
  size_t end = pos;
  while (end < source_.size()) {
    if (IsDigitByte(source_[end])) {
      ++end;
    } else if (source_[end] == '_' && end > pos && end + 1 < source_.size() &&
               IsDigitByte(source_[end + 1])) {
      ++end;
    } else {
      break;
    }
  }
  return end;
}

absl::Status Lexer::LexNumber() {
  const bool after_dot = pos_ > 0 && source_[pos_ - 1] == '.';
  size_t end = Digits(pos_);
  bool is_float = false;
  int base = 10;
  if (source_[pos_] == '0' && pos_ + 1 < source_.size()) {
    const char prefix = absl::ascii_tolower(source_[pos_ + 1]);
    base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
  }
  if (base != 10) {
    end = pos_ + 2;
    while (end < source_.size() &&
           (absl::ascii_isxdigit(source_[end]) || source_[end] == '_')) {
      ++end;
    }
  } else if (!after_dot) {
    if (At(end, ".") && Digits(end + 1) > end + 1) {
      end = Digits(end + 1);
      is_float = true;
    }
    size_t exponent = end;
    if (At(exponent, "e") || At(exponent, "E")) {
      ++exponent;
      if (At(exponent, "+") || At(exponent, "-")) ++exponent;
      if (Digits(exponent) > exponent) {
        end = Digits(exponent);
        is_float = true;
      }
    }
  }
  std::string digits =
      absl::StrReplaceAll(Rest(pos_).substr(0, end - pos_), {{"_", ""}});
  Token token = Make(is_float ? TokenType::kFloat : TokenType::kInteger);
  if (is_float) {
    if (!absl::SimpleAtod(digits, &token.number)) return Error("bad number");
  } else {
    if (base != 10) digits.erase(0, 2);
    if (digits.size() > 1 && base == 10 && digits[0] == '0' &&
        digits.find_first_not_of('0') != kNone) {
      return Error("a number must not start with 0");
    }
    const char* last = digits.data() + digits.size();
    const auto parsed =
        std::from_chars(digits.data(), last, token.integer, base);
    if (parsed.ec != std::errc() || parsed.ptr != last) {
      return Error("an integer is malformed or beyond 64 bits");
    }
  }
  tokens_.push_back(std::move(token));
  MoveTo(end);
  return absl::OkStatus();
}

absl::Status Lexer::LexOperator() {
  absl::string_view op = Rest(pos_).substr(0, 2);
  if (op != "//" && op != "**" && op != "==" && op != "!=" && op != ">=" &&
      op != "<=") {
    op = op.substr(0, 1);
    if (!absl::StrContains("+-/*%~[](){}><=.:|,;", op)) {
      return Error(absl::StrCat("unexpected character ", absl::CHexEscape(op)));
    }
  }
  if (op == "(" || op == "[" || op == "{") {
    open_ += op == "(" ? ')' : op == "[" ? ']' : '}';
  } else if (op == ")" || op == "]" || op == "}") {
    if (open_.empty() || open_.back() != op[0]) {
      return Error(absl::StrCat("unexpected '", op, "'"));
    }
    open_.pop_back();
  }
  tokens_.push_back(Make(TokenType::kOperator, op));
  MoveTo(pos_ + op.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Token>> Lexer::Run() {
  while (pos_ < source_.size()) {
    size_t open = source_.find('{', pos_);
    while (open != kNone && !At(open, "{{") && !At(open, "{%") &&
           !At(open, "{#")) {
      open = source_.find('{', open + 1);
    }
    if (open == kNone) {
      tokens_.push_back(Make(TokenType::kText, Rest(pos_)));
      MoveTo(source_.size());
      break;
    }
    if (At(open, "{#")) {
      LANEWISE_RETURN_IF_ERROR(LexComment(open));
      continue;
    }
    if (At(open, "{%")) {
      LANEWISE_ASSIGN_OR_RETURN(const bool raw, LexRaw(open));
      if (raw) continue;
    }
    LANEWISE_RETURN_IF_ERROR(LexTag(open, At(open, "{{")));
  }
  tokens_.push_back(Make(TokenType::kEnd));
  return std::move(tokens_);
}

}  // namespace

absl::Status SyntaxError(int line, int column, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "chat template: line ", line, ", column ", column, ": ", what));
}

absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("chat template: ", source.size(), " bytes, at most ",
                     kMaxTemplateBytes, " are read"));
  }
  if (!ValidUtf8(source)) {
    return absl::InvalidArgumentError("chat template: not valid UTF-8");
  }
  std::string text =
      absl::StrReplaceAll(source, {{"\r\n", "\n"}, {"\r", "\n"}});
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return Lexer(std::move(text)).Run();
}

}  // namespace lanewise::chat
