// Filters on single values: numbers, defaults, JSON.
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "model/chat/builtins.h"
#include "model/chat/json_dump.h"
#include "model/chat/operators.h"
#include "model/chat/subscript.h"
#include "model/chat/text_ops.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;

Result Default(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("default", args, {"default_value", "boolean"}, 0));
  if (!v.is_undefined() && (!BoolArg(bound[1], false) || Truthy(v))) return v;
  if (bound[0] != nullptr) return *bound[0];
  return machine.TemplateString("");
}

Result Attr(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("attr", args, {"name"}, 1));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "attr"));
  const std::string& name = bound[0]->bytes();
  if (v.is_dict() && FindMethod(v, name) == nullptr) {
    return machine.Undefined(
        absl::StrCat("'dict object' has no attribute '", name, "'"));
  }
  return GetAttribute(machine, v, name);
}

Result ToJson(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("tojson", args,
               {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  JsonStyle style;
  style.ensure_ascii = BoolArg(bound[0], false);
  style.sort_keys = BoolArg(bound[3], false);
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    if (bound[1]->is_string()) {
      style.indent = bound[1]->bytes();
    } else {
      LANEWISE_ASSIGN_OR_RETURN(const int64_t width, IntArg(bound[1], 0));
      if (width > 1000) return Fail("tojson: an indent above 1000");
      style.indent =
          std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
    style.item_separator = ",";
  }
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    LANEWISE_ASSIGN_OR_RETURN(const auto pair, Iterate(machine, *bound[2]));
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      return Fail("tojson: separators must be two strings");
    }
    style.item_separator = pair[0].bytes();
    style.key_separator = pair[1].bytes();
  }
  LANEWISE_ASSIGN_OR_RETURN(Text text, DumpJson(machine, v, style));
  return machine.String(std::move(text));
}

