// Filters on lists and dicts.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "model/chat/builtins.h"
#include "model/chat/compare.h"
#include "model/chat/operators.h"
#include "model/chat/repr.h"
#include "model/chat/subscript.h"
#include "model/chat/text_ops.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

using Result = absl::StatusOr<Value>;
using Values = std::vector<Value>;

// What sort, unique, min … compare: an attribute or the item itself.
Result KeyOf(Machine& machine, const Value& item, const Value* attribute,
             bool case_sensitive) {
  Value key = item;
  if (attribute != nullptr && !attribute->is_none()) {
    LANEWISE_ASSIGN_OR_RETURN(key, GetPath(machine, item, *attribute, nullptr));
  }
  return case_sensitive ? Result(key) : IgnoreCase(machine, key);
}

absl::StatusOr<Values> KeysOf(Machine& machine, const Values& items,
                              const Value* attribute, bool case_sensitive) {
  Values keys;
  for (const Value& item : items) {
    LANEWISE_RETURN_IF_ERROR(machine.Step());
    LANEWISE_ASSIGN_OR_RETURN(Value key,
                              KeyOf(machine, item, attribute, case_sensitive));
    keys.push_back(std::move(key));
  }
  return keys;
}

Values Permute(const Values& items, const std::vector<size_t>& order) {
  Values out;
  for (const size_t i : order) out.push_back(items[i]);
  return out;
}

Result First(Machine& machine, const Value& v, const CallArgs&) {
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  if (!items.empty()) {
    // A generator goes on behind its first element.
    if (v.is(Kind::kGenerator)) {
      auto& list = v.list();
      list.items.erase(list.items.begin());
      list.consumed = false;
    }
    return items.front();
  }
  return machine.Undefined("No first item, sequence was empty.");
}

Result Last(Machine& machine, const Value& v, const CallArgs&) {
  if (v.is(Kind::kGenerator)) {
    return Fail("'generator' object is not reversible");
  }
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  if (!items.empty()) return items.back();
  return machine.Undefined("No last item, sequence was empty.");
}

Result List(Machine& machine, const Value& v, const CallArgs&) {
  LANEWISE_ASSIGN_OR_RETURN(Values items, Iterate(machine, v));
  return machine.List(std::move(items));
}

Result Reverse(Machine& machine, const Value& v, const CallArgs&) {
  if (v.is_string()) {
    return GetSlice(machine, v, Value::None(), Value::None(), Value::Int(-1));
  }
  LANEWISE_ASSIGN_OR_RETURN(Values items, Iterate(machine, v));
  std::reverse(items.begin(), items.end());
  return machine.List(std::move(items), Kind::kGenerator);
}

Result JoinFilter(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("join", args, {"d", "attribute"}, 0));
  Text separator;
  if (bound[0] != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(separator, Str(machine, *bound[0]));
  }
  LANEWISE_ASSIGN_OR_RETURN(Values items, Iterate(machine, v));
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    for (Value& item : items) {
      LANEWISE_ASSIGN_OR_RETURN(item,
                                GetPath(machine, item, *bound[1], nullptr));
    }
  }
  LANEWISE_ASSIGN_OR_RETURN(Text text, Join(machine, separator, items));
  return machine.String(std::move(text));
}

Result Sort(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("sort", args, {"reverse", "case_sensitive", "attribute"}, 0));
  const bool case_sensitive = BoolArg(bound[1], false);
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  Values keys;
  if (bound[2] != nullptr && bound[2]->is_string()) {
    // "a,b": by a, then by b.
    std::vector<Values> parts(items.size());
    for (const absl::string_view path :
         absl::StrSplit(bound[2]->bytes(), ',')) {
      LANEWISE_ASSIGN_OR_RETURN(const Value attribute,
                                machine.TemplateString(path));
      LANEWISE_ASSIGN_OR_RETURN(
          const Values column,
          KeysOf(machine, items, &attribute, case_sensitive));
      for (size_t i = 0; i < items.size(); ++i) parts[i].push_back(column[i]);
    }
    for (Values& part : parts) {
      LANEWISE_ASSIGN_OR_RETURN(Value key, machine.List(std::move(part)));
      keys.push_back(std::move(key));
    }
  } else {
    LANEWISE_ASSIGN_OR_RETURN(keys,
                              KeysOf(machine, items, bound[2], case_sensitive));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const auto order, SortedOrder(machine, keys, BoolArg(bound[0], false)));
  return machine.List(Permute(items, order));
}

