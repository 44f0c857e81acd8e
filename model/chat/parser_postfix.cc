// What follows an operand: subscripts, calls, filters and tests.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/chat/parser.h"
#include "simd/status_macros.h"

namespace lanewise::chat {

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