// int(s, base) of Python, or nothing.
std::optional<int64_t> ParseInt(absl::string_view s, int base) {
  s = absl::StripAsciiWhitespace(s);
  const bool negative = absl::ConsumePrefix(&s, "-");
  if (!negative) absl::ConsumePrefix(&s, "+");
  for (const auto& [prefix, radix] :
       {std::pair<const char*, int>{"0x", 16}, {"0o", 8}, {"0b", 2}}) {
    if ((base == radix || base == 0) && absl::StartsWithIgnoreCase(s, prefix)) {
      s.remove_prefix(2);
      base = radix;
    }
  }
  if (base == 0) base = 10;
  if (s.empty() || s.front() == '_' || s.back() == '_') return std::nullopt;
  const std::string digits = absl::StrReplaceAll(s, {{"_", ""}});
  int64_t value = 0;
  const std::string signed_digits = (negative ? "-" : "") + digits;
  const char* last = signed_digits.data() + signed_digits.size();
  const auto result = std::from_chars(signed_digits.data(), last, value, base);
  if (result.ec != std::errc() || result.ptr != last || digits[0] == '-') {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParseFloat(absl::string_view s) {
  s = absl::StripAsciiWhitespace(s);
  double value = 0;
  if (s.empty() || absl::StrContainsIgnoreCase(s, "x") ||
      absl::StrContains(s, "(") ||
      !absl::SimpleAtod(absl::StrReplaceAll(s, {{"_", ""}}), &value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> Truncate(double d) {
  if (!(std::fabs(d) < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(d);
}

Result Int(Machine&, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("int", args, {"default", "base"}, 0));
  if (v.is_undefined()) return UndefinedError(v);
  LANEWISE_ASSIGN_OR_RETURN(const int64_t base, IntArg(bound[1], 10));
  if (base != 0 && (base < 2 || base > 36)) return Fail("int: a bad base");
  std::optional<int64_t> result;
  if (v.is_integral()) {
    result = v.int_value();
  } else if (v.is(Kind::kFloat)) {
    result = Truncate(v.float_value());
  } else if (v.is(Kind::kBigInt)) {
    return v;
  } else if (v.is_string()) {
    result = ParseInt(v.bytes(), static_cast<int>(base));
    if (!result.has_value()) {
      const std::optional<double> number = ParseFloat(v.bytes());
      if (number.has_value()) result = Truncate(*number);
    }
  }
  if (result.has_value()) return Value::Int(*result);
  return bound[0] == nullptr ? Value::Int(0) : *bound[0];
}

Result Float(Machine&, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("float", args, {"default"}, 0));
  if (v.is_undefined()) return UndefinedError(v);
  std::optional<double> result;
  if (v.is_numeric()) {
    result = v.as_double();
  } else if (v.is_string() || v.is(Kind::kBigInt)) {
    result = ParseFloat(v.is_string() ? v.bytes() : v.text().bytes());
  }
  if (result.has_value()) return Value::Float(*result);
  return bound[0] == nullptr ? Value::Float(0) : *bound[0];
}

Result Abs(Machine&, const Value& v, const CallArgs&) {
  if (v.is_undefined()) return UndefinedError(v);
  if (v.is(Kind::kFloat)) return Value::Float(std::fabs(v.float_value()));
  if (!v.is_integral()) {
    return Fail("bad operand type for abs(): '", TypeName(v), "'");
  }
  return v.int_value() < 0 ? Negate(v) : Value::Int(v.int_value());
}

// round(d, precision): to even on a tie of the exact binary value.
Result RoundFloat(double d, int64_t precision) {
  if (!std::isfinite(d) || precision > 330) return Value::Float(d);
  if (precision < -330) return Value::Float(std::copysign(0.0, d));
  if (precision >= 0) {
    double rounded = 0;
    const std::string text =
        absl::StrFormat("%.*f", static_cast<int>(precision), d);
    if (!absl::SimpleAtod(text, &rounded)) return Fail("round: out of range");
    return Value::Float(rounded);
  }
  const double scale = std::pow(10.0, static_cast<double>(-precision));
  return Value::Float(std::nearbyint(d / scale) * scale);
}

Result RoundInt(int64_t v, int64_t precision) {
  if (precision >= 0) return Value::Int(v);
  if (precision < -18) return Value::Int(0);
  int64_t scale = 1;
  for (int64_t i = 0; i < -precision; ++i) scale *= 10;
  int64_t quotient = v / scale;
  const int64_t rest = std::abs(v % scale);
  const bool up =
      rest > scale - rest || (rest == scale - rest && quotient % 2 != 0);
  if (up) quotient += v < 0 ? -1 : 1;
  int64_t result = 0;
  if (__builtin_mul_overflow(quotient, scale, &result)) {
    return Fail("an integer result is beyond 64 bits");
  }
  return Value::Int(result);
}

Result Round(Machine&, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("round", args, {"precision", "method"}, 0));
  if (v.is_undefined()) return UndefinedError(v);
  if (!v.is_numeric()) {
    return Fail("type ", TypeName(v), " doesn't define __round__ method");
  }
  LANEWISE_ASSIGN_OR_RETURN(const int64_t precision, IntArg(bound[0], 0));
  std::string method = "common";
  if (bound[1] != nullptr) {
    LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[1], "round"));
    method = bound[1]->bytes();
  }
  if (method == "common") {
    if (v.is_integral()) return RoundInt(v.int_value(), precision);
    return RoundFloat(v.float_value(), precision);
  }
  if (method != "ceil" && method != "floor") {
    return Fail("method must be common, ceil or floor");
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = v.as_double() * scale;
  return Value::Float(
      (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Result LengthFilter(Machine&, const Value& v, const CallArgs&) {
  LANEWISE_ASSIGN_OR_RETURN(const int64_t length, Length(v));
  return Value::Int(length);
}

constexpr NamedFilter kFilters[] = {
    {"abs", Abs},       {"attr", Attr},           {"count", LengthFilter},
    {"d", Default},     {"default", Default},     {"float", Float},
    {"int", Int},       {"length", LengthFilter}, {"round", Round},
    {"tojson", ToJson},
};

}  // namespace

FilterFunction FindFilter(absl::string_view name) {
  for (const NamedFilter& filter : kFilters) {
    if (filter.name == name) return filter.function;
  }
  for (const auto find : {FindTextFilter, FindListFilter, FindSelectFilter}) {
    if (const FilterFunction function = find(name); function != nullptr) {
      return function;
    }
  }
  return nullptr;
}

}  // namespace lanewise::chat
