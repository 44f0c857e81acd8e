// UTF-8 in text that programs receive: complete characters only, and U+FFFD for
// what is none. Each maximal invalid part gives one U+FFFD (Unicode 15, section
// 3.9, "U+FFFD Substitution of Maximal Subparts"; the WHATWG encoding standard
// does the same, https://encoding.spec.whatwg.org/#utf-8-decoder).
//
//   Utf8Stream stream;
//   stream.Append("caf\xC3");  // "caf"
//   stream.Append("\xA9");     // "é"
//   stream.Append("\xD7");     // ""
//   stream.Finish();           // U+FFFD
#ifndef LANEWISE_RUNTIME_UTF8_H_
#define LANEWISE_RUNTIME_UTF8_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace lanewise {

inline constexpr absl::string_view kReplacementCharacter = "\xEF\xBF\xBD";

bool IsValidUtf8(absl::string_view bytes);

// Bytes in, valid UTF-8 out; the end of a character that has only begun waits
// for the next bytes.
class Utf8Stream {
 public:
  std::string Append(absl::string_view bytes);

  // The end of the text: U+FFFD for a character that is not complete.
  std::string Finish();

  // Whether a character has begun and is not complete.
  bool incomplete() const { return !held_.empty(); }

 private:
  std::string held_;  // of one character, at most 3 bytes
  int missing_ = 0;
  uint8_t low_ = 0x80, high_ = 0xBF;  // range of the next byte
};

// The text as a JSON string with its quotes (RFC 8259): always valid JSON and
// valid UTF-8, whatever the bytes.
std::string JsonString(absl::string_view text);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_UTF8_H_
