#include "model/chat/evaluator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/chat/repr.h"
#include "simd/status_macros.h"

namespace lanewise::chat {

Value* Frame::Find(int symbol) {
  for (Frame* frame = this; frame != nullptr; frame = frame->parent.get()) {
    for (auto& [id, value] : frame->variables) {
      if (id == symbol) return &value;
    }
  }
  return nullptr;
}

void Frame::Set(int symbol, Value value) {
  for (auto& [id, old] : variables) {
    if (id != symbol) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(symbol, std::move(value));
}

void Frame::Clear() {
  // Values that die here may own this frame.
  const auto doomed = std::move(variables);
  const auto doomed_parent = std::move(parent);
  variables.clear();
}

void LoopObject::Clear() {
  const auto doomed = std::move(changed);
  changed.reset();
}

std::shared_ptr<Frame> Evaluator::NewFrame(
    const std::shared_ptr<Frame>& parent) {
  auto frame = std::make_shared<Frame>();
  frame->parent = parent;
  return frame;
}

absl::Status Evaluator::Locate(absl::Status status, int line) {
  if (located_ || IsRaisedByTemplate(status)) return status;
  located_ = true;
  return absl::Status(status.code(), absl::StrCat("chat template: line ", line,
                                                  ": ", status.message()));
}

absl::StatusOr<Text> Evaluator::Render(
    const std::vector<std::pair<std::string, Value>>& variables) {
  frame_ = NewFrame(nullptr);
  for (const auto& [name, value] : variables) {
    for (size_t i = 0; i < tree_.symbols.size(); ++i) {
      if (tree_.symbols[i] == name) frame_->Set(static_cast<int>(i), value);
    }
  }
  frame_ = NewFrame(frame_);
  Text text;
  out_ = &text;
  LANEWISE_RETURN_IF_ERROR(Run(tree_.body).status());
  return text;
}

absl::Status Evaluator::CheckOutput(size_t bytes) {
  if (bytes <= max_output_ - std::min(open_bytes_, max_output_)) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the output is longer than ", max_output_, " bytes"));
}

absl::Status Evaluator::Emit(const Text& text) {
  LANEWISE_RETURN_IF_ERROR(CheckOutput(text.size()));
  LANEWISE_RETURN_IF_ERROR(machine_.Work(text.footprint()));
  open_bytes_ += text.size();
  out_->Append(text);
  return absl::OkStatus();
}

absl::Status Evaluator::EmitTemplate(absl::string_view text) {
  LANEWISE_RETURN_IF_ERROR(CheckOutput(text.size()));
  LANEWISE_RETURN_IF_ERROR(machine_.Work(text.size()));
  open_bytes_ += text.size();
  out_->AppendTemplate(text);
  return absl::OkStatus();
}

Evaluator::FlowOr Evaluator::Run(const Body& body) {
  for (const auto& stmt : body) {
    LANEWISE_ASSIGN_OR_RETURN(const Flow flow, Run(*stmt));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::FlowOr Evaluator::RunScoped(const Body& body) {
  const std::shared_ptr<Frame> outer = frame_;
  frame_ = NewFrame(outer);
  FlowOr flow = Run(body);
  frame_ = outer;
  return flow;
}

Evaluator::FlowOr Evaluator::Run(const Stmt& stmt) {
  if (++depth_ > kMaxEvaluationDepth) {
    return Locate(
        absl::ResourceExhaustedError("the template recurses too deeply"),
        stmt.line);
  }
  absl::Status status = machine_.Step();
  FlowOr flow = Flow::kNext;
  if (status.ok()) {
    flow = Dispatch(stmt);
    status = flow.status();
  }
  --depth_;
  if (!status.ok()) return Locate(std::move(status), stmt.line);
  return flow;
}

Evaluator::FlowOr Evaluator::Dispatch(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kText:
      LANEWISE_RETURN_IF_ERROR(EmitTemplate(stmt.text));
      return Flow::kNext;
    case StmtKind::kOutput: {
      LANEWISE_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.exprs[0]));
      if (value.is_string()) {
        LANEWISE_RETURN_IF_ERROR(Emit(value.text()));
      } else {
        LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine_, value));
        LANEWISE_RETURN_IF_ERROR(Emit(text));
      }
      return Flow::kNext;
    }
    case StmtKind::kIf:
      return RunIf(stmt);
    case StmtKind::kFor:
      return RunFor(stmt);
    case StmtKind::kSet: {
      LANEWISE_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.exprs[0]));
      LANEWISE_RETURN_IF_ERROR(Assign(stmt.targets[0], value));
      return Flow::kNext;
    }
    case StmtKind::kSetBlock:
      return RunSetBlock(stmt);
    case StmtKind::kMacro:
      LANEWISE_RETURN_IF_ERROR(DefineMacro(stmt));
      return Flow::kNext;
    case StmtKind::kCallBlock:
      LANEWISE_RETURN_IF_ERROR(RunCallBlock(stmt));
      return Flow::kNext;
    case StmtKind::kFilterBlock:
      return RunFilterBlock(stmt);
    case StmtKind::kWith:
      return RunWith(stmt);
    case StmtKind::kScope:
      return RunScoped(stmt.bodies[0]);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return absl::InternalError("an unknown statement");
}

