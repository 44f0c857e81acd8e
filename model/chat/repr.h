// Python's str() and repr() of values.
//
//   Str(m, Value::Float(1)) -> "1.0";  Repr(m, "it's") -> "\"it's\""
#ifndef LANEWISE_MODEL_CHAT_REPR_H_
#define LANEWISE_MODEL_CHAT_REPR_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/machine.h"
#include "model/chat/text.h"
#include "model/chat/value.h"

namespace lanewise::chat {

// What printing the value gives: strings as they are, nothing for undefined.
absl::StatusOr<Text> Str(Machine& machine, const Value& v);
// As a value; a string is returned as it is.
absl::StatusOr<Value> StrValue(Machine& machine, const Value& v);
// All of it counts as input if any string inside holds input.
absl::StatusOr<Text> Repr(Machine& machine, const Value& v);
// The shortest decimal form that reads back as `d`, laid out as Python does.
std::string FloatRepr(double d);
// A string with quotes and escapes.
std::string StringRepr(absl::string_view s);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_REPR_H_
