// The expressions of Parser.
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

Parser::ExprOr Parser::ParsePostfix(ExprPtr expr) {
  while (true) {
    if (AtOp(".") || AtOp("[")) {
      LANEWISE_ASSIGN_OR_RETURN(expr, ParseSubscript(std::move(expr)));
    } else if (AtOp("(")) {
      LANEWISE_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Parser::ExprOr Parser::ParseFilters(ExprPtr expr) {
  while (true) {
    if (SkipOp("|")) {
      LANEWISE_ASSIGN_OR_RETURN(expr, ParseFilter(std::move(expr)));
    } else if (AtName("is") && expr != nullptr) {
      LANEWISE_ASSIGN_OR_RETURN(expr, ParseTest(std::move(expr)));
    } else if (AtOp("(") && expr != nullptr) {
      LANEWISE_ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

absl::StatusOr<std::string> Parser::ParseDottedName() {
  LANEWISE_ASSIGN_OR_RETURN(std::string name, ExpectName());
  while (SkipOp(".")) {
    LANEWISE_ASSIGN_OR_RETURN(const std::string part, ExpectName());
    absl::StrAppend(&name, ".", part);
  }
  return name;
}

// The filter whose name is current.
Parser::ExprOr Parser::ParseFilter(ExprPtr expr) {
  ExprPtr filter = NewExpr(ExprKind::kFilter);
  LANEWISE_ASSIGN_OR_RETURN(filter->name, ParseDottedName());
  filter->filter = FindFilter(filter->name);
  if (filter->filter == nullptr) {
    NoteMissing(absl::StrCat("the filter '", filter->name, "'"));
  }
  LANEWISE_RETURN_IF_ERROR(Adopt(filter.get(), std::move(expr)));
  if (AtOp("(")) {
    LANEWISE_ASSIGN_OR_RETURN(filter->arguments,
                              ParseArguments(&filter->depth));
  }
  return filter;
}

Parser::ExprOr Parser::ParseTest(ExprPtr expr) {
  Advance();  // is
  const bool negated = SkipName("not");
  ExprPtr test = NewExpr(ExprKind::kTest);
  LANEWISE_ASSIGN_OR_RETURN(test->name, ParseDottedName());
  test->test = FindTest(test->name);
  if (test->test == nullptr) {
    NoteMissing(absl::StrCat("the test '", test->name, "'"));
  }
  LANEWISE_RETURN_IF_ERROR(Adopt(test.get(), std::move(expr)));
  const TokenType type = current().type;
  if (AtOp("(")) {
    LANEWISE_ASSIGN_OR_RETURN(test->arguments, ParseArguments(&test->depth));
  } else if ((type == TokenType::kName &&
              !AtAnyName({"else", "or", "and", "is"})) ||
             type == TokenType::kString || type == TokenType::kInteger ||
             type == TokenType::kFloat || AtOp("[") || AtOp("{")) {
    const NestingScope scope(&nesting_);
    if (nesting_ > kMaxNesting) return Error("tests nest too deeply");
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary());
    LANEWISE_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    test->depth = std::max(test->depth, argument->depth + 1);
    test->arguments = std::make_unique<Arguments>();
    test->arguments->positional.push_back(std::move(argument));
  } else if (AtName("is")) {
    return Error("tests cannot be chained with 'is'");
  }
  if (!negated) return test;
  ExprPtr inverse = NewExpr(ExprKind::kNot);
  LANEWISE_RETURN_IF_ERROR(Adopt(inverse.get(), std::move(test)));
  return inverse;
}

Parser::ExprOr Parser::ParseSubscript(ExprPtr expr) {
  if (SkipOp(".")) {
    ExprPtr result = NewExpr(ExprKind::kAttribute);
    LANEWISE_RETURN_IF_ERROR(Adopt(result.get(), std::move(expr)));
    if (current().type == TokenType::kName) {
      result->name = current().text;
    } else if (current().type == TokenType::kInteger) {
      result->kind = ExprKind::kItem;
      LANEWISE_ASSIGN_OR_RETURN(ExprPtr index,
                                Literal(Value::Int(current().integer)));
      LANEWISE_RETURN_IF_ERROR(Adopt(result.get(), std::move(index)));
    } else {
      return Error("expected a name or number");
    }
    Advance();
    return result;
  }
  Advance();  // [
  ExprPtr index;
  if (!AtOp(":")) {
    LANEWISE_ASSIGN_OR_RETURN(index, ParseExpression());
  }
  if (AtOp(":")) return ParseSlice(std::move(expr), std::move(index));
  if (AtOp(",")) {
    ExprPtr tuple = NewExpr(ExprKind::kTuple);
    LANEWISE_RETURN_IF_ERROR(Adopt(tuple.get(), std::move(index)));
    while (SkipOp(",")) {
      LANEWISE_ASSIGN_OR_RETURN(ExprPtr next, ParseExpression());
      LANEWISE_RETURN_IF_ERROR(Adopt(tuple.get(), std::move(next)));
    }
    index = std::move(tuple);
  }
  LANEWISE_RETURN_IF_ERROR(ExpectOp("]"));
  return Binary(ExprKind::kItem, std::move(expr), std::move(index));
}

Parser::ExprOr Parser::ParseSlice(ExprPtr expr, ExprPtr start) {
  ExprPtr slice = NewExpr(ExprKind::kSlice);
  LANEWISE_RETURN_IF_ERROR(Adopt(slice.get(), std::move(expr)));
  LANEWISE_RETURN_IF_ERROR(Adopt(slice.get(), std::move(start)));
  for (int i = 0; i < 2; ++i) {
    ExprPtr part;
    if (SkipOp(":") && !AtOp(":") && !AtOp("]")) {
      LANEWISE_ASSIGN_OR_RETURN(part, ParseExpression());
    }
    LANEWISE_RETURN_IF_ERROR(Adopt(slice.get(), std::move(part)));
  }
  LANEWISE_RETURN_IF_ERROR(ExpectOp("]"));
  return slice;
}

Parser::ExprOr Parser::ParseCall(ExprPtr expr) {
  ExprPtr call = NewExpr(ExprKind::kCall);
  LANEWISE_RETURN_IF_ERROR(Adopt(call.get(), std::move(expr)));
  LANEWISE_ASSIGN_OR_RETURN(call->arguments, ParseArguments(&call->depth));
  return call;
}

absl::Status Parser::ParseArgument(Arguments* arguments, int* depth) {
  ExprPtr value;
  if (AtOp("*") || AtOp("**")) {
    ExprPtr& slot = AtOp("*") ? arguments->star : arguments->double_star;
    if (slot != nullptr) return Error("a second * or ** argument");
    Advance();
    LANEWISE_ASSIGN_OR_RETURN(slot, ParseExpression());
    *depth = std::max(*depth, slot->depth + 1);
    return absl::OkStatus();
  }
  std::string name;
  if (current().type == TokenType::kName &&
      ahead().type == TokenType::kOperator && ahead().text == "=") {
    name = current().text;
    Advance();
    Advance();
  } else if (!arguments->keywords.empty() || arguments->double_star ||
             arguments->star) {
    return Error("a positional argument follows a named one");
  }
  LANEWISE_ASSIGN_OR_RETURN(value, ParseExpression());
  *depth = std::max(*depth, value->depth + 1);
  if (name.empty()) {
    arguments->positional.push_back(std::move(value));
  } else {
    arguments->keywords.emplace_back(std::move(name), std::move(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Arguments>> Parser::ParseArguments(int* depth) {
  const NestingScope scope(&nesting_);
  if (nesting_ > kMaxNesting) return Error("calls nest too deeply");
  auto arguments = std::make_unique<Arguments>();
  Advance();  // (
  bool first = true;
  while (!AtOp(")")) {
    if (!first) {
      LANEWISE_RETURN_IF_ERROR(ExpectOp(","));
      if (AtOp(")")) break;
    }
    first = false;
    LANEWISE_RETURN_IF_ERROR(ParseArgument(arguments.get(), depth));
  }
  Advance();
  if (*depth > kMaxTreeDepth) return Error("the expression nests too deeply");
  return arguments;
}

}  // namespace lanewise::chat
