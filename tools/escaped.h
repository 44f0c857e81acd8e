// Text of unknown origin made fit for a terminal and for one line.
#ifndef LANEWISE_TOOLS_ESCAPED_H_
#define LANEWISE_TOOLS_ESCAPED_H_

#include <cstddef>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace lanewise {

// Valid UTF-8 without control characters: \n, \t, \r, \\, \xNN for bytes that
// are no UTF-8, \u{N} for C0, DEL, C1, line separators and the characters that
// change the direction of writing. At most `max` bytes of `text` are shown;
// "..." when cut.
std::string Escaped(absl::string_view text,
                    size_t max = std::numeric_limits<size_t>::max());

// For messages: one line, without controls; backslashes stay as they are.
// `max` as above.
std::string OneLine(absl::string_view text,
                    size_t max = std::numeric_limits<size_t>::max());

// For results on a terminal: escapes controls, keeps newlines, tabs,
// backslashes and directions as they are.
std::string ForTerminal(absl::string_view text);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_ESCAPED_H_
