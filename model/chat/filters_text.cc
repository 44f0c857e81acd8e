// Filters on strings.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/chat/builtins.h"
#include "model/chat/format.h"
#include "model/chat/operators.h"
#include "model/chat/repr.h"
#include "model/chat/text_ops.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;

template <std::string (*Map)(absl::string_view)>
Result MapCase(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("a case filter", args, {}, 0).status());
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(8 * text.size()));
  return machine.String(Text::Derived(Map(text.bytes()), text.has_input()),
                        v.is_string() && v.string().markup);
}

// Words begin after white space and -({[<, unlike in str.title.
std::string TitleWords(absl::string_view s) {
  std::string out;
  size_t begin = 0;
  const auto flush = [&](size_t end) {
    if (end == begin) return;
    size_t first = begin;
    DecodeUtf8(s, &first);
    absl::StrAppend(&out, ToUpper(s.substr(begin, first - begin)),
                    ToLower(s.substr(first, end - first)));
  };
  for (size_t pos = 0; pos < s.size();) {
    const size_t at = pos;
    const char32_t c = DecodeUtf8(s, &pos);
    const bool breaks =
        IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (!breaks) continue;
    flush(at);
    out.append(s.substr(at, pos - at));
    begin = pos;
  }
  flush(s.size());
  return out;
}

Result Trim(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("trim", args, {"chars"}, 0));
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  absl::string_view chars;
  if (bound[0] != nullptr && !bound[0]->is_none()) {
    LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "trim"));
    chars = bound[0]->bytes();
    if (chars.empty()) return machine.String(text);
  }
  LANEWISE_RETURN_IF_ERROR(machine.Work(text.size() * (1 + chars.size())));
  return machine.String(Strip(text, Side::kBoth, chars),
                        v.is_string() && v.string().markup);
}

Result ReplaceFilter(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("replace", args, {"old", "new", "count"}, 2));
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  LANEWISE_ASSIGN_OR_RETURN(const Text from, Str(machine, *bound[0]));
  LANEWISE_ASSIGN_OR_RETURN(const Text to, Str(machine, *bound[1]));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t count, IntArg(bound[2], -1));
  LANEWISE_ASSIGN_OR_RETURN(Text out, Replace(machine, text, from, to, count));
  return machine.String(std::move(out));
}

Result Indent(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("indent", args, {"width", "first", "blank"}, 0));
  LANEWISE_RETURN_IF_ERROR(ExpectString(v, "indent"));
  Text unit = Text::Template("    ");
  if (bound[0] != nullptr && bound[0]->is_string()) {
    unit = bound[0]->text();
  } else {
    LANEWISE_ASSIGN_OR_RETURN(const int64_t width, IntArg(bound[0], 4));
    LANEWISE_RETURN_IF_ERROR(
        machine.Reserve(static_cast<size_t>(std::max<int64_t>(width, 0))));
    unit = Text::Template(
        std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' '));
  }
  Text padded = v.text();
  padded.AppendTemplate("\n");
  const std::vector<Text> lines = SplitLines(padded, false);
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(padded.footprint() * 2));
  const bool blank = BoolArg(bound[2], false);
  Text out;
  if (BoolArg(bound[1], false)) out.Append(unit);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      LANEWISE_RETURN_IF_ERROR(machine.Step(1 + unit.size() / 128));
      if (out.size() > (size_t{1} << 20)) {
        LANEWISE_RETURN_IF_ERROR(machine.Reserve(out.size() + unit.size()));
      }
      out.AppendTemplate("\n");
      if (blank || !lines[i].empty()) out.Append(unit);
    }
    out.Append(lines[i]);
  }
  return machine.String(std::move(out), v.string().markup);
}

Result WordCount(Machine& machine, const Value& v, const CallArgs&) {
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  LANEWISE_RETURN_IF_ERROR(machine.Work(8 * text.size()));
  int64_t count = 0;
  bool in_word = false;
  for (size_t pos = 0; pos < text.size();) {
    const bool part = IsIdentifierPart(DecodeUtf8(text.bytes(), &pos));
    if (part && !in_word) ++count;
    in_word = part;
  }
  return Value::Int(count);
}

