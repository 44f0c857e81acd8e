#include "model/chat/operators.h"

#include <cmath>
#include <utility>
#include <vector>

#include "model/chat/format.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

constexpr absl::string_view kOpNames[] = {"+", "-", "*", "/", "//", "%", "**"};

absl::Status Unsupported(BinaryOp op, const Value& a, const Value& b) {
  if (op == BinaryOp::kAdd && (a.is_string() || a.is(Kind::kList))) {
    return Fail("can only concatenate ", TypeName(a), " (not \"", TypeName(b),
                "\") to ", TypeName(a));
  }
  return Fail("unsupported operand type(s) for ",
              kOpNames[static_cast<size_t>(op)], ": '", TypeName(a), "' and '",
              TypeName(b), "'");
}

absl::Status Overflow() { return Fail("an integer result is beyond 64 bits"); }

int64_t FloorMod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double FloatMod(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0) {
    if ((r < 0) != (b < 0)) r += b;
  } else {
    r = std::copysign(0.0, b);
  }
  return r;
}

double FloatFloorDiv(double a, double b) {
  const double div = (a - FloatMod(a, b)) / b;
  if (div == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(div);
  return div - down > 0.5 ? down + 1 : down;
}

absl::StatusOr<Value> IntPow(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return Fail("0.0 cannot be raised to a negative power");
    return Value::Float(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return Overflow();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      return Overflow();
    }
  }
  return Value::Int(result);
}

absl::StatusOr<Value> IntArithmetic(BinaryOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  bool overflow = false;
  if (b == 0 && (op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv ||
                 op == BinaryOp::kMod)) {
    return Fail("division by zero");
  }
  switch (op) {
    case BinaryOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &r);
      break;
    case BinaryOp::kSub:
      overflow = __builtin_sub_overflow(a, b, &r);
      break;
    case BinaryOp::kMul:
      overflow = __builtin_mul_overflow(a, b, &r);
      break;
    case BinaryOp::kDiv:
      return Value::Float(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::kFloorDiv:
      if (b == -1) {
        overflow = __builtin_sub_overflow(int64_t{0}, a, &r);
      } else {
        r = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
      }
      break;
    case BinaryOp::kMod:
      r = FloorMod(a, b);
      break;
    case BinaryOp::kPow:
      return IntPow(a, b);
  }
  if (overflow) return Overflow();
  return Value::Int(r);
}

absl::StatusOr<Value> FloatArithmetic(BinaryOp op, double a, double b) {
  if (b == 0 && (op == BinaryOp::kDiv || op == BinaryOp::kFloorDiv ||
                 op == BinaryOp::kMod)) {
    return Fail("float division by zero");
  }
  switch (op) {
    case BinaryOp::kAdd:
      return Value::Float(a + b);
    case BinaryOp::kSub:
      return Value::Float(a - b);
    case BinaryOp::kMul:
      return Value::Float(a * b);
    case BinaryOp::kDiv:
      return Value::Float(a / b);
    case BinaryOp::kFloorDiv:
      return Value::Float(FloatFloorDiv(a, b));
    case BinaryOp::kMod:
      return Value::Float(FloatMod(a, b));
    case BinaryOp::kPow:
      break;
  }
  if (a == 0 && b < 0) return Fail("0.0 cannot be raised to a negative power");
  const double r = std::pow(a, b);
  if (std::isnan(r) && !std::isnan(a) && !std::isnan(b)) {
    return absl::UnimplementedError("complex numbers");
  }
  if (std::isinf(r) && !std::isinf(a) && !std::isinf(b)) {
    return Fail("a power is out of range");
  }
  return Value::Float(r);
}

absl::StatusOr<Value> AddStrings(Machine& machine, const Value& a,
                                 const Value& b) {
  const bool markup = a.string().markup || b.string().markup;
  LANEWISE_RETURN_IF_ERROR(
      machine.Reserve(a.text().footprint() + b.text().footprint()));
  const auto part = [markup](const Value& v) {
    return markup && !v.string().markup ? EscapeHtml(v.text()) : v.text();
  };
  Text text = part(a);
  if (markup) {
    text.Append(part(b));
  } else {
    text.Append(b.text());
  }
  return machine.String(std::move(text), markup);
}

