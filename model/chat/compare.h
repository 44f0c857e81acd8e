// Equality, order and membership with Python's rules.
#ifndef LANEWISE_MODEL_CHAT_COMPARE_H_
#define LANEWISE_MODEL_CHAT_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "model/chat/machine.h"
#include "model/chat/value.h"

namespace lanewise::chat {

enum class CompareOp : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

// a == b: 1 == 1.0 == True, lists by element, dicts whatever the order;
// undefined equals only undefined.
absl::StatusOr<bool> Equal(Machine& machine, const Value& a, const Value& b);
// a < b. An error for types that have no order.
absl::StatusOr<bool> Less(Machine& machine, const Value& a, const Value& b);
// `item in container`: substrings, elements, keys.
absl::StatusOr<bool> Contains(Machine& machine, const Value& container,
                              const Value& item);
// a op b.
absl::StatusOr<bool> Compare(Machine& machine, CompareOp op, const Value& a,
                             const Value& b);
// str.lower where v is a string, else v: how sort, unique, … ignore case.
absl::StatusOr<Value> IgnoreCase(Machine& machine, const Value& v);
// Sorts `order`, indices into `keys`, stably.
absl::StatusOr<std::vector<size_t>> SortedOrder(Machine& machine,
                                                const std::vector<Value>& keys,
                                                bool reverse);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_COMPARE_H_