Result Unique(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("unique", args, {"case_sensitive", "attribute"}, 0));
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  Values seen;
  Values out;
  for (const Value& item : items) {
    LANEWISE_ASSIGN_OR_RETURN(const Value key, KeyOf(machine, item, bound[1],
                                                     BoolArg(bound[0], false)));
    bool known = false;
    for (const Value& other : seen) {
      LANEWISE_ASSIGN_OR_RETURN(known, Equal(machine, other, key));
      if (known) break;
    }
    if (known) continue;
    seen.push_back(key);
    out.push_back(item);
  }
  return machine.List(std::move(out), Kind::kGenerator);
}

template <bool greatest>
Result Extreme(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("min/max", args, {"case_sensitive", "attribute"}, 0));
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  if (items.empty()) {
    return machine.Undefined("No aggregated item, sequence was empty.");
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const Values keys,
      KeysOf(machine, items, bound[1], BoolArg(bound[0], false)));
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(const bool better,
                              greatest ? Less(machine, keys[best], keys[i])
                                       : Less(machine, keys[i], keys[best]));
    if (better) best = i;
  }
  return items[best];
}

Result Sum(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(const auto bound,
                            BindArgs("sum", args, {"attribute", "start"}, 0));
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  Value total = bound[1] == nullptr ? Value::Int(0) : *bound[1];
  if (total.is_string()) return Fail("sum() can't sum strings");
  for (const Value& item : items) {
    LANEWISE_RETURN_IF_ERROR(machine.Step());
    LANEWISE_ASSIGN_OR_RETURN(const Value term,
                              KeyOf(machine, item, bound[0], true));
    LANEWISE_ASSIGN_OR_RETURN(total,
                              Arithmetic(machine, BinaryOp::kAdd, total, term));
  }
  return total;
}

Result Items(Machine& machine, const Value& v, const CallArgs&) {
  if (!v.is_undefined() && !v.is_dict()) {
    return Fail("Can only get item pairs from a mapping.");
  }
  Values pairs;
  if (v.is_dict()) {
    for (const auto& [key, value] : v.dict().items) {
      LANEWISE_ASSIGN_OR_RETURN(Value pair,
                                machine.List({key, value}, Kind::kTuple));
      pairs.push_back(std::move(pair));
    }
  }
  return machine.List(std::move(pairs), Kind::kGenerator);
}

Result DictSort(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("dictsort", args, {"case_sensitive", "by", "reverse"}, 0));
  if (v.is_undefined()) return UndefinedError(v);
  if (!v.is_dict()) return Fail("dictsort: expected a dict");
  int64_t position = 0;
  if (bound[1] != nullptr) {
    LANEWISE_RETURN_IF_ERROR(ExpectString(*bound[1], "dictsort"));
    if (bound[1]->bytes() != "key" && bound[1]->bytes() != "value") {
      return Fail("You can only sort by either \"key\" or \"value\"");
    }
    position = bound[1]->bytes() == "value" ? 1 : 0;
  }
  LANEWISE_ASSIGN_OR_RETURN(const Value generator, Items(machine, v, {}));
  const Values& pairs = generator.list().items;
  const Value attribute = Value::Int(position);
  LANEWISE_ASSIGN_OR_RETURN(
      const Values keys,
      KeysOf(machine, pairs, &attribute, BoolArg(bound[0], false)));
  LANEWISE_ASSIGN_OR_RETURN(
      const auto order, SortedOrder(machine, keys, BoolArg(bound[2], false)));
  return machine.List(Permute(pairs, order));
}

