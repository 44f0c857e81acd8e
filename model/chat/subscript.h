// obj.name, obj[key] and obj[a:b:c] as the sandboxed environment does them.
#ifndef LANEWISE_MODEL_CHAT_SUBSCRIPT_H_
#define LANEWISE_MODEL_CHAT_SUBSCRIPT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/machine.h"
#include "model/chat/value.h"

namespace lanewise::chat {

// Methods win over keys. Absent: an undefined; of an undefined: an error.
absl::StatusOr<Value> GetAttribute(Machine& machine, const Value& object,
                                   absl::string_view name);
// Keys and elements win over attributes.
absl::StatusOr<Value> GetItem(Machine& machine, const Value& object,
                              const Value& key);
// None for an absent bound.
absl::StatusOr<Value> GetSlice(Machine& machine, const Value& object,
                               const Value& start, const Value& stop,
                               const Value& step);

// The attribute= argument of filters: "a.b.0", or an index. A part that is
// absent gives `fallback` when there is one.
absl::StatusOr<Value> GetPath(Machine& machine, const Value& object,
                              const Value& path, const Value* fallback);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_SUBSCRIPT_H_
