// The calls of Evaluator: macros, methods, functions, the loop.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/chat/compare.h"
#include "model/chat/evaluator.h"
#include "model/chat/repr.h"
#include "model/chat/subscript.h"
#include "simd/status_macros.h"

namespace lanewise::chat {

Evaluator::ValueOr Evaluator::Attribute(const Value& object,
                                        absl::string_view name) {
  if (object.is(Kind::kLoop)) return LoopAttribute(object, name);
  if (object.is(Kind::kMacro) && name == "name") {
    return machine_.TemplateString(
        static_cast<const MacroObject&>(*object.object()).definition->name);
  }
  return GetAttribute(machine_, object, name);
}

// `caller`: of a call block, else nullptr.
Evaluator::ValueOr Evaluator::EvalCall(const Expr& expr, const Value* caller) {
  const Expr& callee = *expr.children[0];
  Value self;
  Value function;
  bool is_method = false;
  if (callee.kind == ExprKind::kAttribute) {
    LANEWISE_ASSIGN_OR_RETURN(self, Eval(*callee.children[0]));
    is_method = FindMethod(self, callee.name) != nullptr;
    if (!is_method) {
      LANEWISE_ASSIGN_OR_RETURN(function, Attribute(self, callee.name));
    }
  } else {
    LANEWISE_ASSIGN_OR_RETURN(function, Eval(callee));
  }
  LANEWISE_ASSIGN_OR_RETURN(CallArgs args, EvalArguments(expr.arguments.get()));
  if (caller != nullptr) args.keywords.emplace_back("caller", *caller);
  if (is_method) return CallMethod(self, callee.name, args);
  return Call(function, args);
}

Evaluator::ValueOr Evaluator::CallMethod(const Value& self,
                                         absl::string_view name,
                                         const CallArgs& args) {
  if (self.is(Kind::kLoop)) {
    return LoopMethod(static_cast<LoopObject&>(*self.object()), name, args);
  }
  const MethodFunction method = FindMethod(self, name);
  if (method == nullptr) return absl::InternalError("a lost method");
  return method(machine_, self, args);
}

Evaluator::ValueOr Evaluator::Call(const Value& callee, const CallArgs& args) {
  switch (callee.kind()) {
    case Kind::kUndefined:
      return UndefinedError(callee);
    case Kind::kMacro:
      return CallMacro(callee, args);
    case Kind::kLoop:
      return CallLoop(static_cast<LoopObject&>(*callee.object()), args);
    case Kind::kMethod: {
      const auto& method = static_cast<const MethodObject&>(*callee.object());
      return CallMethod(method.self, method.name, args);
    }
    case Kind::kFunction: {
      const auto& function =
          static_cast<const FunctionObject&>(*callee.object());
      return FindGlobal(function.name)(machine_, args);
    }
    case Kind::kJoiner: {
      auto& joiner = static_cast<JoinerObject&>(*callee.object());
      if (std::exchange(joiner.used, true)) return joiner.separator;
      return machine_.TemplateString("");
    }
    default:
      return Fail("'", TypeName(callee), "' object is not callable");
  }
}

// What the parameters did not take: caller, varargs, kwargs.
absl::Status Evaluator::BindExtra(
    const MacroDefinition& definition, const CallArgs& args,
    std::vector<std::pair<std::string, Value>> unused) {
  const size_t parameters = definition.parameters.size();
  const auto declared = [&](int symbol) {
    return std::any_of(definition.parameters.begin(),
                       definition.parameters.end(),
                       [&](const auto& p) { return p.first == symbol; });
  };
  if (definition.uses_caller && !declared(kSymbolCaller)) {
    Value caller = machine_.Undefined("No caller defined");
    const auto it = std::find_if(unused.begin(), unused.end(),
                                 [](auto& k) { return k.first == "caller"; });
    if (it != unused.end()) {
      caller = it->second;
      unused.erase(it);
    }
    frame_->Set(kSymbolCaller, std::move(caller));
  }
  if (definition.uses_kwargs) {
    std::vector<std::pair<Value, Value>> items;
    for (auto& [name, value] : unused) {
      LANEWISE_ASSIGN_OR_RETURN(Value key, machine_.TemplateString(name));
      items.emplace_back(std::move(key), std::move(value));
    }
    LANEWISE_ASSIGN_OR_RETURN(Value kwargs, machine_.Dict(std::move(items)));
    frame_->Set(kSymbolKwargs, std::move(kwargs));
  } else if (!unused.empty()) {
    return Fail("macro ", StringRepr(definition.name),
                " takes no keyword argument ", StringRepr(unused[0].first));
  }
  std::vector<Value> rest;
  for (size_t i = parameters; i < args.positional.size(); ++i) {
    rest.push_back(args.positional[i]);
  }
  if (definition.uses_varargs) {
    LANEWISE_ASSIGN_OR_RETURN(Value varargs,
                              machine_.List(std::move(rest), Kind::kTuple));
    frame_->Set(kSymbolVarargs, std::move(varargs));
  } else if (!rest.empty()) {
    return Fail("macro ", StringRepr(definition.name), " takes not more than ",
                parameters, " argument(s)");
  }
  return absl::OkStatus();
}

// Sets the parameters in frame_, which is the macro's own by now.
absl::Status Evaluator::BindMacro(const MacroObject& macro,
                                  const CallArgs& args) {
  const MacroDefinition& definition = *macro.definition;
  const size_t parameters = definition.parameters.size();
  const size_t given = std::min(args.positional.size(), parameters);
  std::vector<std::pair<std::string, Value>> unused = args.keywords;
  std::vector<size_t> missing;
  for (size_t i = 0; i < parameters; ++i) {
    const auto& [symbol, name] = definition.parameters[i];
    if (i < given) {
      frame_->Set(symbol, args.positional[i]);
      continue;
    }
    const auto it =
        std::find_if(unused.begin(), unused.end(),
                     [&n = name](const auto& k) { return k.first == n; });
    if (it == unused.end()) {
      missing.push_back(i);
      continue;
    }
    frame_->Set(symbol, it->second);
    unused.erase(it);
  }
  LANEWISE_RETURN_IF_ERROR(BindExtra(definition, args, std::move(unused)));
  const size_t first_default = parameters - definition.defaults.size();
  for (const size_t i : missing) {
    const auto& [symbol, name] = definition.parameters[i];
    Value value;
    if (i >= first_default) {
      LANEWISE_ASSIGN_OR_RETURN(value,
                                Eval(*definition.defaults[i - first_default]));
    } else {
      value = machine_.Undefined(
          absl::StrCat("parameter ", StringRepr(name), " was not provided"));
    }
    frame_->Set(symbol, std::move(value));
  }
  return absl::OkStatus();
}

Evaluator::ValueOr Evaluator::CallMacro(const Value& callee,
                                        const CallArgs& args) {
  const auto& macro = static_cast<const MacroObject&>(*callee.object());
  const std::shared_ptr<Object> alive = callee.shared();
  const std::shared_ptr<Frame> outer = frame_;
  frame_ = NewFrame(macro.frame);
  absl::Status status = BindMacro(macro, args);
  Text text;
  if (status.ok()) {
    Text* buffer = std::exchange(out_, &text);
    const size_t before = open_bytes_;
    status = Run(macro.definition->body).status();
    open_bytes_ = before;
    out_ = buffer;
  }
  frame_ = outer;
  LANEWISE_RETURN_IF_ERROR(status);
  return machine_.String(std::move(text));
}

Evaluator::ValueOr Evaluator::CallLoop(LoopObject& loop, const CallArgs& args) {
  if (!loop.stmt->recursive) {
    return Fail(
        "The loop must have the 'recursive' marker to be called recursively.");
  }
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("loop", args, {"iterable"}, 1));
  Text text;
  Text* buffer = std::exchange(out_, &text);
  const size_t before = open_bytes_;
  const absl::Status status =
      RunLoop(*loop.stmt, *bound[0], loop.frame, loop.depth0 + 1).status();
  open_bytes_ = before;
  out_ = buffer;
  LANEWISE_RETURN_IF_ERROR(status);
  return machine_.String(std::move(text));
}

