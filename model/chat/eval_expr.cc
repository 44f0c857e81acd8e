// The expressions of Evaluator.
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/chat/compare.h"
#include "model/chat/evaluator.h"
#include "model/chat/operators.h"
#include "model/chat/repr.h"
#include "model/chat/subscript.h"
#include "simd/status_macros.h"

namespace lanewise::chat {

Evaluator::ValueOr Evaluator::Eval(const Expr& expr) {
  // The commonest need no more.
  if (expr.kind == ExprKind::kLiteral) return expr.literal;
  if (++depth_ > kMaxEvaluationDepth) {
    return Locate(
        absl::ResourceExhaustedError("the template recurses too deeply"),
        expr.line);
  }
  absl::Status status = machine_.Step();
  ValueOr value = Value();
  if (status.ok()) {
    value = Compute(expr);
    status = value.status();
  }
  --depth_;
  if (!status.ok()) return Locate(std::move(status), expr.line);
  return value;
}

Evaluator::ValueOr Evaluator::Compute(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return expr.literal;
    case ExprKind::kName:
      return EvalName(expr);
    case ExprKind::kList:
    case ExprKind::kTuple:
    case ExprKind::kDict:
      return ComputeCollection(expr);
    case ExprKind::kCondition:
      return EvalCondition(expr);
    case ExprKind::kAttribute: {
      LANEWISE_ASSIGN_OR_RETURN(const Value object, Eval(*expr.children[0]));
      return Attribute(object, expr.name);
    }
    case ExprKind::kItem: {
      LANEWISE_ASSIGN_OR_RETURN(const Value object, Eval(*expr.children[0]));
      LANEWISE_ASSIGN_OR_RETURN(const Value key, Eval(*expr.children[1]));
      if (object.is(Kind::kLoop) && key.is_string()) {
        return Attribute(object, key.bytes());
      }
      return GetItem(machine_, object, key);
    }
    case ExprKind::kSlice:
      return EvalSlice(expr);
    case ExprKind::kCall:
      return EvalCall(expr, nullptr);
    case ExprKind::kFilter:
      return EvalFilter(expr);
    case ExprKind::kTest:
      return EvalTest(expr);
    default:
      return ComputeOperation(expr);
  }
}

Evaluator::ValueOr Evaluator::ComputeOperation(const Expr& expr) {
  if (expr.kind == ExprKind::kConcat) return EvalConcat(expr);
  if (expr.kind == ExprKind::kCompare) return EvalCompare(expr);
  LANEWISE_ASSIGN_OR_RETURN(Value left, Eval(*expr.children[0]));
  switch (expr.kind) {
    case ExprKind::kAnd:
      return Truthy(left) ? Eval(*expr.children[1]) : ValueOr(left);
    case ExprKind::kOr:
      return Truthy(left) ? ValueOr(left) : Eval(*expr.children[1]);
    case ExprKind::kNot:
      return Value::Bool(!Truthy(left));
    case ExprKind::kNegate:
      return Negate(left);
    case ExprKind::kPlus:
      return Plus(left);
    case ExprKind::kBinary: {
      LANEWISE_ASSIGN_OR_RETURN(const Value right, Eval(*expr.children[1]));
      return Arithmetic(machine_, expr.op, left, right);
    }
    default:
      return absl::InternalError("an unknown expression");
  }
}

Evaluator::ValueOr Evaluator::EvalName(const Expr& expr) {
  if (const Value* value = frame_->Find(expr.symbol); value != nullptr) {
    return *value;
  }
  if (FindGlobal(expr.name) != nullptr) return machine_.Function(expr.name);
  return machine_.Undefined(
      absl::StrCat(StringRepr(expr.name), " is undefined"));
}

absl::StatusOr<std::vector<Value>> Evaluator::EvalChildren(const Expr& expr) {
  std::vector<Value> values;
  values.reserve(expr.children.size());
  for (const ExprPtr& child : expr.children) {
    LANEWISE_ASSIGN_OR_RETURN(Value value, Eval(*child));
    values.push_back(std::move(value));
  }
  return values;
}

Evaluator::ValueOr Evaluator::ComputeCollection(const Expr& expr) {
  LANEWISE_ASSIGN_OR_RETURN(std::vector<Value> values, EvalChildren(expr));
  if (expr.kind != ExprKind::kDict) {
    return machine_.List(std::move(values), expr.kind == ExprKind::kList
                                                ? Kind::kList
                                                : Kind::kTuple);
  }
  std::vector<std::pair<Value, Value>> items;
  for (size_t i = 0; i + 1 < values.size(); i += 2) {
    items.emplace_back(std::move(values[i]), std::move(values[i + 1]));
  }
  return machine_.Dict(std::move(items));
}

