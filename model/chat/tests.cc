// The tests of `is`.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "model/chat/builtins.h"
#include "model/chat/compare.h"
#include "model/chat/repr.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<bool>;

template <Kind kind>
Result IsKind(Machine&, const Value& v, const CallArgs&) {
  return v.is(kind);
}

Result Defined(Machine&, const Value& v, const CallArgs&) {
  return !v.is_undefined();
}

template <bool value>
Result IsBool(Machine&, const Value& v, const CallArgs&) {
  return v.is(Kind::kBool) && v.bool_value() == value;
}

Result Integer(Machine&, const Value& v, const CallArgs&) {
  return v.is(Kind::kInt) || v.is(Kind::kBigInt);
}

Result Number(Machine&, const Value& v, const CallArgs&) {
  return v.is_numeric() || v.is(Kind::kBigInt);
}

Result Iterable(Machine&, const Value& v, const CallArgs&) {
  return IsIterable(v);
}

Result Sequence(Machine&, const Value& v, const CallArgs&) {
  return v.is_undefined() || v.is_string() || v.is_dict() ||
         v.is(Kind::kList) || v.is(Kind::kTuple) || v.is(Kind::kRange);
}

Result Callable(Machine&, const Value& v, const CallArgs&) {
  // An undefined has a __call__ too: the one that fails.
  return v.is_undefined() || v.is(Kind::kMacro) || v.is(Kind::kFunction) ||
         v.is(Kind::kMethod) || v.is(Kind::kLoop) || v.is(Kind::kJoiner);
}

Result Escaped(Machine&, const Value& v, const CallArgs&) {
  return v.is_string() && v.string().markup;
}

template <bool upper>
Result HasCase(Machine& machine, const Value& v, const CallArgs&) {
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine, v));
  LANEWISE_RETURN_IF_ERROR(machine.Work(8 * text.size()));
  bool cased = false;
  for (size_t pos = 0; pos < text.size();) {
    const char32_t c = DecodeUtf8(text.bytes(), &pos);
    if (upper ? IsLower(c) : IsUpper(c)) return false;
    cased = cased || (upper ? IsUpper(c) : IsLower(c));
  }
  return cased;
}

Result Modulo(const Value& v, int64_t divisor, int64_t remainder) {
  if (v.is_undefined()) return UndefinedError(v);
  if (v.is(Kind::kFloat)) {
    return std::fmod(v.float_value(), static_cast<double>(divisor)) ==
           static_cast<double>(remainder);
  }
  if (!v.is_integral()) {
    return Fail("expected a number, found ", TypeName(v));
  }
  if (divisor == -1) return remainder == 0;
  const int64_t r = v.int_value() % divisor;
  return (r < 0 ? r + std::abs(divisor) : r) == remainder;
}

template <int remainder>
Result Parity(Machine&, const Value& v, const CallArgs&) {
  return Modulo(v, 2, remainder);
}

Result DivisibleBy(Machine&, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("divisibleby", args, {"num"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t divisor, IntArg(bound[0], 0));
  if (divisor == 0) return Fail("integer modulo by zero");
  return Modulo(v, divisor, 0);
}

template <CompareOp op>
Result Compare(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("a comparing test", args, {"other"}, 1));
  return Compare(machine, op, v, *bound[0]);
}

Result SameAs(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("sameas", args, {"other"}, 1));
  const Value& other = *bound[0];
  if (v.kind() != other.kind()) return false;
  if (v.is_none()) return true;
  if (v.is_numeric()) return Equal(machine, v, other);
  return v.object() == other.object();
}

template <bool filters>
Result Exists(Machine&, const Value& v, const CallArgs&) {
  if (!v.is_string()) return false;
  return filters ? FindFilter(v.bytes()) != nullptr
                 : FindTest(v.bytes()) != nullptr;
}

struct NamedTest {
  absl::string_view name;
  TestFunction function;
};

constexpr NamedTest kTests[] = {
    {"!=", Compare<CompareOp::kNotEqual>},
    {"<", Compare<CompareOp::kLess>},
    {"<=", Compare<CompareOp::kLessEqual>},
    {"==", Compare<CompareOp::kEqual>},
    {">", Compare<CompareOp::kGreater>},
    {">=", Compare<CompareOp::kGreaterEqual>},
    {"boolean", IsKind<Kind::kBool>},
    {"callable", Callable},
    {"defined", Defined},
    {"divisibleby", DivisibleBy},
    {"eq", Compare<CompareOp::kEqual>},
    {"equalto", Compare<CompareOp::kEqual>},
    {"escaped", Escaped},
    {"even", Parity<0>},
    {"false", IsBool<false>},
    {"filter", Exists<true>},
    {"float", IsKind<Kind::kFloat>},
    {"ge", Compare<CompareOp::kGreaterEqual>},
    {"greaterthan", Compare<CompareOp::kGreater>},
    {"gt", Compare<CompareOp::kGreater>},
    {"in", Compare<CompareOp::kIn>},
    {"integer", Integer},
    {"iterable", Iterable},
    {"le", Compare<CompareOp::kLessEqual>},
    {"lessthan", Compare<CompareOp::kLess>},
    {"lower", HasCase<false>},
    {"lt", Compare<CompareOp::kLess>},
    {"mapping", IsKind<Kind::kDict>},
    {"ne", Compare<CompareOp::kNotEqual>},
    {"none", IsKind<Kind::kNone>},
    {"number", Number},
    {"odd", Parity<1>},
    {"sameas", SameAs},
    {"sequence", Sequence},
    {"string", IsKind<Kind::kString>},
    {"test", Exists<false>},
    {"true", IsBool<true>},
    {"undefined", IsKind<Kind::kUndefined>},
    {"upper", HasCase<true>},
};

}  // namespace

TestFunction FindTest(absl::string_view name) {
  for (const NamedTest& test : kTests) {
    if (test.name == name) return test.function;
  }
  return nullptr;
}

}  // namespace lanewise::chat
