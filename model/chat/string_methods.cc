// Methods of str, but for those that split (split_methods.cc).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/chat/builtins.h"
#include "model/chat/format.h"
#include "model/chat/text_ops.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;

Result Make(Machine& machine, const Value& self, Text text) {
  return machine.String(std::move(text), self.string().markup);
}

template <Side side>
Result StripMethod(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("strip", args, {"chars"}, 0));
  if (bound[0] == nullptr || bound[0]->is_none()) {
    LANEWISE_RETURN_IF_ERROR(machine.Reserve(self.text().footprint()));
    return Make(machine, self, Strip(self.text(), side, ""));
  }
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "strip"));
  const std::string& chars = bound[0]->bytes();
  if (chars.empty()) return self;
  LANEWISE_RETURN_IF_ERROR(
      machine.Work(self.text().footprint() * chars.size() / 16));
  return Make(machine, self, Strip(self.text(), side, chars));
}

template <std::string (*Map)(absl::string_view)>
Result MapCase(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("a case method", args, {}, 0).status());
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(8 * self.text().size()));
  return Make(machine, self,
              Text::Derived(Map(self.bytes()), self.text().has_input()));
}

std::string SwapCase(absl::string_view s) {
  std::string out;
  for (size_t pos = 0; pos < s.size();) {
    const size_t begin = pos;
    const char32_t c = DecodeUtf8(s, &pos);
    const absl::string_view piece = s.substr(begin, pos - begin);
    out += IsUpper(c) ? ToLower(piece) : ToUpper(piece);
  }
  return out;
}

// The bytes that [start:end] of a method with such arguments means.
struct Window {
  size_t begin = 0;
  size_t end = 0;
  bool empty_range = false;  // start behind the end: even "" is not there
};

absl::StatusOr<Window> GetWindow(const Value& self, const Value* start,
                                 const Value* end) {
  const std::string& s = self.bytes();
  Window w{0, s.size(), false};
  if (start == nullptr && end == nullptr) return w;
  LANEWISE_ASSIGN_OR_RETURN(const int64_t length, Length(self));
  LANEWISE_ASSIGN_OR_RETURN(int64_t from, IntArg(start, 0));
  LANEWISE_ASSIGN_OR_RETURN(int64_t to, IntArg(end, length));
  if (from < 0) from = std::max<int64_t>(from + length, 0);
  if (to < 0) to = std::max<int64_t>(to + length, 0);
  to = std::min(to, length);
  w.empty_range = from > to;
  w.begin = ByteOffset(s, static_cast<size_t>(std::min(from, length)));
  w.end = ByteOffset(s, static_cast<size_t>(to));
  if (w.empty_range) w.end = w.begin;
  return w;
}

template <bool at_end>
Result HasAffix(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("startswith/endswith", args, {"prefix", "start", "end"}, 1));
  std::vector<Value> affixes = {*bound[0]};
  if (bound[0]->is(Kind::kTuple)) affixes = bound[0]->list().items;
  LANEWISE_ASSIGN_OR_RETURN(const Window w,
                            GetWindow(self, bound[1], bound[2]));
  const absl::string_view s =
      absl::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  for (const Value& affix : affixes) {
    LANEWISE_RETURN_IF_ERROR(ExpectString(affix, "startswith/endswith"));
    LANEWISE_RETURN_IF_ERROR(machine.Work(affix.text().size()));
    if (w.empty_range) continue;
    if (at_end ? absl::EndsWith(s, affix.bytes())
               : absl::StartsWith(s, affix.bytes())) {
      return Value::Bool(true);
    }
  }
  return Value::Bool(false);
}

template <bool from_right, bool must_exist>
Result Find(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("find", args, {"sub", "start", "end"}, 1));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "find"));
  LANEWISE_RETURN_IF_ERROR(machine.Work(2 * self.text().size()));
  LANEWISE_ASSIGN_OR_RETURN(const Window w,
                            GetWindow(self, bound[1], bound[2]));
  const absl::string_view s =
      absl::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  const std::string& needle = bound[0]->bytes();
  size_t hit = w.empty_range ? s.npos : FindLinear(s, needle, 0);
  if (from_right && hit != s.npos) {
    if (needle.empty()) {
      hit = s.size();
    } else {
      std::string backward(s.rbegin(), s.rend());
      const std::string reversed(needle.rbegin(), needle.rend());
      hit = s.size() - needle.size() - FindLinear(backward, reversed, 0);
    }
  }
  if (hit == s.npos) {
    if (must_exist) return Fail("substring not found");
    return Value::Int(-1);
  }
  return Value::Int(static_cast<int64_t>(CountCodePoints(
      absl::string_view(self.bytes()).substr(0, w.begin + hit))));
}

Result Count(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("count", args, {"sub", "start", "end"}, 1));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "count"));
  LANEWISE_RETURN_IF_ERROR(machine.Work(4 * self.text().size()));
  LANEWISE_ASSIGN_OR_RETURN(const Window w,
                            GetWindow(self, bound[1], bound[2]));
  if (w.empty_range) return Value::Int(0);
  const absl::string_view s =
      absl::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  const std::string& needle = bound[0]->bytes();
  if (needle.empty()) {
    return Value::Int(static_cast<int64_t>(CountCodePoints(s)) + 1);
  }
  int64_t count = 0;
  for (size_t hit = FindLinear(s, needle, 0); hit != s.npos;
       hit = FindLinear(s, needle, hit + needle.size())) {
    LANEWISE_RETURN_IF_ERROR(machine.Step(1 + needle.size() / 128));
    ++count;
  }
  return Value::Int(count);
}

