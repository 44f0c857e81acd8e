#include "model/chat/parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"

namespace lanewise::chat {

Parser::Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  for (const char* name : {"loop", "caller", "varargs", "kwargs"}) {
    Symbol(name);
  }
}

bool Parser::AtAnyName(Names names) const {
  return current().type == TokenType::kName &&
         std::find(names.begin(), names.end(), current().text) != names.end();
}

bool Parser::SkipOp(absl::string_view op) {
  if (!AtOp(op)) return false;
  Advance();
  return true;
}

bool Parser::SkipName(absl::string_view name) {
  if (!AtName(name)) return false;
  Advance();
  return true;
}

absl::Status Parser::ExpectOp(absl::string_view op) {
  if (SkipOp(op)) return absl::OkStatus();
  return Error(absl::StrCat("expected '", op, "'"));
}

absl::Status Parser::ExpectBlockEnd() {
  if (current().type != TokenType::kBlockEnd) return Error("expected '%}'");
  Advance();
  return absl::OkStatus();
}

absl::StatusOr<std::string> Parser::ExpectName() {
  if (current().type != TokenType::kName) return Error("expected a name");
  std::string name = current().text;
  Advance();
  return name;
}

absl::Status Parser::Error(absl::string_view what) const {
  std::string found;
  switch (current().type) {
    case TokenType::kEnd:
      found = "the end of the template";
      break;
    case TokenType::kBlockEnd:
      found = "'%}'";
      break;
    case TokenType::kVariableEnd:
      found = "'}}'";
      break;
    case TokenType::kString:
      found = "a string";
      break;
    case TokenType::kInteger:
    case TokenType::kFloat:
      found = "a number";
      break;
    default:
      found = absl::StrCat("'", current().text, "'");
  }
  return SyntaxError(current().line, current().column,
                     absl::StrCat(what, ", found ", found));
}

absl::Status Parser::Unexpected() const { return Error("unexpected token"); }

absl::Status Parser::Missing(absl::string_view what) const {
  return absl::UnimplementedError(absl::StrCat(
      "chat template: line ", current().line, ": ", what, " is not supported"));
}

void Parser::NoteMissing(absl::string_view what) {
  if (conditions_ == 0) missing_.push_back(Missing(what));
}

int Parser::Symbol(absl::string_view name) {
  const auto [it, added] =
      symbol_ids_.try_emplace(name, static_cast<int>(symbols_.size()));
  if (added) symbols_.emplace_back(name);
  return it->second;
}

Parser::StmtPtr Parser::NewStmt(StmtKind kind) const {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->line = current().line;
  return stmt;
}

// Statements up to a tag named in `ends`, of which the name is current then;
// without `ends` up to the end of the template.
absl::StatusOr<Body> Parser::ParseBody(Names ends) {
  Body body;
  while (true) {
    switch (current().type) {
      case TokenType::kText: {
        StmtPtr stmt = NewStmt(StmtKind::kText);
        stmt->text = current().text;
        Advance();
        body.push_back(std::move(stmt));
        break;
      }
      case TokenType::kVariableBegin: {
        Advance();
        StmtPtr stmt = NewStmt(StmtKind::kOutput);
        LANEWISE_ASSIGN_OR_RETURN(ExprPtr expr, ParseTuple(false));
        stmt->exprs.push_back(std::move(expr));
        if (current().type != TokenType::kVariableEnd) {
          return Error("expected '}}'");
        }
        Advance();
        body.push_back(std::move(stmt));
        break;
      }
      case TokenType::kBlockBegin: {
        Advance();
        if (AtAnyName(ends)) return body;
        LANEWISE_ASSIGN_OR_RETURN(StmtPtr stmt, ParseStatement());
        body.push_back(std::move(stmt));
        LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
        break;
      }
      case TokenType::kEnd:
        if (ends.size() == 0) return body;
        return Error(absl::StrCat("expected tag '", *(ends.end() - 1), "'"));
      default:
        return Unexpected();
    }
  }
}

Parser::StmtOr Parser::ParseStatement() {
  const NestingScope scope(&nesting_);
  if (nesting_ > kMaxNesting) return Error("tags nest too deeply");
  if (current().type != TokenType::kName) return Error("expected a tag's name");
  const std::string tag = current().text;
  for (const char* missing : {"extends", "include", "import", "from", "block",
                              "autoescape", "print"}) {
    if (tag == missing) return Missing(absl::StrCat("the tag '", tag, "'"));
  }
  return ParseTag(tag);
}

Parser::StmtOr Parser::ParseTag(absl::string_view tag) {
  if (tag == "if") return ParseIf();
  if (tag == "for") return ParseFor();
  if (tag == "set") return ParseSet();
  if (tag == "macro") return ParseMacro();
  if (tag == "call") return ParseCallBlock();
  if (tag == "filter") return ParseFilterBlock();
  if (tag == "with") return ParseWith();
  if (tag == "generation") return ParseGeneration();
  if (tag == "break") return ParseLoopControl(StmtKind::kBreak);
  if (tag == "continue") return ParseLoopControl(StmtKind::kContinue);
  if (absl::StartsWith(tag, "end") || tag == "else" || tag == "elif") {
    return Error("a tag that closes nothing");
  }
  return Error("unknown tag");
}

