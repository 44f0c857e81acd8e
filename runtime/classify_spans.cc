#include "runtime/classify_spans.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "simd/scalar_math.h"

namespace lanewise {
namespace {

// A label of the scheme "B-PER", "I-PER", "O"; one without a prefix goes on.
struct Tag {
  bool begins = false;
  absl::string_view name;
};

Tag TagOf(absl::string_view label) {
  if (absl::StartsWith(label, "B-")) return {true, label.substr(2)};
  if (absl::StartsWith(label, "I-")) return {false, label.substr(2)};
  return {false, label};
}

// The name of a group: what follows the first dash.
std::string GroupName(absl::string_view label) {
  const size_t dash = label.find('-');
  return std::string(dash == absl::string_view::npos ? label
                                                     : label.substr(dash + 1));
}

// Each word as one token: the first one's label over all of it.
std::vector<LabeledToken> MergeWords(absl::Span<const LabeledToken> tokens) {
  std::vector<LabeledToken> words;
  for (const LabeledToken& token : tokens) {
    if (token.continues_word && !words.empty()) {
      words.back().end = token.end;
    } else {
      words.push_back(token);
    }
  }
  return words;
}

// Probabilities over the tokens that count.
std::vector<double> Probabilities(const std::vector<float>& logits,
                                  const std::vector<bool>& counts) {
  double max = 0, sum = 0;
  bool any = false;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!counts[i]) continue;
    max = any ? std::max(max, double{logits[i]}) : double{logits[i]};
    any = true;
  }
  std::vector<double> values(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!counts[i]) continue;
    values[i] = Exp(double{logits[i]} - max);
    sum += values[i];
  }
  for (double& value : values) value /= sum;
  return values;
}

}  // namespace

std::vector<Entity> GroupTokens(absl::Span<const LabeledToken> tokens,
                                absl::Span<const std::string> labels,
                                Aggregation aggregation) {
  std::vector<LabeledToken> words;
  if (aggregation == Aggregation::kFirst) {
    words = MergeWords(tokens);
    tokens = words;
  }
  std::vector<Entity> entities;
  for (size_t i = 0; i < tokens.size();) {
    const std::string& label = labels[tokens[i].label];
    Entity entity = {label, tokens[i].score, tokens[i].begin, tokens[i].end};
    size_t next = i + 1;
    if (aggregation != Aggregation::kNone) {
      for (; next < tokens.size(); ++next) {
        const Tag tag = TagOf(labels[tokens[next].label]);
        if (tag.begins ||
            tag.name != TagOf(labels[tokens[next - 1].label]).name) {
          break;
        }
        entity.score += tokens[next].score;
        entity.end = tokens[next].end;
      }
      entity.score /= static_cast<double>(next - i);
      entity.label = GroupName(label);
    }
    if (entity.label != "O") entities.push_back(std::move(entity));
    i = next;
  }
  return entities;
}

std::vector<TokenSpan> BestSpans(const SpanLogits& logits, size_t max_tokens,
                                 size_t top_k) {
  const size_t count = logits.in_text.size();
  std::vector<bool> counts = logits.in_text;
  if (count > 0) counts[0] = true;
  const std::vector<double> start = Probabilities(logits.start, counts);
  const std::vector<double> end = Probabilities(logits.end, counts);
  std::vector<TokenSpan> best;
  const auto better = [](const TokenSpan& a, const TokenSpan& b) {
    return a.score > b.score;
  };
  for (size_t first = 1; first < count; ++first) {
    if (!logits.in_text[first]) continue;
    for (size_t last = first; last < count && last - first < max_tokens;
         ++last) {
      if (!logits.in_text[last]) continue;
      const TokenSpan span = {first, last, start[first] * end[last]};
      if (best.size() == top_k && !better(span, best.back())) continue;
      best.insert(std::upper_bound(best.begin(), best.end(), span, better),
                  span);
      if (best.size() > top_k) best.pop_back();
    }
  }
  return best;
}

}  // namespace lanewise
