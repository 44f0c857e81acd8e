// The expressions of Parser, up to what follows an operand
// (parser_postfix.cc).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/chat/parser.h"
#include "simd/status_macros.h"

namespace lanewise::chat {

ExprPtr Parser::NewExpr(ExprKind kind) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = current().line;
  return expr;
}

Parser::ExprOr Parser::Literal(Value value) const {
  ExprPtr expr = NewExpr(ExprKind::kLiteral);
  expr->literal = std::move(value);
  return expr;
}

Parser::ExprOr Parser::StringLiteral(std::string text) const {
  auto object = std::make_shared<StringObject>();
  for (const char c : text) {
    object->ascii = object->ascii && static_cast<unsigned char>(c) < 0x80;
  }
  object->text = Text::Template(std::move(text));
  return Literal(Value::Of(Kind::kString, std::move(object)));
}

absl::Status Parser::Adopt(Expr* parent, ExprPtr child) const {
  if (child != nullptr) {
    parent->depth = std::max(parent->depth, child->depth + 1);
    if (parent->depth > kMaxTreeDepth) {
      return Error("the expression nests too deeply");
    }
  }
  parent->children.push_back(std::move(child));
  return absl::OkStatus();
}

Parser::ExprOr Parser::Binary(ExprKind kind, ExprPtr left,
                              ExprPtr right) const {
  ExprPtr expr = NewExpr(kind);
  LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(left)));
  LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(right)));
  return expr;
}

// An expression, or several with commas: a tuple. `parenthesized`: "()" is one.
Parser::ExprOr Parser::ParseTuple(bool parenthesized, bool conditions) {
  const auto at_end = [this] {
    return AtOp(")") || current().type == TokenType::kVariableEnd ||
           current().type == TokenType::kBlockEnd;
  };
  ExprPtr tuple = NewExpr(ExprKind::kTuple);
  bool is_tuple = false;
  while (!at_end()) {
    ExprOr element = conditions ? ParseExpression() : ParseOr();
    LANEWISE_RETURN_IF_ERROR(element.status());
    LANEWISE_RETURN_IF_ERROR(Adopt(tuple.get(), *std::move(element)));
    if (!AtOp(",")) break;
    Advance();
    is_tuple = true;
  }
  if (is_tuple) return tuple;
  if (!tuple->children.empty()) return std::move(tuple->children[0]);
  if (!parenthesized) return Error("expected an expression");
  return tuple;
}

Parser::ExprOr Parser::ParseExpression() {
  const NestingScope scope(&nesting_);
  if (nesting_ > kMaxNesting) return Error("expressions nest too deeply");
  const size_t missing = missing_.size();
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr expr, ParseOr());
  while (SkipName("if")) {
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr test, ParseOr());
    ExprPtr otherwise;
    if (SkipName("else")) {
      LANEWISE_ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    LANEWISE_ASSIGN_OR_RETURN(
        ExprPtr choice,
        Binary(ExprKind::kCondition, std::move(test), std::move(expr)));
    LANEWISE_RETURN_IF_ERROR(Adopt(choice.get(), std::move(otherwise)));
    expr = std::move(choice);
    missing_.resize(missing);  // all of it is evaluated on a condition
  }
  return expr;
}

Parser::ExprOr Parser::ParseOr() {
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (SkipName("or")) {
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    LANEWISE_ASSIGN_OR_RETURN(
        left, Binary(ExprKind::kOr, std::move(left), std::move(right)));
  }
  return left;
}

Parser::ExprOr Parser::ParseAnd() {
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (SkipName("and")) {
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    LANEWISE_ASSIGN_OR_RETURN(
        left, Binary(ExprKind::kAnd, std::move(left), std::move(right)));
  }
  return left;
}

Parser::ExprOr Parser::ParseNot() {
  if (!AtName("not")) return ParseCompare();
  const NestingScope scope(&nesting_);
  if (nesting_ > kMaxNesting) return Error("expressions nest too deeply");
  ExprPtr expr = NewExpr(ExprKind::kNot);
  Advance();
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(operand)));
  return expr;
}

absl::StatusOr<bool> Parser::SkipCompareOp(CompareOp* op) {
  struct Entry {
    absl::string_view text;
    CompareOp op;
  };
  static constexpr Entry kOps[] = {
      {"==", CompareOp::kEqual},  {"!=", CompareOp::kNotEqual},
      {"<", CompareOp::kLess},    {"<=", CompareOp::kLessEqual},
      {">", CompareOp::kGreater}, {">=", CompareOp::kGreaterEqual},
  };
  for (const Entry& entry : kOps) {
    if (!SkipOp(entry.text)) continue;
    *op = entry.op;
    return true;
  }
  if (SkipName("in")) {
    *op = CompareOp::kIn;
    return true;
  }
  if (AtName("not") && ahead().type == TokenType::kName &&
      ahead().text == "in") {
    Advance();
    Advance();
    *op = CompareOp::kNotIn;
    return true;
  }
  return false;
}

Parser::ExprOr Parser::ParseCompare() {
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr left, ParseAdditive());
  ExprPtr expr;
  CompareOp op;
  while (true) {
    LANEWISE_ASSIGN_OR_RETURN(const bool more, SkipCompareOp(&op));
    if (!more) break;
    if (expr == nullptr) {
      expr = NewExpr(ExprKind::kCompare);
      LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(left)));
    }
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr right, ParseAdditive());
    LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(right)));
    expr->ops.push_back(op);
  }
  return expr == nullptr ? std::move(left) : std::move(expr);
}