Parser::StmtOr Parser::ParseIf() {
  StmtPtr stmt = NewStmt(StmtKind::kIf);
  const NestingScope condition(&conditions_);
  while (true) {
    Advance();  // if, elif
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr test, ParseTuple(false, false));
    stmt->exprs.push_back(std::move(test));
    LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
    LANEWISE_ASSIGN_OR_RETURN(Body body, ParseBody({"elif", "else", "endif"}));
    stmt->bodies.push_back(std::move(body));
    if (!AtName("elif")) break;
  }
  if (SkipName("else")) {
    LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
    LANEWISE_ASSIGN_OR_RETURN(Body body, ParseBody({"endif"}));
    stmt->bodies.push_back(std::move(body));
  }
  Advance();
  return stmt;
}

Parser::StmtOr Parser::ParseFor() {
  StmtPtr stmt = NewStmt(StmtKind::kFor);
  Advance();
  LANEWISE_ASSIGN_OR_RETURN(Target target, ParseTarget(false));
  stmt->targets.push_back(std::move(target));
  if (!SkipName("in")) return Error("expected 'in'");
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr iterable, ParseTuple(false, false));
  stmt->exprs.push_back(std::move(iterable));
  ExprPtr test;
  if (SkipName("if")) {
    LANEWISE_ASSIGN_OR_RETURN(test, ParseExpression());
  }
  stmt->exprs.push_back(std::move(test));
  stmt->recursive = SkipName("recursive");
  LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
  {
    const NestingScope loop(&loops_);
    LANEWISE_ASSIGN_OR_RETURN(Body body, ParseBody({"else", "endfor"}));
    stmt->bodies.push_back(std::move(body));
  }
  Body otherwise;
  if (SkipName("else")) {
    LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
    LANEWISE_ASSIGN_OR_RETURN(otherwise, ParseBody({"endfor"}));
  }
  stmt->bodies.push_back(std::move(otherwise));
  Advance();
  return stmt;
}

Parser::StmtOr Parser::ParseSet() {
  StmtPtr stmt = NewStmt(StmtKind::kSet);
  Advance();
  LANEWISE_ASSIGN_OR_RETURN(Target target, ParseTarget(true));
  stmt->targets.push_back(std::move(target));
  if (SkipOp("=")) {
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr value, ParseTuple(false));
    stmt->exprs.push_back(std::move(value));
    return stmt;
  }
  stmt->kind = StmtKind::kSetBlock;
  ExprPtr filters;
  if (AtOp("|")) {
    LANEWISE_ASSIGN_OR_RETURN(filters, ParseFilters(nullptr));
  }
  stmt->exprs.push_back(std::move(filters));
  LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
  LANEWISE_ASSIGN_OR_RETURN(Body body, ParseBody({"endset"}));
  stmt->bodies.push_back(std::move(body));
  Advance();
  return stmt;
}

absl::Status Parser::ParseSignature(MacroDefinition* macro) {
  LANEWISE_RETURN_IF_ERROR(ExpectOp("("));
  while (!AtOp(")")) {
    if (!macro->parameters.empty()) {
      LANEWISE_RETURN_IF_ERROR(ExpectOp(","));
      if (AtOp(")")) return Error("expected a parameter");
    }
    LANEWISE_ASSIGN_OR_RETURN(std::string name, ExpectName());
    const int symbol = Symbol(name);
    macro->parameters.emplace_back(symbol, std::move(name));
    if (SkipOp("=")) {
      LANEWISE_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      macro->defaults.push_back(std::move(value));
    } else if (!macro->defaults.empty()) {
      return Error("a parameter without default follows one with a default");
    }
  }
  Advance();
  return absl::OkStatus();
}

absl::Status Parser::ParseMacroBody(absl::string_view end,
                                    MacroDefinition* macro) {
  LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
  macros_.push_back(macro);
  const int loops = std::exchange(loops_, 0);
  absl::StatusOr<Body> body = ParseBody({end});
  loops_ = loops;
  macros_.pop_back();
  LANEWISE_RETURN_IF_ERROR(body.status());
  macro->body = *std::move(body);
  Advance();
  return absl::OkStatus();
}

Parser::StmtOr Parser::ParseMacro() {
  StmtPtr stmt = NewStmt(StmtKind::kMacro);
  Advance();
  stmt->macro = std::make_unique<MacroDefinition>();
  MacroDefinition* macro = stmt->macro.get();
  macro->line = stmt->line;
  LANEWISE_ASSIGN_OR_RETURN(macro->name, ExpectName());
  macro->symbol = Symbol(macro->name);
  LANEWISE_RETURN_IF_ERROR(ParseSignature(macro));
  LANEWISE_RETURN_IF_ERROR(ParseMacroBody("endmacro", macro));
  return stmt;
}

