// Arithmetic with Python's semantics.
#ifndef LANEWISE_MODEL_CHAT_OPERATORS_H_
#define LANEWISE_MODEL_CHAT_OPERATORS_H_

#include "absl/status/statusor.h"
#include "model/chat/ast.h"
#include "model/chat/machine.h"
#include "model/chat/value.h"

namespace lanewise::chat {

// a op b: numbers, concatenation and repetition of strings, lists and tuples,
// `%` formatting. Integers beyond 64 bits are an error.
absl::StatusOr<Value> Arithmetic(Machine& machine, BinaryOp op, const Value& a,
                                 const Value& b);
absl::StatusOr<Value> Negate(const Value& v);
absl::StatusOr<Value> Plus(const Value& v);
// &, <, >, ' and " as HTML entities, origins kept.
Text EscapeHtml(const Text& text);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_OPERATORS_H_
