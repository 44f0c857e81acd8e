// Builds the tree of a template.
//
//   LANEWISE_ASSIGN_OR_RETURN(Template t, ParseTemplate("{% if a %}b{% endif
//   %}"));
//
// The grammar is Jinja's, with loop controls and the generation tag. Syntax
// errors are INVALID_ARGUMENT with line and column; a tag, or outside of
// conditions a filter or test, that is not there is UNIMPLEMENTED with its name
// and line. Trees are at most kMaxTreeDepth deep.
#ifndef LANEWISE_MODEL_CHAT_PARSER_H_
#define LANEWISE_MODEL_CHAT_PARSER_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/ast.h"
#include "model/chat/lexer.h"

namespace lanewise::chat {

// Parentheses and blocks in each other; and levels of an expression's tree,
// which chains such as a + b + c … deepen too.
constexpr int kMaxNesting = 200;
constexpr int kMaxTreeDepth = 400;

absl::StatusOr<Template> ParseTemplate(absl::string_view source);

// The recursive descent behind ParseTemplate; statements are in parser.cc,
// expressions in parser_expr.cc and parser_postfix.cc.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens);
  absl::StatusOr<Template> Run();

 private:
  using ExprOr = absl::StatusOr<ExprPtr>;
  using StmtPtr = std::unique_ptr<Stmt>;
  using StmtOr = absl::StatusOr<StmtPtr>;
  using Names = std::initializer_list<absl::string_view>;

  // Tokens.
  const Token& current() const { return tokens_[pos_]; }
  const Token& ahead() const {
    return tokens_[pos_ + 1 < tokens_.size() ? pos_ + 1 : pos_];
  }
  void Advance() {
    if (pos_ + 1 < tokens_.size()) ++pos_;
  }
  bool AtOp(absl::string_view op) const {
    return current().type == TokenType::kOperator && current().text == op;
  }
  bool AtName(absl::string_view name) const {
    return current().type == TokenType::kName && current().text == name;
  }
  bool AtAnyName(Names names) const;
  bool SkipOp(absl::string_view op);
  bool SkipName(absl::string_view name);
  absl::Status ExpectOp(absl::string_view op);
  absl::Status ExpectBlockEnd();
  absl::StatusOr<std::string> ExpectName();
  absl::Status Error(absl::string_view what) const;
  absl::Status Unexpected() const;
  absl::Status Missing(absl::string_view what) const;
  // For what may be missing inside of conditions: an error of the whole
  // template only when it stands outside.
  void NoteMissing(absl::string_view what);
  int Symbol(absl::string_view name);

  // Statements.
  absl::StatusOr<Body> ParseBody(Names ends);
  StmtOr ParseStatement();
  StmtOr ParseTag(absl::string_view tag);
  StmtOr ParseFor();
  StmtOr ParseIf();
  StmtOr ParseSet();
  StmtOr ParseMacro();
  StmtOr ParseCallBlock();
  StmtOr ParseFilterBlock();
  StmtOr ParseWith();
  StmtOr ParseGeneration();
  StmtOr ParseLoopControl(StmtKind kind);
  absl::Status ParseSignature(MacroDefinition* macro);
  absl::Status ParseMacroBody(absl::string_view end, MacroDefinition* macro);
  absl::StatusOr<Target> ParseTarget(bool allow_attribute);
  absl::StatusOr<Target> ParseTargetElement(bool allow_attribute);
  StmtPtr NewStmt(StmtKind kind) const;

  // Expressions.
  ExprOr ParseExpression();
  ExprOr ParseTuple(bool parenthesized, bool conditions = true);
  ExprOr ParseOr();
  ExprOr ParseAnd();
  ExprOr ParseNot();
  ExprOr ParseCompare();
  absl::StatusOr<bool> SkipCompareOp(CompareOp* op);
  ExprOr ParseAdditive();
  ExprOr ParseConcat();
  ExprOr ParseMultiplicative();
  ExprOr ParsePower();
  ExprOr ParseUnary(bool with_filters);
  ExprOr ParsePrimary();
  ExprOr ParseNameOrConstant();
  ExprOr ParseList();
  ExprOr ParseDict();
  ExprOr ParsePostfix(ExprPtr expr);
  ExprOr ParseFilters(ExprPtr expr);
  ExprOr ParseFilter(ExprPtr expr);
  ExprOr ParseTest(ExprPtr expr);
  ExprOr ParseSubscript(ExprPtr expr);
  ExprOr ParseSlice(ExprPtr expr, ExprPtr start);
  ExprOr ParseCall(ExprPtr expr);
  absl::StatusOr<std::unique_ptr<Arguments>> ParseArguments(int* depth);
  absl::Status ParseArgument(Arguments* arguments, int* depth);
  absl::StatusOr<std::string> ParseDottedName();
  ExprPtr NewExpr(ExprKind kind) const;
  ExprOr Literal(Value value) const;
  ExprOr StringLiteral(std::string text) const;
  // Makes `child` the last child of `parent` and bounds the depth.
  absl::Status Adopt(Expr* parent, ExprPtr child) const;
  ExprOr Binary(ExprKind kind, ExprPtr left, ExprPtr right) const;

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int nesting_ = 0;
  int conditions_ = 0;  // enclosing if tags
  std::vector<absl::Status> missing_;
  int loops_ = 0;  // enclosing for bodies a break may leave
  std::vector<MacroDefinition*> macros_;  // enclosing ones
  absl::flat_hash_map<std::string, int> symbol_ids_;
  std::vector<std::string> symbols_;
};

// Counts a level of nesting while it lives.
class NestingScope {
 public:
  explicit NestingScope(int* level) : level_(level) { ++*level_; }
  ~NestingScope() { --*level_; }
  NestingScope(const NestingScope&) = delete;
  NestingScope& operator=(const NestingScope&) = delete;

 private:
  int* level_;
};

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_PARSER_H_