Evaluator::FlowOr Evaluator::RunIf(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(const Value test, Eval(*stmt.exprs[i]));
    if (Truthy(test)) return Run(stmt.bodies[i]);
  }
  if (stmt.bodies.size() > stmt.exprs.size()) return Run(stmt.bodies.back());
  return Flow::kNext;
}

absl::StatusOr<bool> Evaluator::Pull(LoopObject& loop) {
  const Expr* condition = loop.stmt->exprs[1].get();
  while (loop.next < loop.source.size()) {
    const Value& item = loop.source[loop.next++];
    bool passes = true;
    if (condition != nullptr) {
      LANEWISE_RETURN_IF_ERROR(machine_.Step());
      const std::shared_ptr<Frame> outer = frame_;
      frame_ = NewFrame(loop.frame);
      const absl::Status assigned = Assign(loop.stmt->targets[0], item);
      ValueOr value = Value();
      if (assigned.ok()) {
        value = Eval(*condition);
      } else {
        value = assigned;
      }
      frame_ = outer;
      LANEWISE_RETURN_IF_ERROR(value.status());
      passes = Truthy(*value);
    }
    if (!passes) continue;
    loop.passed.push_back(item);
    return true;
  }
  return false;
}

Evaluator::FlowOr Evaluator::RunFor(const Stmt& stmt) {
  LANEWISE_ASSIGN_OR_RETURN(const Value iterable, Eval(*stmt.exprs[0]));
  return RunLoop(stmt, iterable, frame_, 0);
}

Evaluator::FlowOr Evaluator::RunLoop(const Stmt& stmt, const Value& iterable,
                                     const std::shared_ptr<Frame>& frame,
                                     int depth0) {
  auto loop = std::make_shared<LoopObject>();
  LANEWISE_ASSIGN_OR_RETURN(loop->source, Iterate(machine_, iterable));
  LANEWISE_RETURN_IF_ERROR(machine_.Charge(
      loop.get(),
      sizeof(LoopObject) + 2 * loop->source.size() * sizeof(Value)));
  loop->stmt = &stmt;
  loop->frame = frame;
  loop->depth0 = depth0;
  const Value loop_value = Value::Of(Kind::kLoop, loop);
  const std::shared_ptr<Frame> outer = frame_;
  FlowOr flow = Flow::kNext;
  bool finished = false;  // a round ran to its end: then there is no "else"
  for (loop->index = 0;; ++loop->index) {
    if (loop->index == loop->passed.size()) {
      LANEWISE_ASSIGN_OR_RETURN(const bool more, Pull(*loop));
      if (!more) break;
    }
    frame_ = NewFrame(frame);
    frame_->Set(kSymbolLoop, loop_value);
    const absl::Status assigned =
        Assign(stmt.targets[0], loop->passed[loop->index]);
    if (assigned.ok()) {
      flow = Run(stmt.bodies[0]);
    } else {
      flow = assigned;
    }
    frame_ = outer;
    LANEWISE_RETURN_IF_ERROR(flow.status());
    if (*flow == Flow::kBreak) break;
    finished = finished || *flow == Flow::kNext;
  }
  if (finished) return Flow::kNext;
  frame_ = frame;
  flow = RunScoped(stmt.bodies[1]);
  frame_ = outer;
  return flow;
}

Evaluator::FlowOr Evaluator::Capture(const Body& body, Text* text) {
  Text* outer = std::exchange(out_, text);
  const size_t before = open_bytes_;
  FlowOr flow = RunScoped(body);
  open_bytes_ = before;
  out_ = outer;
  return flow;
}