Result Batch(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("batch", args, {"linecount", "fill_with"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t count, IntArg(bound[0], 0));
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  Values batches;
  Values batch;
  const auto flush = [&]() -> absl::Status {
    LANEWISE_ASSIGN_OR_RETURN(Value list, machine.List(std::move(batch)));
    batches.push_back(std::move(list));
    batch.clear();
    return absl::OkStatus();
  };
  for (const Value& item : items) {
    if (static_cast<int64_t>(batch.size()) == count) {
      LANEWISE_RETURN_IF_ERROR(flush());
    }
    batch.push_back(item);
  }
  if (batch.empty()) return machine.List(std::move(batches), Kind::kGenerator);
  const bool fill = bound[1] != nullptr && !bound[1]->is_none();
  if (fill && static_cast<int64_t>(batch.size()) < count) {
    size_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<size_t>(count), sizeof(Value),
                               &bytes)) {
      bytes = SIZE_MAX;
    }
    LANEWISE_RETURN_IF_ERROR(machine.Reserve(bytes));
    batch.resize(static_cast<size_t>(count), *bound[1]);
  }
  LANEWISE_RETURN_IF_ERROR(flush());
  return machine.List(std::move(batches), Kind::kGenerator);
}

Result Slice(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound, BindArgs("slice", args, {"slices", "fill_with"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const int64_t slices, IntArg(bound[0], 0));
  if (slices < 1) return Fail("slice: slices must be positive");
  LANEWISE_RETURN_IF_ERROR(machine.Step(static_cast<size_t>(slices)));
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  const auto n = static_cast<size_t>(slices);
  const size_t each = items.size() / n;
  const size_t extra = items.size() % n;
  Values out;
  auto begin = items.begin();
  for (size_t i = 0; i < n; ++i) {
    const auto end =
        begin + static_cast<std::ptrdiff_t>(each + (i < extra ? 1 : 0));
    Values part(begin, end);
    begin = end;
    const bool fill = bound[1] != nullptr && !bound[1]->is_none();
    if (fill && i >= extra) part.push_back(*bound[1]);
    LANEWISE_ASSIGN_OR_RETURN(Value list, machine.List(std::move(part)));
    out.push_back(std::move(list));
  }
  return machine.List(std::move(out), Kind::kGenerator);
}

Result Group(Machine& machine, Value grouper, Values members) {
  LANEWISE_ASSIGN_OR_RETURN(Value list, machine.List(std::move(members)));
  LANEWISE_ASSIGN_OR_RETURN(
      Value group,
      machine.List({std::move(grouper), std::move(list)}, Kind::kTuple));
  group.list().fields = {"grouper", "list"};
  return group;
}

Result GroupBy(Machine& machine, const Value& v, const CallArgs& args) {
  LANEWISE_ASSIGN_OR_RETURN(
      const auto bound,
      BindArgs("groupby", args, {"attribute", "default", "case_sensitive"}, 1));
  LANEWISE_ASSIGN_OR_RETURN(const Values items, Iterate(machine, v));
  Values keys;
  Values labels;
  for (const Value& item : items) {
    LANEWISE_ASSIGN_OR_RETURN(Value label,
                              GetPath(machine, item, *bound[0], bound[1]));
    labels.push_back(label);
    if (!BoolArg(bound[2], false)) {
      LANEWISE_ASSIGN_OR_RETURN(label, IgnoreCase(machine, label));
    }
    keys.push_back(std::move(label));
  }
  LANEWISE_ASSIGN_OR_RETURN(const auto order,
                            SortedOrder(machine, keys, false));
  Values groups;
  for (size_t i = 0; i < order.size();) {
    Values members;
    size_t j = i;
    for (; j < order.size(); ++j) {
      LANEWISE_ASSIGN_OR_RETURN(const bool same,
                                Equal(machine, keys[order[i]], keys[order[j]]));
      if (!same) break;
      members.push_back(items[order[j]]);
    }
    LANEWISE_ASSIGN_OR_RETURN(
        Value group, Group(machine, labels[order[i]], std::move(members)));
    groups.push_back(std::move(group));
    i = std::max(j, i + 1);
  }
  return machine.List(std::move(groups));
}

constexpr NamedFilter kFilters[] = {
    {"batch", Batch},        {"dictsort", DictSort}, {"first", First},
    {"groupby", GroupBy},    {"items", Items},       {"join", JoinFilter},
    {"last", Last},          {"list", List},         {"max", Extreme<true>},
    {"min", Extreme<false>}, {"reverse", Reverse},   {"slice", Slice},
    {"sort", Sort},          {"sum", Sum},           {"unique", Unique},
};

}  // namespace

FilterFunction FindListFilter(absl::string_view name) {
  for (const NamedFilter& filter : kFilters) {
    if (filter.name == name) return filter.function;
  }
  return nullptr;
}

}  // namespace lanewise::chat
