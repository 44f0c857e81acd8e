// Cuts pieces where a pattern matches, with the five behaviours that
// tokenizer.json knows.
#ifndef LANEWISE_MODEL_TOKENIZER_SPLITTER_H_
#define LANEWISE_MODEL_TOKENIZER_SPLITTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/pieces.h"
#include "model/tokenizer/regex.h"

namespace lanewise {

// What becomes of a match ("the-final--countdown" cut at "-"):
enum class SplitBehavior : uint8_t {
  kRemoved,             // the, final, countdown
  kIsolated,            // the, -, final, -, -, countdown
  kMergedWithPrevious,  // the-, final-, -, countdown
  kMergedWithNext,      // the, -final, -, -countdown
  kContiguous,          // the, -, final, --, countdown
};

// A run of the text, matched or not. Runs ascend and cover the text.
struct Run {
  size_t begin;
  size_t end;
  bool match;
};

// A literal string or a regular expression.
using Pattern = std::variant<std::string, Regex>;

// The pieces of text of length `size` cut into `runs`, offset by `base`.
// Empty ones are left out; `runs` is used up.
void AppendSplit(SplitBehavior behavior, size_t base, bool first,
                 std::vector<Run>* runs, std::vector<Piece>* out);

// Cuts every piece at the matches of `pattern`; `invert` swaps matches and
// the rest. Each piece is a text of its own for anchors and look-around.
absl::Status SplitByPattern(const Pattern& pattern, SplitBehavior behavior,
                            bool invert, Pieces* pieces);

// The same at each character that `matches`.
void SplitByCharacter(absl::FunctionRef<bool(char32_t)> matches,
                      SplitBehavior behavior, Pieces* pieces);

// Calls `found` with the matches of `pattern` in `text`, ascending.
absl::Status ForEachMatch(const Pattern& pattern, absl::string_view text,
                          absl::FunctionRef<void(size_t, size_t)> found);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_SPLITTER_H_
