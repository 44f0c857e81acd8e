// The stage between normalizer and model: cuts text into the words that the
// model sees one by one, and may rewrite it (ByteLevel, Metaspace).
#ifndef LANEWISE_MODEL_TOKENIZER_PRE_TOKENIZER_H_
#define LANEWISE_MODEL_TOKENIZER_PRE_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/pieces.h"
#include "model/tokenizer/splitter.h"

namespace lanewise {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts each piece further. Thread-safe.
  virtual absl::Status Apply(Pieces* pieces) const = 0;
};

using PreTokenizerPtr = std::unique_ptr<const PreTokenizer>;

// GPT-2's pattern.
extern const absl::string_view kByteLevelPattern;

// Cuts by kByteLevelPattern (with `use_regex`), then spells the bytes as
// characters (byte_level.h). `add_prefix_space` puts a space before a piece
// that has none.
absl::StatusOr<PreTokenizerPtr> MakeByteLevelPreTokenizer(bool add_prefix_space,
                                                          bool use_regex);

enum class PrependScheme : uint8_t { kAlways, kFirst, kNever };

// Spaces become `replacement` ("▁"); it is prepended where missing, to every
// piece or only to the first of the text; `split` cuts before each of them.
PreTokenizerPtr MakeMetaspacePreTokenizer(std::string replacement,
                                          PrependScheme scheme, bool split);

PreTokenizerPtr MakeSplitPreTokenizer(Pattern pattern, SplitBehavior behavior,
                                      bool invert);
PreTokenizerPtr MakeBertPreTokenizer();        // at spaces and punctuation
PreTokenizerPtr MakeWhitespacePreTokenizer();  // \w+|[^\w\s]+
PreTokenizerPtr MakeWhitespaceSplitPreTokenizer();
PreTokenizerPtr MakePunctuationPreTokenizer(SplitBehavior behavior);
PreTokenizerPtr MakeDigitsPreTokenizer(bool individual);
PreTokenizerPtr MakeDelimiterPreTokenizer(char32_t delimiter);
PreTokenizerPtr MakeFixedLengthPreTokenizer(size_t characters);
PreTokenizerPtr MakePreTokenizerSequence(std::vector<PreTokenizerPtr> stages);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_PRE_TOKENIZER_H_
