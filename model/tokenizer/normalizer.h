// The first stage: rewrites text between added tokens before it is cut into
// words.
#ifndef LANEWISE_MODEL_TOKENIZER_NORMALIZER_H_
#define LANEWISE_MODEL_TOKENIZER_NORMALIZER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/aligned_text.h"
#include "model/tokenizer/splitter.h"
#include "model/tokenizer/unicode.h"

namespace lanewise {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Thread-safe.
  virtual absl::Status Apply(AlignedText* text) const = 0;
};

using NormalizerPtr = std::unique_ptr<const Normalizer>;

struct BertNormalizerOptions {
  bool clean_text = true;             // drops controls, all spaces become ' '
  bool handle_chinese_chars = true;   // spaces around CJK ideographs
  std::optional<bool> strip_accents;  // unset: as lowercase
  bool lowercase = true;
};

NormalizerPtr MakeBertNormalizer(const BertNormalizerOptions& options);
NormalizerPtr MakeUnicodeNormalizer(NormalForm form);
NormalizerPtr MakeLowercaseNormalizer();
NormalizerPtr MakeStripNormalizer(bool left, bool right);  // white space
NormalizerPtr MakeStripAccentsNormalizer();                // all marks
NormalizerPtr MakeReplaceNormalizer(Pattern pattern, std::string content);
NormalizerPtr MakePrependNormalizer(std::string prefix);  // unless empty
NormalizerPtr MakeNmtNormalizer();        // SentencePiece's nmt rules
NormalizerPtr MakeByteLevelNormalizer();  // bytes spelled as characters
NormalizerPtr MakeNormalizerSequence(std::vector<NormalizerPtr> stages);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_NORMALIZER_H_
