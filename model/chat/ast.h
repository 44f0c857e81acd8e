// The tree of a parsed template. Names of variables are numbered, so that
// scopes compare integers.
#ifndef LANEWISE_MODEL_CHAT_AST_H_
#define LANEWISE_MODEL_CHAT_AST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/chat/builtins.h"
#include "model/chat/compare.h"
#include "model/chat/value.h"

namespace lanewise::chat {

enum class ExprKind : uint8_t {
  kLiteral,
  kName,
  kList,
  kTuple,
  kDict,       // children: key, value, key, value, …
  kCondition,  // children: test, then, else or null
  kAnd,
  kOr,
  kNot,
  kNegate,
  kPlus,
  kBinary,     // `op`
  kConcat,     // ~ of all children
  kCompare,    // children[0] ops[0] children[1] ops[1] …
  kAttribute,  // children[0].name
  kItem,       // children[0][children[1]]
  kSlice,      // children[0][start:stop:step], absent ones null
  kCall,
  kFilter,  // children[0] | name, null child: the body of a filter block
  kTest,    // children[0] is name
};

enum class BinaryOp : uint8_t { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr star;         // *args
  ExprPtr double_star;  // **kwargs
};

struct Expr {
  ExprKind kind = ExprKind::kLiteral;
  BinaryOp op = BinaryOp::kAdd;
  int line = 0;
  int depth = 1;  // levels of the tree below, this one included
  int symbol = -1;
  std::string name;
  Value literal;
  std::vector<ExprPtr> children;
  std::vector<CompareOp> ops;
  std::unique_ptr<Arguments> arguments;
  FilterFunction filter = nullptr;
  TestFunction test = nullptr;
};

// What `set`, `for` and `with` assign to.
struct Target {
  int symbol = -1;        // a name, or the namespace of `attribute`
  std::string name;       // for errors
  std::string attribute;  // not empty: ns.attribute
  bool is_tuple = false;
  std::vector<Target> elements;
};

enum class StmtKind : uint8_t {
  kText,
  kOutput,  // expr
  kIf,      // exprs[i] guards bodies[i]; a further body is the else
  kFor,     // target in exprs[0], filtered by exprs[1] or null
  kSet,
  kSetBlock,  // exprs[0]: filters over the body, or null
  kMacro,
  kCallBlock,    // exprs[0]: the call; macro: the caller
  kFilterBlock,  // exprs[0]
  kWith,
  kScope,  // a generation tag
  kBreak,
  kContinue,
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct MacroDefinition {
  std::string name;
  int symbol = -1;
  int line = 0;
  std::vector<std::pair<int, std::string>> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  Body body;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  bool recursive = false;
  std::string text;
  std::vector<ExprPtr> exprs;
  std::vector<Target> targets;
  std::vector<Body> bodies;  // kFor: body, else
  std::unique_ptr<MacroDefinition> macro;
};

// Symbols with a meaning of their own come first.
enum Symbol : int {
  kSymbolLoop,
  kSymbolCaller,
  kSymbolVarargs,
  kSymbolKwargs,
  kFirstFreeSymbol,
};

struct Template {
  Body body;
  std::vector<std::string> symbols;
};

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_AST_H_
