// Python's three ways of formatting: `%`, str.format and format specs.
#ifndef LANEWISE_MODEL_CHAT_FORMAT_H_
#define LANEWISE_MODEL_CHAT_FORMAT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/machine.h"
#include "model/chat/text.h"
#include "model/chat/value.h"

namespace lanewise::chat {

// format % args, args being one value, a tuple or a dict.
absl::StatusOr<Value> PercentFormat(Machine& machine, const Value& format,
                                    const Value& args);
// format.format(*positional, **keywords).
absl::StatusOr<Value> BraceFormat(Machine& machine, const Value& format,
                                  const CallArgs& args);
// format(v, spec): [[fill]align][sign][#][0][width][,_][.precision][type].
absl::StatusOr<Text> FormatValue(Machine& machine, const Value& v,
                                 absl::string_view spec);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_FORMAT_H_
