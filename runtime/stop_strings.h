// Stop strings in streamed text: the text ends before the first stop string
// that completes, wherever the edges of tokens and pieces fall.
//
//   LANEWISE_ASSIGN_OR_RETURN(StopStrings stops,
//                             StopStrings::Create({"\nUser:", "###"}));
//   StopFilter filter(&stops);
//   std::string shown = filter.Append("Hello\nUs");  // "Hello"
//   shown += filter.Append("ual");                   // "\nUsual"
//   shown += filter.Append("##");                    // ""
//   shown += filter.Finish();                        // "##": no stop string
//
// All stop strings are searched at once by the automaton of Aho and Corasick
// 1975 (https://doi.org/10.1145/360825.360855): time is linear in the text and
// does not depend on how many there are.
#ifndef LANEWISE_RUNTIME_STOP_STRINGS_H_
#define LANEWISE_RUNTIME_STOP_STRINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise {

// A set of stop strings, compiled. Immutable; filters of any number of
// sequences share one.
class StopStrings {
 public:
  // Of all strings together; more is an error.
  static constexpr size_t kMaxTotalBytes = size_t{1} << 20;

  StopStrings() = default;  // none

  // INVALID_ARGUMENT for an empty string and for one that is not UTF-8 (it
  // would cut characters). Repeated strings count as one. None is allowed.
  static absl::StatusOr<StopStrings> Create(std::vector<std::string> strings);

  bool empty() const { return strings_.empty(); }
  const std::vector<std::string>& strings() const { return strings_; }

 private:
  friend class StopFilter;

  struct Node {
    std::vector<std::pair<uint8_t, int32_t>> next;  // sorted once built
    int32_t fail = 0;    // node of the longest proper suffix
    int32_t depth = 0;   // bytes from the root
    int32_t word = 0;    // a stop string that begins with the path to here
    int32_t match = -1;  // longest stop string that ends here, or -1
  };

  void Insert(int32_t index);
  void LinkFailures();
  int32_t Child(int32_t node, uint8_t byte) const;  // -1: none
  int32_t Advance(int32_t node, uint8_t byte) const;

  std::vector<std::string> strings_;
  std::vector<Node> nodes_;
};

// One text that passes through. Of stop strings that complete at the same byte
// the longest counts, so what remains does not depend on the pieces in which
// the text came.
class StopFilter {
 public:
  // `stops` outlives the filter; null: none.
  explicit StopFilter(const StopStrings* stops) : stops_(stops) {}

  // The next text that is certain to stay: what may be the beginning of a stop
  // string is held back. After a stop string, nothing. Pieces are whole UTF-8
  // characters, and so are the results.
  std::string Append(absl::string_view piece);

  // The end of the text: what is still held back.
  std::string Finish();

  // Index into strings() of the stop string that ended the text, or -1.
  int stop_index() const { return stop_index_; }
  bool stopped() const { return stop_index_ >= 0; }

 private:
  absl::string_view Held() const;

  const StopStrings* stops_;
  int32_t node_ = 0;
  int stop_index_ = -1;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_STOP_STRINGS_H_
