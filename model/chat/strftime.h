// datetime.strftime of a time in UTC, in the C locale.
//
//   StrfTime("%d %b %Y", 1773500966) -> "14 Mar 2026"
#ifndef LANEWISE_MODEL_CHAT_STRFTIME_H_
#define LANEWISE_MODEL_CHAT_STRFTIME_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise::chat {

// All directives of C99 and glibc's flags `-`, `_`, `0`, `^`. The time has no
// zone: %Z and %z are empty, %f is 000000. UNIMPLEMENTED for an unknown one.
absl::StatusOr<std::string> StrfTime(absl::string_view format,
                                     int64_t unix_seconds);

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_STRFTIME_H_
