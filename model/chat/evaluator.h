// Runs a parsed template.
//
//   Evaluator evaluator(tree, machine, max_output_bytes);
//   LANEWISE_ASSIGN_OR_RETURN(Text text, evaluator.Render(variables));
//
// Errors carry the line, but for those that the template raises itself.
#ifndef LANEWISE_MODEL_CHAT_EVALUATOR_H_
#define LANEWISE_MODEL_CHAT_EVALUATOR_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/ast.h"
#include "model/chat/machine.h"
#include "model/chat/text.h"
#include "model/chat/value.h"

namespace lanewise::chat {

// Levels of statements, expressions and macros within each other: they fit a
// stack of 1 MiB without optimisation.
constexpr int kMaxEvaluationDepth = 500;

// Variables of one scope; lookups go on in the parent.
struct Frame : Object {
  std::vector<std::pair<int, Value>> variables;
  std::shared_ptr<Frame> parent;
  bool kept = false;

  Value* Find(int symbol);
  void Set(int symbol, Value value);
  void Clear() override;
};

struct MacroObject : Object {
  const MacroDefinition* definition = nullptr;
  std::shared_ptr<Frame> frame;  // where it was defined
};

// The `loop` of a for statement. Elements are tested by the loop's own
// condition only when they are needed.
struct LoopObject : Object {
  const Stmt* stmt = nullptr;
  std::shared_ptr<Frame> frame;  // around the loop
  std::vector<Value> source;
  size_t next = 0;            // of source
  std::vector<Value> passed;  // elements that met the condition
  size_t index = 0;           // of the current one in `passed`
  int depth0 = 0;
  std::optional<std::vector<Value>> changed;

  void Clear() override;
};

class Evaluator {
 public:
  Evaluator(const Template& tree, Machine& machine, size_t max_output_bytes)
      : tree_(tree), machine_(machine), max_output_(max_output_bytes) {}

  absl::StatusOr<Text> Render(
      const std::vector<std::pair<std::string, Value>>& variables);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  using FlowOr = absl::StatusOr<Flow>;
  using ValueOr = absl::StatusOr<Value>;

  // Statements (evaluator.cc).
  FlowOr Run(const Body& body);
  FlowOr Run(const Stmt& stmt);
  FlowOr RunScoped(const Body& body);
  FlowOr Dispatch(const Stmt& stmt);
  FlowOr RunIf(const Stmt& stmt);
  FlowOr RunFor(const Stmt& stmt);
  FlowOr RunLoop(const Stmt& stmt, const Value& iterable,
                 const std::shared_ptr<Frame>& frame, int depth0);
  FlowOr RunSetBlock(const Stmt& stmt);
  FlowOr RunFilterBlock(const Stmt& stmt);
  FlowOr RunWith(const Stmt& stmt);
  absl::Status RunCallBlock(const Stmt& stmt);
  absl::Status DefineMacro(const Stmt& stmt);
  ValueOr MakeMacro(const MacroDefinition& definition);
  absl::Status Emit(const Text& text);
  absl::Status EmitTemplate(absl::string_view text);
  absl::Status CheckOutput(size_t bytes);
  // Runs body into a buffer of its own.
  FlowOr Capture(const Body& body, Text* text);
  absl::Status Assign(const Target& target, const Value& value);
  std::shared_ptr<Frame> NewFrame(const std::shared_ptr<Frame>& parent);
  absl::Status Locate(absl::Status status, int line);
  // Makes the loop's next element; false at the end.
  absl::StatusOr<bool> Pull(LoopObject& loop);

  // Expressions (eval_expr.cc).
  ValueOr Eval(const Expr& expr);
  ValueOr Compute(const Expr& expr);
  ValueOr ComputeCollection(const Expr& expr);
  ValueOr ComputeOperation(const Expr& expr);
  ValueOr EvalName(const Expr& expr);
  ValueOr EvalConcat(const Expr& expr);
  ValueOr EvalCompare(const Expr& expr);
  ValueOr EvalCondition(const Expr& expr);
  ValueOr EvalSlice(const Expr& expr);
  ValueOr EvalFilter(const Expr& expr);
  ValueOr EvalTest(const Expr& expr);
  absl::StatusOr<std::vector<Value>> EvalChildren(const Expr& expr);
  absl::StatusOr<CallArgs> EvalArguments(const Arguments* arguments);

  // Calls (eval_call.cc).
  ValueOr EvalCall(const Expr& expr, const Value* caller);
  ValueOr Attribute(const Value& object, absl::string_view name);
  ValueOr Call(const Value& callee, const CallArgs& args);
  ValueOr CallMethod(const Value& self, absl::string_view name,
                     const CallArgs& args);
  ValueOr CallMacro(const Value& macro, const CallArgs& args);
  absl::Status BindMacro(const MacroObject& macro, const CallArgs& args);
  absl::Status BindExtra(const MacroDefinition& definition,
                         const CallArgs& args,
                         std::vector<std::pair<std::string, Value>> unused);
  ValueOr CallLoop(LoopObject& loop, const CallArgs& args);
  ValueOr LoopMethod(LoopObject& loop, absl::string_view name,
                     const CallArgs& args);
  ValueOr LoopAttribute(const Value& self, absl::string_view name);

  const Template& tree_;
  Machine& machine_;
  size_t max_output_;
  std::shared_ptr<Frame> frame_;
  Text* out_ = nullptr;
  size_t open_bytes_ = 0;  // in all buffers that are being written
  int depth_ = 0;
  bool located_ = false;
  const Text* block_text_ = nullptr;  // what a filter block filters
};

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_EVALUATOR_H_
