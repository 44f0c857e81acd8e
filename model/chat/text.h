// A string that remembers which of its bytes came from the input.
//
//   Text t = Text::Template("<|user|>");
//   t.Append(Text::Input("hi"));      // input() = {{8, 10}}
//   t.Substr(6, 3).input();           // {{2, 3}}
#ifndef LANEWISE_MODEL_CHAT_TEXT_H_
#define LANEWISE_MODEL_CHAT_TEXT_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace lanewise::chat {

class Text {
 public:
  using Range = std::pair<size_t, size_t>;  // bytes [first, second)

  Text() = default;
  static Text Template(std::string bytes);
  static Text Input(std::string bytes);
  // Made anew from something: all input or all template.
  static Text Derived(std::string bytes, bool from_input) {
    return from_input ? Input(std::move(bytes)) : Template(std::move(bytes));
  }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // Ascending, disjoint, not adjacent, none empty.
  const std::vector<Range>& input() const { return input_; }
  bool has_input() const { return !input_.empty(); }
  // Bytes of memory held.
  size_t footprint() const {
    return bytes_.size() + input_.size() * sizeof(Range);
  }

  void Append(const Text& other);
  void AppendTemplate(absl::string_view s) { bytes_.append(s); }
  // Appends other.bytes()[pos, pos + n) with its origins.
  void AppendSlice(const Text& other, size_t pos, size_t n);
  // Clipped to the text.
  Text Substr(size_t pos, size_t n = std::string::npos) const;

 private:
  void AddRange(size_t begin, size_t end);

  std::string bytes_;
  std::vector<Range> input_;
};

}  // namespace lanewise::chat

#endif  // LANEWISE_MODEL_CHAT_TEXT_H_
