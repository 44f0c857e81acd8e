// json.dumps as the tojson filter of apply_chat_template calls it.
//
//   DumpJson(machine, v, {}) -> {"a": 1, "b": "é"}
#ifndef LANEWISE_MODEL_CHAT_JSON_DUMP_H_
#define LANEWISE_MODEL_CHAT_JSON_DUMP_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "model/chat/machine.h"
#include "model/chat/text.h"
#include "model/chat/value.h"

namespace lanewise::chat {

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; absent: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

// All of it counts as input if any string inside holds input. An error for
// what JSON cannot hold (undefined, generators, functions).
absl::StatusOr<Text> DumpJson(Machine& machine, const Value& v,
                              const JsonStyle& style);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_JSON_DUMP_H_
