// From scores of tokens to spans of text: entities and answers, as the
// reference library's pipelines define them.
#ifndef LANEWISE_RUNTIME_CLASSIFY_SPANS_H_
#define LANEWISE_RUNTIME_CLASSIFY_SPANS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "lanewise/classification.h"

namespace lanewise {

// One token of the text, special ones left out.
struct LabeledToken {
  size_t label = 0;  // the most probable one
  double score = 0;  // its probability
  size_t begin = 0;  // bytes of the text
  size_t end = 0;
  bool continues_word = false;
};

// Entities in the order of the text, those labelled "O" left out. With kFirst a
// token that continues a word takes the label of the word's first.
std::vector<Entity> GroupTokens(absl::Span<const LabeledToken> tokens,
                                absl::Span<const std::string> labels,
                                Aggregation aggregation);

// A span of tokens [first, last], both included.
struct TokenSpan {
  size_t first = 0;
  size_t last = 0;
  double score = 0;
};

struct SpanLogits {
  std::vector<float> start, end;  // [tokens]
  std::vector<bool> in_text;      // [tokens]: may be part of an answer
};

// The top_k best spans of at most max_tokens tokens, best first, of equals the
// first. Probabilities are over the text's tokens and token 0, which stands for
// "no answer" and is never part of one.
std::vector<TokenSpan> BestSpans(const SpanLogits& logits, size_t max_tokens,
                                 size_t top_k);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_CLASSIFY_SPANS_H_
