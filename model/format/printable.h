// How text out of a file appears in a message: escaped and cut, since it may be
// anything of any length.
#ifndef LANEWISE_MODEL_FORMAT_PRINTABLE_H_
#define LANEWISE_MODEL_FORMAT_PRINTABLE_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace lanewise {

// At most `max` bytes of `text`, control and invalid bytes escaped; "..." when
// cut.
inline std::string Printable(absl::string_view text, size_t max = 120) {
  if (text.size() <= max) return absl::Utf8SafeCHexEscape(text);
  return absl::Utf8SafeCHexEscape(text.substr(0, max)) + "...";
}

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_PRINTABLE_H_