Evaluator::ValueOr Evaluator::EvalConcat(const Expr& expr) {
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<Value> values,
                            EvalChildren(expr));
  Text text;
  for (const Value& value : values) {
    LANEWISE_ASSIGN_OR_RETURN(const Text part, Str(machine_, value));
    LANEWISE_RETURN_IF_ERROR(
        machine_.Reserve(text.footprint() + part.footprint()));
    text.Append(part);
  }
  return machine_.String(std::move(text));
}

Evaluator::ValueOr Evaluator::EvalCompare(const Expr& expr) {
  LANEWISE_ASSIGN_OR_RETURN(Value left, Eval(*expr.children[0]));
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(Value right, Eval(*expr.children[i + 1]));
    LANEWISE_ASSIGN_OR_RETURN(const bool holds,
                              Compare(machine_, expr.ops[i], left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Evaluator::ValueOr Evaluator::EvalCondition(const Expr& expr) {
  LANEWISE_ASSIGN_OR_RETURN(const Value test, Eval(*expr.children[0]));
  if (Truthy(test)) return Eval(*expr.children[1]);
  if (expr.children[2] != nullptr) return Eval(*expr.children[2]);
  return machine_.Undefined(
      absl::StrCat("the inline if-expression on line ", expr.line,
                   " evaluated to false and no else section was defined."));
}

Evaluator::ValueOr Evaluator::EvalSlice(const Expr& expr) {
  LANEWISE_ASSIGN_OR_RETURN(const Value object, Eval(*expr.children[0]));
  Value bounds[3] = {Value::None(), Value::None(), Value::None()};
  for (size_t i = 0; i < 3; ++i) {
    if (expr.children[i + 1] == nullptr) continue;
    LANEWISE_ASSIGN_OR_RETURN(bounds[i], Eval(*expr.children[i + 1]));
  }
  return GetSlice(machine_, object, bounds[0], bounds[1], bounds[2]);
}

absl::StatusOr<CallArgs> Evaluator::EvalArguments(const Arguments* arguments) {
  CallArgs args;
  if (arguments == nullptr) return args;
  for (const ExprPtr& expr : arguments->positional) {
    LANEWISE_ASSIGN_OR_RETURN(Value value, Eval(*expr));
    args.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : arguments->keywords) {
    LANEWISE_ASSIGN_OR_RETURN(Value value, Eval(*expr));
    args.keywords.emplace_back(name, std::move(value));
  }
  if (arguments->star != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(const Value list, Eval(*arguments->star));
    LANEWISE_ASSIGN_OR_RETURN(const auto items, Iterate(machine_, list));
    args.positional.insert(args.positional.end(), items.begin(), items.end());
  }
  if (arguments->double_star != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(const Value dict, Eval(*arguments->double_star));
    if (!dict.is_dict()) return Fail("argument after ** must be a mapping");
    for (const auto& [key, value] : dict.dict().items) {
      if (!key.is_string()) return Fail("keywords must be strings");
      args.keywords.emplace_back(key.bytes(), value);
    }
  }
  return args;
}

Evaluator::ValueOr Evaluator::EvalFilter(const Expr& expr) {
  Value input;
  if (expr.children[0] != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(input, Eval(*expr.children[0]));
  } else {
    const Text* text = std::exchange(block_text_, nullptr);
    if (text == nullptr) return absl::InternalError("no text to filter");
    LANEWISE_ASSIGN_OR_RETURN(input, machine_.String(*text));
  }
  if (expr.filter == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the filter '", expr.name, "' is not supported"));
  }
  LANEWISE_ASSIGN_OR_RETURN(const CallArgs args,
                            EvalArguments(expr.arguments.get()));
  return expr.filter(machine_, input, args);
}

Evaluator::ValueOr Evaluator::EvalTest(const Expr& expr) {
  LANEWISE_ASSIGN_OR_RETURN(const Value input, Eval(*expr.children[0]));
  if (expr.test == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the test '", expr.name, "' is not supported"));
  }
  LANEWISE_ASSIGN_OR_RETURN(const CallArgs args,
                            EvalArguments(expr.arguments.get()));
  LANEWISE_ASSIGN_OR_RETURN(const bool holds, expr.test(machine_, input, args));
  return Value::Bool(holds);
}

}  // namespace lanewise::chat