Evaluator::FlowOr Evaluator::RunSetBlock(const Stmt& stmt) {
  Text text;
  LANEWISE_ASSIGN_OR_RETURN(const Flow flow, Capture(stmt.bodies[0], &text));
  if (flow != Flow::kNext) return flow;
  Value value;
  if (stmt.exprs[0] != nullptr) {
    block_text_ = &text;
    LANEWISE_ASSIGN_OR_RETURN(value, Eval(*stmt.exprs[0]));
  } else {
    LANEWISE_ASSIGN_OR_RETURN(value, machine_.String(std::move(text)));
  }
  LANEWISE_RETURN_IF_ERROR(Assign(stmt.targets[0], value));
  return Flow::kNext;
}

Evaluator::FlowOr Evaluator::RunFilterBlock(const Stmt& stmt) {
  Text text;
  LANEWISE_ASSIGN_OR_RETURN(const Flow flow, Capture(stmt.bodies[0], &text));
  if (flow != Flow::kNext) return flow;
  block_text_ = &text;
  LANEWISE_ASSIGN_OR_RETURN(const Value value, Eval(*stmt.exprs[0]));
  LANEWISE_ASSIGN_OR_RETURN(const Text result, Str(machine_, value));
  LANEWISE_RETURN_IF_ERROR(Emit(result));
  return Flow::kNext;
}

Evaluator::FlowOr Evaluator::RunWith(const Stmt& stmt) {
  std::vector<Value> values;
  for (const ExprPtr& expr : stmt.exprs) {
    LANEWISE_ASSIGN_OR_RETURN(Value value, Eval(*expr));
    values.push_back(std::move(value));
  }
  const std::shared_ptr<Frame> outer = frame_;
  frame_ = NewFrame(outer);
  FlowOr flow = Flow::kNext;
  for (size_t i = 0; i < values.size() && flow.ok(); ++i) {
    const absl::Status assigned = Assign(stmt.targets[i], values[i]);
    if (!assigned.ok()) flow = assigned;
  }
  if (flow.ok()) flow = Run(stmt.bodies[0]);
  frame_ = outer;
  return flow;
}

Evaluator::ValueOr Evaluator::MakeMacro(const MacroDefinition& definition) {
  auto macro = std::make_shared<MacroObject>();
  LANEWISE_RETURN_IF_ERROR(
      machine_.Charge(macro.get(), sizeof(MacroObject) + sizeof(Frame)));
  macro->definition = &definition;
  macro->frame = frame_;
  if (!frame_->kept) {
    frame_->kept = true;
    machine_.Keep(frame_);
  }
  return Value::Of(Kind::kMacro, std::move(macro));
}

absl::Status Evaluator::DefineMacro(const Stmt& stmt) {
  LANEWISE_ASSIGN_OR_RETURN(Value macro, MakeMacro(*stmt.macro));
  frame_->Set(stmt.macro->symbol, std::move(macro));
  return absl::OkStatus();
}

absl::Status Evaluator::RunCallBlock(const Stmt& stmt) {
  LANEWISE_ASSIGN_OR_RETURN(const Value caller, MakeMacro(*stmt.macro));
  LANEWISE_ASSIGN_OR_RETURN(const Value value,
                            EvalCall(*stmt.exprs[0], &caller));
  LANEWISE_ASSIGN_OR_RETURN(const Text text, Str(machine_, value));
  return Emit(text);
}

absl::Status Evaluator::Assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) {
    Value* ns = frame_->Find(target.symbol);
    if (ns == nullptr || !ns->is(Kind::kNamespace)) {
      return Fail("cannot assign attribute on non-namespace object");
    }
    for (auto& [name, old] : ns->ns().attributes) {
      if (name != target.attribute) continue;
      const Value doomed = std::exchange(old, value);
      return absl::OkStatus();
    }
    ns->ns().attributes.emplace_back(target.attribute, value);
    return absl::OkStatus();
  }
  if (!target.is_tuple) {
    frame_->Set(target.symbol, value);
    return absl::OkStatus();
  }
  if (value.is_undefined()) return UndefinedError(value);
  if (!IsIterable(value)) {
    return Fail("cannot unpack non-iterable ", TypeName(value), " object");
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            Iterate(machine_, value));
  if (items.size() != target.elements.size()) {
    return Fail(
        items.size() < target.elements.size() ? "not enough" : "too many",
        " values to unpack (expected ", target.elements.size(), ", got ",
        items.size(), ")");
  }
  for (size_t i = 0; i < items.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(Assign(target.elements[i], items[i]));
  }
  return absl::OkStatus();
}

}  // namespace lanewise::chat
