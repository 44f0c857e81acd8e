#include "model/chat/format.h"

#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/chat/repr.h"
#include "model/chat/subscript.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

// str.format.
class BraceFormatter {
 public:
  BraceFormatter(Machine& machine, const CallArgs& args)
      : machine_(machine), args_(args) {}

  // Formats `format`; `depth` 1 is the spec of a field.
  absl::StatusOr<Text> Run(const Text& format, int depth);

 private:
  absl::StatusOr<Text> Field(const Text& format, size_t begin, size_t end,
                             int depth);
  absl::StatusOr<Value> Lookup(absl::string_view field);
  absl::StatusOr<Value> Argument(absl::string_view name);
  absl::StatusOr<Value> Step(const Value& value, absl::string_view* rest);

  Machine& machine_;
  const CallArgs& args_;
  size_t next_ = 0;
  bool manual_ = false;
};

absl::StatusOr<Value> BraceFormatter::Argument(absl::string_view name) {
  size_t index = 0;
  if (name.empty()) {
    if (manual_) {
      return Fail(
          "cannot switch from manual field specification to automatic field "
          "numbering");
    }
    index = next_++;
  } else if (absl::SimpleAtoi(name, &index)) {
    if (next_ > 0) {
      return Fail(
          "cannot switch from automatic field numbering to manual field "
          "specification");
    }
    manual_ = true;
  } else {
    for (const auto& [key, value] : args_.keywords) {
      if (key == name) return value;
    }
    return Fail("format: no argument ", StringRepr(name));
  }
  if (index < args_.positional.size()) return args_.positional[index];
  return Fail("Replacement index ", index,
              " out of range for positional args tuple");
}

// One ".name" or "[key]" at the front of *rest.
absl::StatusOr<Value> BraceFormatter::Step(const Value& value,
                                           absl::string_view* rest) {
  if (rest->front() == '.') {
    rest->remove_prefix(1);
    const size_t end = std::min(rest->find_first_of(".["), rest->size());
    const absl::string_view name = rest->substr(0, end);
    rest->remove_prefix(end);
    return GetAttribute(machine_, value, name);
  }
  const size_t close = rest->find(']');
  if (rest->front() != '[' || close == rest->npos) {
    return Fail("format: a malformed field name");
  }
  const absl::string_view key = rest->substr(1, close - 1);
  rest->remove_prefix(close + 1);
  int64_t index = 0;
  if (absl::SimpleAtoi(key, &index)) {
    return GetItem(machine_, value, Value::Int(index));
  }
  LANEWISE_ASSIGN_OR_RETURN(const Value name, machine_.TemplateString(key));
  return GetItem(machine_, value, name);
}

absl::StatusOr<Value> BraceFormatter::Lookup(absl::string_view field) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  LANEWISE_ASSIGN_OR_RETURN(Value value, Argument(field.substr(0, end)));
  absl::string_view rest = field.substr(end);
  while (!rest.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(value, Step(value, &rest));
  }
  return value;
}

// The field format[begin, end), braces not included.
absl::StatusOr<Text> BraceFormatter::Field(const Text& format, size_t begin,
                                           size_t end, int depth) {
  const absl::string_view field =
      absl::string_view(format.bytes()).substr(begin, end - begin);
  const size_t name_end = std::min(field.find_first_of("!:"), field.size());
  LANEWISE_ASSIGN_OR_RETURN(Value value, Lookup(field.substr(0, name_end)));
  size_t pos = name_end;
  if (pos < field.size() && field[pos] == '!') {
    const char conversion = pos + 1 < field.size() ? field[pos + 1] : 0;
    if (conversion == 'r') {
      LANEWISE_ASSIGN_OR_RETURN(Text text, Repr(machine_, value));
      LANEWISE_ASSIGN_OR_RETURN(value, machine_.String(std::move(text)));
    } else if (conversion == 's') {
      LANEWISE_ASSIGN_OR_RETURN(value, StrValue(machine_, value));
    } else {
      return absl::UnimplementedError("this conversion in str.format");
    }
    pos += 2;
  }
  if (pos >= field.size()) return FormatValue(machine_, value, "");
  if (field[pos] != ':') return Fail("expected ':' after conversion specifier");
  LANEWISE_ASSIGN_OR_RETURN(
      const Text spec,
      Run(format.Substr(begin + pos + 1, end - begin - pos - 1), depth + 1));
  return FormatValue(machine_, value, spec.bytes());
}