absl::StatusOr<Value> AddLists(Machine& machine, const Value& a,
                               const Value& b) {
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(
      (a.list().items.size() + b.list().items.size()) * sizeof(Value)));
  std::vector<Value> items = a.list().items;
  items.insert(items.end(), b.list().items.begin(), b.list().items.end());
  return machine.List(std::move(items), a.kind());
}

absl::StatusOr<Value> Repeat(Machine& machine, const Value& v, int64_t times) {
  const size_t n = times < 0 ? 0 : static_cast<size_t>(times);
  const size_t unit = v.is_string() ? v.text().footprint()
                                    : v.list().items.size() * sizeof(Value);
  size_t bytes = 0;
  if (__builtin_mul_overflow(unit, n, &bytes)) bytes = SIZE_MAX;
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(bytes));
  if (unit == 0) return v;
  if (v.is_string()) {
    Text text;
    for (size_t i = 0; i < n; ++i) text.Append(v.text());
    return machine.String(std::move(text), v.string().markup);
  }
  std::vector<Value> items;
  items.reserve(n * v.list().items.size());
  for (size_t i = 0; i < n; ++i) {
    items.insert(items.end(), v.list().items.begin(), v.list().items.end());
  }
  return machine.List(std::move(items), v.kind());
}

bool IsRepeatable(const Value& v) {
  return v.is_string() || v.is(Kind::kList) || v.is(Kind::kTuple);
}

}  // namespace

absl::StatusOr<Value> Arithmetic(Machine& machine, BinaryOp op, const Value& a,
                                 const Value& b) {
  if (a.is_undefined()) return UndefinedError(a);
  if (op == BinaryOp::kMod && a.is_string()) {
    return PercentFormat(machine, a, b);
  }
  if (b.is_undefined()) return UndefinedError(b);
  if (a.is_integral() && b.is_integral()) {
    return IntArithmetic(op, a.int_value(), b.int_value());
  }
  if (a.is_numeric() && b.is_numeric()) {
    return FloatArithmetic(op, a.as_double(), b.as_double());
  }
  if (op == BinaryOp::kAdd) {
    if (a.is_string() && b.is_string()) return AddStrings(machine, a, b);
    if (a.kind() == b.kind() && IsRepeatable(a)) return AddLists(machine, a, b);
  }
  if (op == BinaryOp::kMul) {
    if (IsRepeatable(a) && b.is_integral()) {
      return Repeat(machine, a, b.int_value());
    }
    if (IsRepeatable(b) && a.is_integral()) {
      return Repeat(machine, b, a.int_value());
    }
  }
  return Unsupported(op, a, b);
}

absl::StatusOr<Value> Negate(const Value& v) {
  if (v.is_undefined()) return UndefinedError(v);
  if (v.is(Kind::kFloat)) return Value::Float(-v.float_value());
  if (!v.is_integral()) {
    return Fail("bad operand type for unary -: '", TypeName(v), "'");
  }
  int64_t r = 0;
  if (__builtin_sub_overflow(int64_t{0}, v.int_value(), &r)) return Overflow();
  return Value::Int(r);
}

absl::StatusOr<Value> Plus(const Value& v) {
  if (v.is_undefined()) return UndefinedError(v);
  if (v.is(Kind::kFloat)) return v;
  if (v.is_integral()) return Value::Int(v.int_value());
  return Fail("bad operand type for unary +: '", TypeName(v), "'");
}

Text EscapeHtml(const Text& text) {
  Text out;
  size_t begin = 0;
  const std::string& s = text.bytes();
  for (size_t i = 0; i < s.size(); ++i) {
    const char* entity = s[i] == '&'    ? "&amp;"
                         : s[i] == '<'  ? "&lt;"
                         : s[i] == '>'  ? "&gt;"
                         : s[i] == '\'' ? "&#39;"
                         : s[i] == '"'  ? "&#34;"
                                        : nullptr;
    if (entity == nullptr) continue;
    out.AppendSlice(text, begin, i - begin);
    out.Append(Text::Derived(entity, text.Substr(i, 1).has_input()));
    begin = i + 1;
  }
  out.AppendSlice(text, begin, s.size() - begin);
  return out;
}

}  // namespace lanewise::chat
