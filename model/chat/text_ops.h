// Operations on Text that filters and methods share. Results keep the origin
// of every character they take over.
#ifndef LANEWISE_MODEL_CHAT_TEXT_OPS_H_
#define LANEWISE_MODEL_CHAT_TEXT_OPS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/machine.h"
#include "model/chat/text.h"

namespace lanewise::chat {

enum class Side { kLeft, kRight, kBoth };

// str.strip and its kin; `chars` empty: white space.
Text Strip(const Text& text, Side side, absl::string_view chars);
// str.replace; count < 0: all.
absl::StatusOr<Text> Replace(Machine& machine, const Text& text,
                             const Text& from, const Text& to, int64_t count);
// str.splitlines.
std::vector<Text> SplitLines(const Text& text, bool keep_ends);
// separator.join(parts).
absl::StatusOr<Text> Join(Machine& machine, const Text& separator,
                          const std::vector<Value>& parts);
// Centred, or moved to one side, in `width` characters of `fill`.
absl::StatusOr<Text> Justify(Machine& machine, const Text& text, int64_t width,
                             const Text& fill, Side text_side);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_TEXT_OPS_H_