Evaluator::ValueOr Evaluator::LoopMethod(LoopObject& loop,
                                         absl::string_view name,
                                         const CallArgs& args) {
  if (name == "cycle") {
    if (args.positional.empty()) return Fail("no items for cycling given");
    return args.positional[loop.index % args.positional.size()];
  }
  // changed(*values): whether they differ from those of the last call.
  bool same = loop.changed.has_value() &&
              loop.changed->size() == args.positional.size();
  for (size_t i = 0; same && i < args.positional.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(
        same, Equal(machine_, (*loop.changed)[i], args.positional[i]));
  }
  if (!same) loop.changed = args.positional;
  return Value::Bool(!same);
}

Evaluator::ValueOr Evaluator::LoopAttribute(const Value& self,
                                            absl::string_view name) {
  auto& loop = static_cast<LoopObject&>(*self.object());
  const auto index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value::Int(index + 1);
  if (name == "index0") return Value::Int(index);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "depth") return Value::Int(loop.depth0 + 1);
  if (name == "depth0") return Value::Int(loop.depth0);
  if (name == "cycle" || name == "changed") {
    if (name == "changed" && !loop.changed.has_value()) {
      machine_.Keep(self.shared());
    }
    return machine_.Method(self, name);
  }
  if (name == "previtem") {
    if (index > 0) return loop.passed[loop.index - 1];
    return machine_.Undefined("there is no previous item");
  }
  if (name == "last" || name == "nextitem") {
    bool more = loop.index + 1 < loop.passed.size();
    if (!more) {
      LANEWISE_ASSIGN_OR_RETURN(more, Pull(loop));
    }
    if (name == "last") return Value::Bool(!more);
    if (more) return loop.passed[loop.index + 1];
    return machine_.Undefined("there is no next item");
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    while (true) {
      LANEWISE_ASSIGN_OR_RETURN(const bool more, Pull(loop));
      if (!more) break;
    }
    const auto length = static_cast<int64_t>(loop.passed.size());
    if (name == "length") return Value::Int(length);
    return Value::Int(length - index - (name == "revindex" ? 0 : 1));
  }
  return GetAttribute(machine_, self, name);
}

}  // namespace lanewise::chat
