// The global functions: range, dict, namespace, ….
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "model/chat/builtins.h"
#include "model/chat/repr.h"
#include "model/chat/strftime.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;

constexpr int64_t kMaxRange = 100'000;  // the sandbox's
constexpr absl::string_view kRaisedUrl = "lanewise.chat/raised";

Result Range(Machine& machine, const CallArgs& args) {
  if (!args.keywords.empty()) return Fail("range() takes no keyword arguments");
  if (args.positional.empty() || args.positional.size() > 3) {
    return Fail("range expected 1 to 3 arguments, got ",
                args.positional.size());
  }
  int64_t bounds[3] = {0, 0, 1};
  const bool only_stop = args.positional.size() == 1;
  for (size_t i = 0; i < args.positional.size(); ++i) {
    const Value& v = args.positional[i];
    if (v.is_undefined()) return UndefinedError(v);
    if (!v.is_integral()) {
      return Fail("'", TypeName(v),
                  "' object cannot be interpreted as an integer");
    }
    bounds[only_stop ? 1 : i] = v.int_value();
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) return Fail("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      return Fail("Range too big. The sandbox blocks ranges larger than ",
                  kMaxRange, ".");
    }
    items.push_back(Value::Int(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  LANEWISE_RETURN_IF_ERROR(machine.Step(items.size()));
  return MakeRange(machine, std::move(items), start, stop, step);
}

// Entries of dict(…) and namespace(…): a mapping or pairs, then keywords.
absl::StatusOr<std::vector<std::pair<Value, Value>>> Entries(
    Machine& machine, const CallArgs& args) {
  std::vector<std::pair<Value, Value>> items;
  if (args.positional.size() > 1) {
    return Fail("dict expected at most 1 argument, got ",
                args.positional.size());
  }
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.is_dict()) {
      items = source.dict().items;
    } else {
      LANEWISE_ASSIGN_OR_RETURN(const auto pairs, Iterate(machine, source));
      for (const Value& pair : pairs) {
        LANEWISE_ASSIGN_OR_RETURN(auto sides, Iterate(machine, pair));
        if (sides.size() != 2) {
          return Fail("a dictionary update sequence element has length ",
                      sides.size(), "; 2 is required");
        }
        items.emplace_back(std::move(sides[0]), std::move(sides[1]));
      }
    }
  }
  for (const auto& [name, value] : args.keywords) {
    LANEWISE_ASSIGN_OR_RETURN(Value key, machine.TemplateString(name));
    items.emplace_back(std::move(key), value);
  }
  LANEWISE_RETURN_IF_ERROR(machine.Step(items.size()));
  return items;
}

Result Dict(Machine& machine, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(auto items, Entries(machine, args));
  return machine.Dict(std::move(items));
}

Result Namespace(Machine& machine, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(auto items, Entries(machine, args));
  LANEWISE_ASSIGN_OR_RETURN(const Value dict, machine.Dict(std::move(items)));
  LANEWISE_ASSIGN_OR_RETURN(Value ns, machine.Namespace());
  for (const auto& [key, value] : dict.dict().items) {
    if (!key.is_string()) return Fail("a namespace's names must be strings");
    ns.ns().attributes.emplace_back(key.bytes(), value);
  }
  return ns;
}

Result Cycler(Machine& machine, const CallArgs& args) {
  if (args.positional.empty() || !args.keywords.empty()) {
    return Fail("cycler: at least one item has to be provided");
  }
  auto object = std::make_shared<CyclerObject>();
  LANEWISE_RETURN_IF_ERROR(machine.Charge(
      object.get(),
      sizeof(CyclerObject) + args.positional.size() * sizeof(Value)));
  object->items = args.positional;
  return Value::Of(Kind::kCycler, std::move(object));
}

Result Joiner(Machine& machine, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("joiner", args, {"sep"}, 0));
  auto object = std::make_shared<JoinerObject>();
  LANEWISE_RETURN_IF_ERROR(machine.Charge(object.get(), sizeof(JoinerObject)));
  LANEWISE_ASSIGN_OR_RETURN(
      object->separator,
      bound[0] == nullptr ? machine.TemplateString(", ") : Result(*bound[0]));
  return Value::Of(Kind::kJoiner, std::move(object));
}

Result RaiseException(Machine& machine, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("raise_exception", args, {"message"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const Text message, Str(machine, *bound[0]));
  absl::Status status = absl::InvalidArgumentError(message.bytes());
  status.SetPayload(kRaisedUrl, absl::Cord("1"));
  return status;
}

Result StrftimeNow(Machine& machine, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("strftime_now", args, {"format"}, 1));
  LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[0], "strftime_now"));
  const Text& format = bound[0]->text();
  LANEWISE_RETURN_IF_ERROR(machine.Reserve(16 * format.size()));
  LANEWISE_ASSIGN_OR_RETURN(
      std::string text, StrfTime(format.bytes(), machine.now_unix_seconds()));
  return machine.String(Text::Derived(std::move(text), format.has_input()));
}

Result Lipsum(Machine&, const CallArgs&) {
  return absl::UnimplementedError("the function lipsum is not supported");
}

struct NamedGlobal {
  absl::string_view name;
  GlobalFunction function;
};

constexpr NamedGlobal kGlobals[] = {
    {"range", Range},
    {"dict", Dict},
    {"namespace", Namespace},
    {"cycler", Cycler},
    {"joiner", Joiner},
    {"raise_exception", RaiseException},
    {"strftime_now", StrftimeNow},
    {"lipsum", Lipsum},
};

}  // namespace

GlobalFunction FindGlobal(absl::string_view name) {
  for (const NamedGlobal& global : kGlobals) {
    if (global.name == name) return global.function;
  }
  return nullptr;
}

bool IsRaisedByTemplate(const absl::Status& status) {
  return status.GetPayload(kRaisedUrl).has_value();
}

}  // namespace lanewise::chat