Result ReplaceMethod(Machine& machine, const Value& self,
                     const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("replace", args, {"old", "new", "count"}, 2));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "replace"));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[1], "replace"));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t count, IntArg(bound[2], -1));
  LANEWISE_ASSIGN_OR_RETURN(
      Text out,
      Replace(machine, self.text(), bound[0]->text(), bound[1]->text(), count));
  return Make(machine, self, std::move(out));
}

template <bool at_end>
Result RemoveAffix(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("removeprefix/suffix", args, {"affix"}, 1));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "removeprefix/suffix"));
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(self.text().footprint()));
  const std::string& affix = bound[0]->bytes();
  const std::string& s = self.bytes();
  if (at_end && absl::EndsWith(s, affix)) {
    return Make(machine, self, self.text().Substr(0, s.size() - affix.size()));
  }
  if (!at_end && absl::StartsWith(s, affix)) {
    return Make(machine, self, self.text().Substr(affix.size()));
  }
  return self;
}

template <Side text_side>
Result JustifyMethod(Machine& machine, const Value& self,
                     const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("center/just", args, {"width", "fill"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t width, IntArg(bound[0], 0));
  Text fill = Text::Template(" ");
  if (bound[1] != nullptr) {
    LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[1], "center/just"));
    fill = bound[1]->text();
    if (CountCodePoints(fill.bytes()) != 1) {
      return Fail("The fill character must be exactly one character long");
    }
  }
  LANEWISE_ASSIGN_OR_RETURN(
      Text out, Justify(machine, self.text(), width, fill, text_side));
  return Make(machine, self, std::move(out));
}

Result ZFill(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("zfill", args, {"width"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t width, IntArg(bound[0], 0));
  const bool has_sign = absl::StartsWith(self.bytes(), "-") ||
                        absl::StartsWith(self.bytes(), "+");
  const size_t sign = has_sign ? 1 : 0;
  LANEWISE_ASSIGN_OR_RETURN(
      const Text digits,
      Justify(machine, self.text().Substr(sign),
              std::max<int64_t>(width, 0) - static_cast<int64_t>(sign),
              Text::Template("0"), Side::kRight));
  Text out = self.text().Substr(0, sign);
  out.Append(digits);
  return Make(machine, self, std::move(out));
}

// All characters satisfy `Is`, and there is one.
template <bool (*Is)(char32_t)>
Result AllChars(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("a str test", args, {}, 0).status());
  const std::string& s = self.bytes();
  LANEWISE_RETURN_IF_ERROR(machine.Work(4 * s.size()));
  for (size_t pos = 0; pos < s.size();) {
    if (!Is(DecodeUtf8(s, &pos))) return Value::Bool(false);
  }
  return Value::Bool(!s.empty());
}

bool IsAlnum(char32_t c) { return IsAlpha(c) || IsDigit(c); }

// islower, isupper: some character has a case, and none the other.
template <bool upper>
Result OneCase(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("a str test", args, {}, 0).status());
  return Value::Bool([&] {
    bool cased = false;
    const std::string& s = self.bytes();
    for (size_t pos = 0; pos < s.size();) {
      const char32_t c = DecodeUtf8(s, &pos);
      if (upper ? IsLower(c) : IsUpper(c)) return false;
      cased = cased || (upper ? IsUpper(c) : IsLower(c));
    }
    return cased;
  }());
}

Result IsTitle(Machine& machine, const Value& self, const CallArgs&) {
  LANEWISE_RETURN_IF_ERROR(machine.Work(8 * self.text().size()));
  bool cased = false;
  for (size_t pos = 0; pos < self.text().size() && !cased;) {
    const char32_t c = DecodeUtf8(self.bytes(), &pos);
    cased = IsUpper(c) || IsLower(c);
  }
  return Value::Bool(cased && ToTitle(self.bytes()) == self.bytes());
}

Result IsAsciiMethod(Machine&, const Value& self, const CallArgs&) {
  return Value::Bool(self.string().ascii);
}

constexpr NamedMethod kMethods[] = {
    {"capitalize", MapCase<Capitalize>},
    {"casefold", MapCase<ToLower>},
    {"center", JustifyMethod<Side::kBoth>},
    {"count", Count},
    {"endswith", HasAffix<true>},
    {"find", Find<false, false>},
    {"format", BraceFormat},
    {"index", Find<false, true>},
    {"isalnum", AllChars<IsAlnum>},
    {"isalpha", AllChars<IsAlpha>},
    {"isascii", IsAsciiMethod},
    {"isdecimal", AllChars<IsDigit>},
    {"isdigit", AllChars<IsDigit>},
    {"islower", OneCase<false>},
    {"isnumeric", AllChars<IsDigit>},
    {"isspace", AllChars<IsSpace>},
    {"istitle", IsTitle},
    {"isupper", OneCase<true>},
    {"ljust", JustifyMethod<Side::kLeft>},
    {"lower", MapCase<ToLower>},
    {"lstrip", StripMethod<Side::kLeft>},
    {"removeprefix", RemoveAffix<false>},
    {"removesuffix", RemoveAffix<true>},
    {"replace", ReplaceMethod},
    {"rfind", Find<true, false>},
    {"rindex", Find<true, true>},
    {"rjust", JustifyMethod<Side::kRight>},
    {"rstrip", StripMethod<Side::kRight>},
    {"startswith", HasAffix<false>},
    {"strip", StripMethod<Side::kBoth>},
    {"swapcase", MapCase<SwapCase>},
    {"title", MapCase<ToTitle>},
    {"upper", MapCase<ToUpper>},
    {"zfill", ZFill},
};

}  // namespace

MethodFunction FindStringMethod(absl::string_view name) {
  for (const NamedMethod& method : kMethods) {
    if (method.name == name) return method.function;
  }
  return FindSplitMethod(name);
}

}  // namespace lanewise::chat
