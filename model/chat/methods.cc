// Methods of dict, list, tuple and cycler.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/chat/builtins.h"
#include "model/chat/compare.h"
#include "model/chat/subscript.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;

Result Get(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("get", args, {"key", "default"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const bool there,
                            Contains(machine, self, *bound[0]));
  if (there) return GetItem(machine, self, *bound[0]);
  return bound[1] == nullptr ? Value::None() : *bound[1];
}

Result Keys(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("keys", args, {}, 0).status());
  std::vector<Value> items;
  for (const auto& entry : self.dict().items) items.push_back(entry.first);
  return machine.List(std::move(items), Kind::kView, "dict_keys");
}

Result Values(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("values", args, {}, 0).status());
  std::vector<Value> items;
  for (const auto& entry : self.dict().items) items.push_back(entry.second);
  return machine.List(std::move(items), Kind::kView, "dict_values");
}

Result Items(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("items", args, {}, 0).status());
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict().items) {
    LANEWISE_ASSIGN_OR_RETURN(Value pair,
                              machine.List({key, value}, Kind::kTuple));
    items.push_back(std::move(pair));
  }
  return machine.List(std::move(items), Kind::kView, "dict_items");
}

Result Copy(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_RETURN_IF_ERROR(BindArgs("copy", args, {}, 0).status());
  return self;  // nothing can change it
}

Result Count(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("count", args, {"value"}, 1));
  int64_t count = 0;
  for (const Value& item : self.list().items) {
    LANEWISE_ASSIGN_OR_RETURN(const bool same, Equal(machine, item, *bound[0]));
    count += same ? 1 : 0;
  }
  return Value::Int(count);
}

Result Index(Machine& machine, const Value& self, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("index", args, {"value", "start", "end"}, 1));
  const auto& items = self.list().items;
  const auto length = static_cast<int64_t>(items.size());
  LANEWISE_ASSIGN_OR_RETURN(int64_t start, IntArg(bound[1], 0));
  LANEWISE_ASSIGN_OR_RETURN(int64_t end, IntArg(bound[2], length));
  if (start < 0) start = std::max<int64_t>(start + length, 0);
  if (end < 0) end += length;
  for (int64_t i = start; i < std::min(end, length); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(
        const bool same,
        Equal(machine, items[static_cast<size_t>(i)], *bound[0]));
    if (same) return Value::Int(i);
  }
  return Fail("the value is not in the list");
}

Result Next(Machine&, const Value& self, const CallArgs&) {
  auto& cycler = static_cast<CyclerObject&>(*self.object());
  Value item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

Result Reset(Machine&, const Value& self, const CallArgs&) {
  static_cast<CyclerObject&>(*self.object()).position = 0;
  return Value::None();
}

// A method of the reference that is not here: found, and fails when called.
Result NotSupported(Machine&, const Value& self, const CallArgs&) {
  return absl::UnimplementedError(
      absl::StrCat("this method of ", TypeName(self), " is not supported"));
}

constexpr NamedMethod kDictMethods[] = {
    {"copy", Copy}, {"fromkeys", NotSupported}, {"get", Get}, {"items", Items},
    {"keys", Keys}, {"values", Values},
};
constexpr NamedMethod kListMethods[] = {
    {"copy", Copy}, {"count", Count}, {"index", Index}};
constexpr NamedMethod kTupleMethods[] = {{"count", Count}, {"index", Index}};
constexpr NamedMethod kCyclerMethods[] = {{"next", Next}, {"reset", Reset}};
constexpr NamedMethod kMissingStringMethods[] = {
    {"encode", NotSupported},      {"expandtabs", NotSupported},
    {"format_map", NotSupported},  {"isidentifier", NotSupported},
    {"isprintable", NotSupported}, {"maketrans", NotSupported},
    {"translate", NotSupported},
};

template <typename Table>
MethodFunction FindIn(const Table& table, absl::string_view name) {
  for (const NamedMethod& method : table) {
    if (method.name == name) return method.function;
  }
  return nullptr;
}

constexpr absl::string_view kMutatingDict[] = {"clear", "pop", "popitem",
                                               "setdefault", "update"};
constexpr absl::string_view kMutatingList[] = {
    "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};

}  // namespace

MethodFunction FindMethod(const Value& self, absl::string_view name) {
  switch (self.kind()) {
    case Kind::kString: {
      const MethodFunction method = FindStringMethod(name);
      return method != nullptr ? method : FindIn(kMissingStringMethods, name);
    }
    case Kind::kDict:
      return FindIn(kDictMethods, name);
    case Kind::kList:
      return FindIn(kListMethods, name);
    case Kind::kTuple:
    case Kind::kRange:
      return FindIn(kTupleMethods, name);
    case Kind::kCycler:
      return FindIn(kCyclerMethods, name);
    default:
      return nullptr;
  }
}

bool IsMutatingMethod(const Value& self, absl::string_view name) {
  const auto has = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) !=
           std::end(names);
  };
  if (self.is_dict()) return has(kMutatingDict);
  return self.is(Kind::kList) && has(kMutatingList);
}

}  // namespace lanewise::chat