absl::StatusOr<Text> BraceFormatter::Run(const Text& format, int depth) {
  if (depth > 1) return Fail("Max string recursion exceeded");
  const std::string& s = format.bytes();
  Text out;
  for (size_t pos = 0; pos < s.size();) {
    const size_t brace = std::min(s.find_first_of("{}", pos), s.size());
    out.AppendSlice(format, pos, brace - pos);
    if (brace == s.size()) break;
    if (brace + 1 < s.size() && s[brace + 1] == s[brace]) {
      out.AppendSlice(format, brace, 1);
      pos = brace + 2;
      continue;
    }
    if (s[brace] == '}') {
      return Fail("Single '}' encountered in format string");
    }
    size_t end = brace + 1;
    for (int open = 1; end < s.size(); ++end) {
      open += s[end] == '{' ? 1 : s[end] == '}' ? -1 : 0;
      if (open == 0) break;
    }
    if (end >= s.size()) return Fail("expected '}' before end of string");
    LANEWISE_ASSIGN_OR_RETURN(const Text field,
                              Field(format, brace + 1, end, depth));
    LANEWISE_RETURN_IF_ERROR(
        machine_.Reserve(out.footprint() + field.footprint()));
    out.Append(field);
    pos = end + 1;
  }
  return out;
}

// format % args.
class PercentFormatter {
 public:
  PercentFormatter(Machine& machine, const Value& args)
      : machine_(machine), args_(args) {}
  absl::StatusOr<Text> Run(const Text& format);

 private:
  absl::StatusOr<Value> Next();
  absl::StatusOr<Value> Named(absl::string_view s, size_t* pos);
  absl::StatusOr<std::string> Flags(absl::string_view s, size_t* pos);
  absl::StatusOr<Text> Convert(char type, const std::string& flags,
                               const Value& value);

  Machine& machine_;
  const Value& args_;
  size_t used_ = 0;
};

absl::StatusOr<Value> PercentFormatter::Next() {
  if (args_.is(Kind::kTuple)) {
    if (used_ < args_.list().items.size()) return args_.list().items[used_++];
  } else if (used_++ == 0) {
    return args_;
  }
  return Fail("not enough arguments for format string");
}

absl::StatusOr<Value> PercentFormatter::Named(absl::string_view s,
                                              size_t* pos) {
  const size_t close = s.find(')', *pos);
  if (close == s.npos) return Fail("incomplete format key");
  const absl::string_view key = s.substr(*pos + 1, close - *pos - 1);
  *pos = close + 1;
  if (!args_.is_dict()) return Fail("format requires a mapping");
  used_ = 1;
  const Value* value = args_.dict().Find(key);
  if (value == nullptr) return Fail("no key ", StringRepr(key));
  return *value;
}

// Flags, width and precision as a format spec.
absl::StatusOr<std::string> PercentFormatter::Flags(absl::string_view s,
                                                    size_t* pos) {
  bool left = false;
  bool zero = false;
  bool alternate = false;
  std::string sign;
  for (; *pos < s.size() && absl::StrContains("-+ #0", s[*pos]); ++*pos) {
    const char c = s[*pos];
    left = left || c == '-';
    zero = zero || c == '0';
    alternate = alternate || c == '#';
    if (c == '+' || (c == ' ' && sign.empty())) sign = std::string(1, c);
  }
  std::string size;
  while (*pos < s.size() && (absl::ascii_isdigit(s[*pos]) || s[*pos] == '.')) {
    size += s[(*pos)++];
    const bool bare_dot = size.back() == '.' &&
                          (*pos == s.size() || !absl::ascii_isdigit(s[*pos]));
    if (bare_dot) size += '0';
  }
  if (*pos < s.size() && s[*pos] == '*') {
    return absl::UnimplementedError("'*' as a width of % formatting");
  }
  return absl::StrCat(left   ? "<"
                      : zero ? "0="
                             : ">",
                      sign, alternate ? "#" : "", size);
}

