// map, select, reject and their attribute forms. What they give is made at
// once, but can be walked only once, as the reference's generators.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/chat/builtins.h"
#include "model/chat/subscript.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;

// The arguments from `first` on, keywords included.
CallArgs Rest(const CallArgs& args, size_t first) {
  CallArgs rest;
  for (size_t i = first; i < args.positional.size(); ++i) {
    rest.positional.push_back(args.positional[i]);
  }
  rest.keywords = args.keywords;
  return rest;
}

absl::StatusOr<std::vector<Value>> Elements(Machine& machine, const Value& v) {
  if (!Truthy(v)) return std::vector<Value>();
  return Iterate(machine, v);
}

Result MapAttribute(Machine& machine, const Value& v, const CallArgs& args) {
  const Value* path = nullptr;
  const Value* fallback = nullptr;
  for (const auto& [name, value] : args.keywords) {
    if (name == "attribute") {
      path = &value;
    } else if (name == "default") {
      fallback = &value;
    } else {
      return Fail("map: unexpected keyword argument '", name, "'");
    }
  }
  if (path == nullptr) return Fail("map requires a filter argument");
  LANEWISE_ASSIGN_OR_RETURN(auto items, Elements(machine, v));
  for (Value& item : items) {
    LANEWISE_RETURN_IF_ERROR(machine.Step());
    LANEWISE_ASSIGN_OR_RETURN(item, GetPath(machine, item, *path, fallback));
  }
  return machine.List(std::move(items), Kind::kGenerator);
}

Result Map(Machine& machine, const Value& v, const CallArgs& args) {
  if (args.positional.empty()) return MapAttribute(machine, v, args);
  const Value& name = args.positional[0];
  LANEWISE_RETURN_IF_ERROR(ExpectString(name, "map"));
  const FilterFunction filter = FindFilter(name.bytes());
  if (filter == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("the filter '", name.bytes(), "' is not supported"));
  }
  const CallArgs rest = Rest(args, 1);
  LANEWISE_ASSIGN_OR_RETURN(auto items, Elements(machine, v));
  for (Value& item : items) {
    LANEWISE_RETURN_IF_ERROR(machine.Step());
    LANEWISE_ASSIGN_OR_RETURN(item, filter(machine, item, rest));
  }
  return machine.List(std::move(items), Kind::kGenerator);
}

template <bool by_attribute, bool keep>
Result Select(Machine& machine, const Value& v, const CallArgs& args) {
  size_t next = 0;
  if (by_attribute && args.positional.empty()) {
    return Fail("Missing parameter for attribute name");
  }
  if (by_attribute) ++next;
  TestFunction test = nullptr;
  if (next < args.positional.size()) {
    const Value& name = args.positional[next++];
    LANEWISE_RETURN_IF_ERROR(ExpectString(name, "select"));
    test = FindTest(name.bytes());
    if (test == nullptr) {
      return absl::UnimplementedError(
          absl::StrCat("the test '", name.bytes(), "' is not supported"));
    }
  }
  const CallArgs rest = Rest(args, next);
  LANEWISE_ASSIGN_OR_RETURN(auto items, Elements(machine, v));
  std::vector<Value> chosen;
  for (Value& item : items) {
    LANEWISE_RETURN_IF_ERROR(machine.Step());
    Value subject = item;
    if (by_attribute) {
      LANEWISE_ASSIGN_OR_RETURN(
          subject, GetPath(machine, item, args.positional[0], nullptr));
    }
    absl::StatusOr<bool> holds = Truthy(subject);
    if (test != nullptr) holds = test(machine, subject, rest);
    LANEWISE_RETURN_IF_ERROR(holds.status());
    if (*holds == keep) chosen.push_back(std::move(item));
  }
  return machine.List(std::move(chosen), Kind::kGenerator);
}

constexpr NamedFilter kFilters[] = {
    {"map", Map},
    {"reject", Select<false, false>},
    {"rejectattr", Select<true, false>},
    {"select", Select<false, true>},
    {"selectattr", Select<true, true>},
};

}  // namespace

FilterFunction FindSelectFilter(absl::string_view name) {
  for (const NamedFilter& filter : kFilters) {
    if (filter.name == name) return filter.function;
  }
  return nullptr;
}

}  // namespace lanewise::chat