Parser::StmtOr Parser::ParseCallBlock() {
  StmtPtr stmt = NewStmt(StmtKind::kCallBlock);
  Advance();
  stmt->macro = std::make_unique<MacroDefinition>();
  stmt->macro->name = "caller";
  stmt->macro->line = stmt->line;
  if (AtOp("(")) {
    LANEWISE_RETURN_IF_ERROR(ParseSignature(stmt->macro.get()));
  }
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr call, ParseExpression());
  if (call->kind != ExprKind::kCall) return Error("expected a call");
  stmt->exprs.push_back(std::move(call));
  LANEWISE_RETURN_IF_ERROR(ParseMacroBody("endcall", stmt->macro.get()));
  return stmt;
}

Parser::StmtOr Parser::ParseFilterBlock() {
  StmtPtr stmt = NewStmt(StmtKind::kFilterBlock);
  Advance();
  LANEWISE_ASSIGN_OR_RETURN(ExprPtr filter, ParseFilter(nullptr));
  LANEWISE_ASSIGN_OR_RETURN(filter, ParseFilters(std::move(filter)));
  stmt->exprs.push_back(std::move(filter));
  LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
  LANEWISE_ASSIGN_OR_RETURN(Body body, ParseBody({"endfilter"}));
  stmt->bodies.push_back(std::move(body));
  Advance();
  return stmt;
}

Parser::StmtOr Parser::ParseWith() {
  StmtPtr stmt = NewStmt(StmtKind::kWith);
  Advance();
  while (current().type != TokenType::kBlockEnd) {
    if (!stmt->targets.empty()) LANEWISE_RETURN_IF_ERROR(ExpectOp(","));
    LANEWISE_ASSIGN_OR_RETURN(Target target, ParseTargetElement(false));
    LANEWISE_RETURN_IF_ERROR(ExpectOp("="));
    LANEWISE_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    stmt->targets.push_back(std::move(target));
    stmt->exprs.push_back(std::move(value));
  }
  Advance();
  LANEWISE_ASSIGN_OR_RETURN(Body body, ParseBody({"endwith"}));
  stmt->bodies.push_back(std::move(body));
  Advance();
  return stmt;
}

Parser::StmtOr Parser::ParseGeneration() {
  StmtPtr stmt = NewStmt(StmtKind::kScope);
  Advance();
  LANEWISE_RETURN_IF_ERROR(ExpectBlockEnd());
  LANEWISE_ASSIGN_OR_RETURN(Body body, ParseBody({"endgeneration"}));
  stmt->bodies.push_back(std::move(body));
  Advance();
  return stmt;
}

Parser::StmtOr Parser::ParseLoopControl(StmtKind kind) {
  if (loops_ == 0) return Error("outside of a loop");
  StmtPtr stmt = NewStmt(kind);
  Advance();
  return stmt;
}

absl::StatusOr<Target> Parser::ParseTargetElement(bool allow_attribute) {
  const NestingScope scope(&nesting_);
  if (nesting_ > kMaxNesting) return Error("assignments nest too deeply");
  if (SkipOp("(")) {
    LANEWISE_ASSIGN_OR_RETURN(Target target, ParseTarget(allow_attribute));
    LANEWISE_RETURN_IF_ERROR(ExpectOp(")"));
    return target;
  }
  if (AtAnyName({"true", "false", "none", "True", "False", "None"})) {
    return Error("cannot assign to a constant");
  }
  Target target;
  LANEWISE_ASSIGN_OR_RETURN(target.name, ExpectName());
  target.symbol = Symbol(target.name);
  if (allow_attribute && SkipOp(".")) {
    LANEWISE_ASSIGN_OR_RETURN(target.attribute, ExpectName());
  }
  return target;
}

absl::StatusOr<Target> Parser::ParseTarget(bool allow_attribute) {
  LANEWISE_ASSIGN_OR_RETURN(Target first, ParseTargetElement(allow_attribute));
  if (!AtOp(",")) return first;
  Target tuple;
  tuple.is_tuple = true;
  tuple.elements.push_back(std::move(first));
  while (SkipOp(",")) {
    if (AtName("in") || AtOp("=") || AtOp(")")) break;
    LANEWISE_ASSIGN_OR_RETURN(Target next, ParseTargetElement(allow_attribute));
    tuple.elements.push_back(std::move(next));
  }
  return tuple;
}

absl::StatusOr<Template> Parser::Run() {
  Template result;
  LANEWISE_ASSIGN_OR_RETURN(result.body, ParseBody({}));
  if (!missing_.empty()) return missing_.front();
  result.symbols = std::move(symbols_);
  return result;
}

absl::StatusOr<Template> ParseTemplate(absl::string_view source) {
  LANEWISE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace lanewise::chat