absl::StatusOr<Text> PercentFormatter::Convert(char type,
                                               const std::string& flags,
                                               const Value& value) {
  if (type == 's' || type == 'r') {
    LANEWISE_ASSIGN_OR_RETURN(
        Text text, type == 's' ? Str(machine_, value) : Repr(machine_, value));
    LANEWISE_ASSIGN_OR_RETURN(const Value s, machine_.String(std::move(text)));
    std::string spec = flags;
    if (absl::StartsWith(spec, "0=")) spec = ">" + spec.substr(2);
    return FormatValue(machine_, s, spec);
  }
  if (type == 'c' && value.is_string()) {
    return FormatValue(machine_, value, flags);
  }
  if (value.is_undefined()) return UndefinedError(value);
  if (!value.is_numeric()) {
    return Fail("%", std::string(1, type),
                " format: a real number is required, not ", TypeName(value));
  }
  if (absl::StrContains("di u", type)) {
    Value number = value;
    if (value.is(Kind::kFloat)) {
      if (!(std::fabs(value.float_value()) < 9e18)) {
        return Fail("an integer result is beyond 64 bits");
      }
      number = Value::Int(static_cast<int64_t>(value.float_value()));
    }
    return FormatValue(machine_, number, absl::StrCat(flags, "d"));
  }
  if (absl::StrContains("xXoceEfFgG", type)) {
    return FormatValue(machine_, value,
                       absl::StrCat(flags, std::string(1, type)));
  }
  return Fail("unsupported format character '", std::string(1, type), "'");
}

absl::StatusOr<Text> PercentFormatter::Run(const Text& format) {
  const std::string& s = format.bytes();
  Text out;
  for (size_t pos = 0; pos < s.size();) {
    const size_t percent = std::min(s.find('%', pos), s.size());
    out.AppendSlice(format, pos, percent - pos);
    if (percent == s.size()) break;
    pos = percent + 1;
    if (pos < s.size() && s[pos] == '%') {
      out.AppendSlice(format, pos++, 1);
      continue;
    }
    Value value;
    const bool named = pos < s.size() && s[pos] == '(';
    if (named) {
      LANEWISE_ASSIGN_OR_RETURN(value, Named(s, &pos));
    }
    LANEWISE_ASSIGN_OR_RETURN(const std::string flags, Flags(s, &pos));
    if (pos >= s.size()) return Fail("incomplete format");
    if (!named) {
      LANEWISE_ASSIGN_OR_RETURN(value, Next());
    }
    LANEWISE_ASSIGN_OR_RETURN(const Text part, Convert(s[pos++], flags, value));
    LANEWISE_RETURN_IF_ERROR(
        machine_.Reserve(out.footprint() + part.footprint()));
    out.Append(part);
  }
  // Whatever has elements to look up counts as a mapping, and is not used up.
  const bool mapping = args_.is_dict() || args_.is(Kind::kList) ||
                       args_.is(Kind::kRange) || args_.is_undefined();
  const size_t given = args_.is(Kind::kTuple) ? args_.list().items.size()
                       : mapping              ? 0
                                              : 1;
  if (used_ < given) {
    return Fail("not all arguments converted during string formatting");
  }
  return out;
}

}  // namespace

absl::StatusOr<Value> PercentFormat(Machine& machine, const Value& format,
                                    const Value& args) {
  PercentFormatter formatter(machine, args);
  LANEWISE_ASSIGN_OR_RETURN(Text text, formatter.Run(format.text()));
  return machine.String(std::move(text));
}

absl::StatusOr<Value> BraceFormat(Machine& machine, const Value& format,
                                  const CallArgs& args) {
  BraceFormatter formatter(machine, args);
  LANEWISE_ASSIGN_OR_RETURN(Text text, formatter.Run(format.text(), 0));
  return machine.String(std::move(text));
}

}  // namespace lanewise::chat