Parser::ExprOr Parser::ParseAdditive() {
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (AtOp("+") || AtOp("-")) {
    const BinaryOp op = AtOp("+") ? BinaryOp::kAdd : BinaryOp::kSub;
    Advance();
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    LANEWISE_ASSIGN_OR_RETURN(
        left, Binary(ExprKind::kBinary, std::move(left), std::move(right)));
    left->op = op;
  }
  return left;
}

Parser::ExprOr Parser::ParseConcat() {
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr first, ParseMultiplicative());
  if (!AtOp("~")) return first;
  ExprPtr expr = NewExpr(ExprKind::kConcat);
  LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(first)));
  while (SkipOp("~")) {
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr next, ParseMultiplicative());
    LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(next)));
  }
  return expr;
}

Parser::ExprOr Parser::ParseMultiplicative() {
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  while (AtOp("*") || AtOp("/") || AtOp("//") || AtOp("%")) {
    const BinaryOp op = AtOp("*")    ? BinaryOp::kMul
                        : AtOp("/")  ? BinaryOp::kDiv
                        : AtOp("//") ? BinaryOp::kFloorDiv
                                     : BinaryOp::kMod;
    Advance();
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    LANEWISE_ASSIGN_OR_RETURN(
        left, Binary(ExprKind::kBinary, std::move(left), std::move(right)));
    left->op = op;
  }
  return left;
}

Parser::ExprOr Parser::ParsePower() {
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary(true));
  while (SkipOp("**")) {  // to the left, unlike Python
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary(true));
    LANEWISE_ASSIGN_OR_RETURN(
        left, Binary(ExprKind::kBinary, std::move(left), std::move(right)));
    left->op = BinaryOp::kPow;
  }
  return left;
}

Parser::ExprOr Parser::ParseUnary(bool with_filters) {
  ExprPtr expr;
  if (AtOp("-") || AtOp("+")) {
    const NestingScope scope(&nesting_);
    if (nesting_ > kMaxNesting) return Error("expressions nest too deeply");
    expr = NewExpr(AtOp("-") ? ExprKind::kNegate : ExprKind::kPlus);
    Advance();
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(false));
    LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(operand)));
  } else {
    LANEWISE_ASSIGN_OR_RETURN(expr, ParsePrimary());
  }
  LANEWISE_ASSIGN_OR_RETURN(expr, ParsePostfix(std::move(expr)));
  if (!with_filters) return expr;
  return ParseFilters(std::move(expr));
}

Parser::ExprOr Parser::ParseNameOrConstant() {
  const std::string name = current().text;
  const bool is_true = name == "true" || name == "True";
  ExprPtr expr;
  if (is_true || name == "false" || name == "False") {
    LANEWISE_ASSIGN_OR_RETURN(expr, Literal(Value::Bool(is_true)));
  } else if (name == "none" || name == "None") {
    LANEWISE_ASSIGN_OR_RETURN(expr, Literal(Value::None()));
  } else {
    expr = NewExpr(ExprKind::kName);
    expr->name = name;
    expr->symbol = Symbol(name);
    for (MacroDefinition* macro : macros_) {
      macro->uses_caller |= expr->symbol == kSymbolCaller;
      macro->uses_varargs |= expr->symbol == kSymbolVarargs;
      macro->uses_kwargs |= expr->symbol == kSymbolKwargs;
    }
  }
  Advance();
  return expr;
}

Parser::ExprOr Parser::ParsePrimary() {
  const Token& token = current();
  switch (token.type) {
    case TokenType::kName:
      return ParseNameOrConstant();
    case TokenType::kString: {
      std::string text;
      while (current().type == TokenType::kString) {
        text += current().text;
        Advance();
      }
      return StringLiteral(std::move(text));
    }
    case TokenType::kInteger:
      Advance();
      return Literal(Value::Int(token.integer));
    case TokenType::kFloat:
      Advance();
      return Literal(Value::Float(token.number));
    default:
      break;
  }
  if (SkipOp("(")) {
    const NestingScope scope(&nesting_);
    if (nesting_ > kMaxNesting) return Error("parentheses nest too deeply");
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr expr, ParseTuple(true));
    LANEWISE_RETURN_IF_ERROR(ExpectOp(")"));
    return expr;
  }
  if (AtOp("[")) return ParseList();
  if (AtOp("{")) return ParseDict();
  return Unexpected();
}

Parser::ExprOr Parser::ParseList() {
  ExprPtr expr = NewExpr(ExprKind::kList);
  Advance();
  while (!AtOp("]")) {
    if (!expr->children.empty()) {
      LANEWISE_RETURN_IF_ERROR(ExpectOp(","));
      if (AtOp("]")) break;
    }
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(item)));
  }
  Advance();
  return expr;
}

Parser::ExprOr Parser::ParseDict() {
  ExprPtr expr = NewExpr(ExprKind::kDict);
  Advance();
  while (!AtOp("}")) {
    if (!expr->children.empty()) {
      LANEWISE_RETURN_IF_ERROR(ExpectOp(","));
      if (AtOp("}")) break;
    }
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    LANEWISE_RETURN_IF_ERROR(ExpectOp(":"));
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(key)));
    LANEWISE_RETURN_IF_ERROR(Adopt(expr.get(), std::move(value)));
  }
  Advance();
  return expr;
}

}  // namespace lanewise::chat