Result Truncate(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("truncate", args, {"length", "killwords", "end", "leeway"}, 0));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t length, IntArg(bound[0], 255));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t leeway, IntArg(bound[3], 5));
  Text end = Text::Template("...");
  if (bound[2] != nullptr) {
    LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[2], "truncate"));
    end = bound[2]->text();
  }
  const auto end_length = static_cast<int64_t>(CountCodePoints(end.bytes()));
  if (length < end_length) return Fail("truncate: length is too small");
  if (leeway < 0) return Fail("truncate: leeway is negative");
  if (v.is_undefined()) return v;
  LANEWISE_ASSIGN_OR_RETURN(const int64_t total, Length(v));
  if (total - leeway <= length) return v;  // whatever it is
  LANEWISE_RETURN_IF_ERROR(ExpectString(v, "truncate"));
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(v.text().footprint()));
  Text out = v.text().Substr(
      0, ByteOffset(v.bytes(), static_cast<size_t>(length - end_length)));
  if (!BoolArg(bound[1], false)) {
    const size_t space = out.bytes().rfind(' ');
    if (space != std::string::npos) out = out.Substr(0, space);
  }
  out.Append(end);
  return machine.String(std::move(out));
}

Result Center(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("center", args, {"width"}, 0));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t width, IntArg(bound[0], 80));
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  LANEWISE_ASSIGN_OR_RETURN(
      Text out,
      Justify(machine, text, width, Text::Template(" "), Side::kBoth));
  return machine.String(std::move(out));
}

Result Format(Machine& machine, const Value& v, const CallArgs& args) {
  if (!args.positional.empty() && !args.keywords.empty()) {
    return Fail("format: positional and keyword arguments together");
  }
  LANEWISE_ASSIGN_OR_RETURN(const Value format, StrValue(machine, v));
  Value values;
  if (args.keywords.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(values,
                              machine.List(args.positional, Kind::kTuple));
  } else {
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [name, value] : args.keywords) {
      LANEWISE_ASSIGN_OR_RETURN(Value key, machine.TemplateString(name));
      items.emplace_back(std::move(key), value);
    }
    LANEWISE_ASSIGN_OR_RETURN(values, machine.Dict(std::move(items)));
  }
  return PercentFormat(machine, format, values);
}

Result String(Machine& machine, const Value& v, const CallArgs&) {
  return StrValue(machine, v);
}

Result Safe(Machine& machine, const Value& v, const CallArgs&) {
  LANEWISE_ASSIGN_OR_RETURN(Text text, Str(machine, v));
  return machine.String(std::move(text), true);
}

template <bool force>
Result Escape(Machine& machine, const Value& v, const CallArgs&) {
  if (!force && v.is_string() && v.string().markup) return v;
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(8 * text.size()));
  return machine.String(EscapeHtml(text), true);
}

Result UrlEncode(Machine& machine, const Value& v, const CallArgs&) {
  if (v.is_dict() || v.is_listlike()) {
    return absl::UnimplementedError("urlencode of a mapping or list");
  }
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(3 * text.size()));
  std::string out;
  for (const char c : text.bytes()) {
    if (absl::ascii_isalnum(c) || absl::StrContains("_.-~/", c)) {
      out += c;
    } else {
      absl::StrAppendFormat(&out, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return machine.String(Text::Derived(std::move(out), text.has_input()));
}

constexpr NamedFilter kFilters[] = {
    {"capitalize", MapCase<Capitalize>},
    {"center", Center},
    {"e", Escape<false>},
    {"escape", Escape<false>},
    {"forceescape", Escape<true>},
    {"format", Format},
    {"indent", Indent},
    {"lower", MapCase<ToLower>},
    {"replace", ReplaceFilter},
    {"safe", Safe},
    {"string", String},
    {"title", MapCase<TitleWords>},
    {"trim", Trim},
    {"truncate", Truncate},
    {"upper", MapCase<ToUpper>},
    {"urlencode", UrlEncode},
    {"wordcount", WordCount},
};

}  // namespace

FilterFunction FindTextFilter(absl::string_view name) {
  for (const NamedFilter& filter : kFilters) {
    if (filter.name == name) return filter.function;
  }
  return nullptr;
}

}  // namespace lanewise::chat
