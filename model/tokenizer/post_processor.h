// What comes after the model: truncation, the tokens around one text or two,
// padding.
#ifndef LANEWISE_MODEL_TOKENIZER_POST_PROCESSOR_H_
#define LANEWISE_MODEL_TOKENIZER_POST_PROCESSOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

namespace lanewise {

// Ids, token type ids, and which text an id is of (0, 1; -1: of none), of one
// length.
struct Encoded {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  std::vector<int8_t> texts = {};
};

struct TemplatePart {
  enum class Kind : uint8_t { kFirst, kSecond, kTokens };
  Kind kind;
  int32_t type_id = 0;
  std::vector<int32_t> ids = {};  // of kTokens
};

using Template = std::vector<TemplatePart>;

// The default puts two texts one after the other, types 0 and 1.
struct PostProcessor {
  Template single = {{TemplatePart::Kind::kFirst, 0}};
  Template pair = {{TemplatePart::Kind::kFirst, 0},
                   {TemplatePart::Kind::kSecond, 1}};
};

// [CLS] A [SEP] B [SEP], types 0 and 1 (BERT).
PostProcessor BertPostProcessor(int32_t cls, int32_t sep);
// <s> A </s> </s> B </s>, all of type 0 (RoBERTa).
PostProcessor RobertaPostProcessor(int32_t cls, int32_t sep);

struct Truncation {
  enum class Strategy : uint8_t { kLongestFirst, kOnlyFirst, kOnlySecond };
  size_t max_length = 0;  // with the template's tokens
  Strategy strategy = Strategy::kLongestFirst;
  bool left = false;  // drops from the left
};

struct Padding {
  std::optional<size_t> length;  // unset: the longest of a batch
  size_t multiple = 1;
  bool left = false;  // pads on the left
  int32_t id = 0;
  int32_t type_id = 0;
};

// Cuts the ids so that they and (with `add_special`) the template's tokens
// keep the limit. FAILED_PRECONDITION where the strategy cannot.
absl::Status Truncate(const Truncation& truncation, size_t template_tokens,
                      std::vector<int32_t>* first,
                      std::vector<int32_t>* second);  // null: one text

// Number of tokens that a template adds.
size_t CountTokens(const Template& parts);

Encoded ApplyTemplate(const Template& parts, bool add_special,
                      const std::vector<int32_t>& first,
                      const std::vector<int32_t>& second);

void Pad(const Padding& padding, Encoded* encoded);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_POST_PROCESSOR_H_
