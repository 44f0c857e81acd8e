#include "model/chat/compare.h"

#include <algorithm>
#include <numeric>

#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise::chat {
namespace {

bool NumbersEqual(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.int_value() == b.int_value();
  return a.as_double() == b.as_double();
}

absl::StatusOr<bool> ListsEqual(Machine& machine, const ListObject& a,
                                const ListObject& b) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(const bool same,
                              Equal(machine, a.items[i], b.items[i]));
    if (!same) return false;
  }
  return true;
}

absl::StatusOr<const Value*> Lookup(Machine& machine, const DictObject& dict,
                                    const Value& key) {
  if (key.is_string()) return dict.Find(key.bytes());
  for (const auto& entry : dict.items) {
    if (entry.first.is_string()) continue;
    LANEWISE_ASSIGN_OR_RETURN(const bool same,
                              Equal(machine, entry.first, key));
    if (same) return &entry.second;
  }
  return nullptr;
}

absl::StatusOr<bool> DictsEqual(Machine& machine, const DictObject& a,
                                const DictObject& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    LANEWISE_ASSIGN_OR_RETURN(const Value* other, Lookup(machine, b, key));
    if (other == nullptr) return false;
    LANEWISE_ASSIGN_OR_RETURN(const bool same, Equal(machine, value, *other));
    if (!same) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> Equal(Machine& machine, const Value& a, const Value& b) {
  LANEWISE_RETURN_IF_ERROR(machine.Step());
  if (a.is_numeric() && b.is_numeric()) return NumbersEqual(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
    case Kind::kBigInt:
      LANEWISE_RETURN_IF_ERROR(machine.Work(a.text().size()));
      return a.bytes() == b.bytes();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return ListsEqual(machine, a.list(), b.list());
    case Kind::kDict:
      return DictsEqual(machine, a.dict(), b.dict());
    default:
      return a.object() == b.object();
  }
}

absl::StatusOr<bool> Less(Machine& machine, const Value& a, const Value& b) {
  LANEWISE_RETURN_IF_ERROR(machine.Step());
  if (a.is_undefined()) return UndefinedError(a);
  if (b.is_undefined()) return UndefinedError(b);
  if (a.is_numeric() && b.is_numeric()) {
    if (a.is_integral() && b.is_integral()) {
      return a.int_value() < b.int_value();
    }
    return a.as_double() < b.as_double();
  }
  if (a.is_string() && b.is_string()) {
    LANEWISE_RETURN_IF_ERROR(machine.Work(a.text().size()));
    return a.bytes() < b.bytes();  // UTF-8 keeps the order of code points
  }
  if (a.kind() == b.kind() && (a.is(Kind::kList) || a.is(Kind::kTuple))) {
    const auto& x = a.list().items;
    const auto& y = b.list().items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      LANEWISE_ASSIGN_OR_RETURN(const bool same, Equal(machine, x[i], y[i]));
      if (!same) return Less(machine, x[i], y[i]);
    }
    return x.size() < y.size();
  }
  return Fail("'<' not supported between instances of '", TypeName(a),
              "' and '", TypeName(b), "'");
}

absl::StatusOr<bool> Contains(Machine& machine, const Value& container,
                              const Value& item) {
  if (container.is_string()) {
    if (item.is_undefined()) return UndefinedError(item);
    if (!item.is_string()) {
      return Fail("'in <string>' requires string as left operand, not ",
                  TypeName(item));
    }
    LANEWISE_RETURN_IF_ERROR(machine.Work(container.text().size()));
    return FindLinear(container.bytes(), item.bytes(), 0) != std::string::npos;
  }
  if (container.is_dict()) {
    if (item.is_dict() || item.is(Kind::kList)) {
      return Fail("unhashable type: '", TypeName(item), "'");
    }
    LANEWISE_ASSIGN_OR_RETURN(const Value* found,
                              Lookup(machine, container.dict(), item));
    return found != nullptr;
  }
  if (container.is_undefined()) return false;
  if (!container.is_listlike()) {
    return Fail("argument of type '", TypeName(container), "' is not iterable");
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<Value> items,
                            Iterate(machine, container));
  for (const Value& element : items) {
    LANEWISE_ASSIGN_OR_RETURN(const bool same, Equal(machine, element, item));
    if (same) return true;
  }
  return false;
}

absl::StatusOr<bool> Compare(Machine& machine, CompareOp op, const Value& a,
                             const Value& b) {
  const bool negated = op == CompareOp::kNotEqual || op == CompareOp::kNotIn;
  if (op == CompareOp::kEqual || op == CompareOp::kNotEqual) {
    LANEWISE_ASSIGN_OR_RETURN(const bool same, Equal(machine, a, b));
    return same != negated;
  }
  if (op == CompareOp::kIn || op == CompareOp::kNotIn) {
    LANEWISE_ASSIGN_OR_RETURN(const bool in, Contains(machine, b, a));
    return in != negated;
  }
  const bool swapped =
      op == CompareOp::kGreater || op == CompareOp::kGreaterEqual;
  LANEWISE_ASSIGN_OR_RETURN(
      const bool less, swapped ? Less(machine, b, a) : Less(machine, a, b));
  if (less || op == CompareOp::kLess || op == CompareOp::kGreater) return less;
  return Equal(machine, a, b);
}

absl::StatusOr<Value> IgnoreCase(Machine& machine, const Value& v) {
  if (!v.is_string()) return v;
  LANEWISE_RETURN_IF_ERROR(machine.Work(8 * v.text().size()));
  return machine.String(
      Text::Derived(ToLower(v.bytes()), v.text().has_input()));
}

absl::StatusOr<std::vector<size_t>> SortedOrder(Machine& machine,
                                                const std::vector<Value>& keys,
                                                bool reverse) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  absl::Status status;
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    if (!status.ok()) return false;
    const absl::StatusOr<bool> less = reverse ? Less(machine, keys[j], keys[i])
                                              : Less(machine, keys[i], keys[j]);
    if (!less.ok()) status = less.status();
    return less.ok() && *less;
  });
  LANEWISE_RETURN_IF_ERROR(status);
  return order;
}

}  // namespace lanewise::chat
