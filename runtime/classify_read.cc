// From logits to results.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "runtime/classify.h"
#include "runtime/classify_job.h"
#include "runtime/classify_spans.h"
#include "simd/scalar_math.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

std::vector<double> ScoresOf(const Target& target, LabelScores scores,
                             absl::Span<const float> logits) {
  const double all = LogSumExp(target, logits.data(), logits.size());
  std::vector<double> out;
  for (const float logit : logits) {
    switch (scores) {
      case LabelScores::kLogits:
        out.push_back(double{logit});
        break;
      case LabelScores::kSigmoid:
        out.push_back(1.0 / (1.0 + Exp(-double{logit})));
        break;
      case LabelScores::kModel:
      case LabelScores::kSoftmax:
        out.push_back(Exp(double{logit} - all));
        break;
    }
  }
  return out;
}

// Without spaces at either end.
std::pair<size_t, size_t> Trimmed(const std::string& text,
                                  std::pair<size_t, size_t> range) {
  while (range.first < range.second && absl::ascii_isspace(text[range.first])) {
    ++range.first;
  }
  while (range.first < range.second &&
         absl::ascii_isspace(text[range.second - 1])) {
    --range.second;
  }
  return range;
}

}  // namespace

void Classifier::ReadLabels(Job* job, const Item& item,
                            absl::Span<const float> logits) const {
  const ClassifyRequest& request = job->request;
  const std::vector<double> scores = ScoresOf(
      shared_.context->target(),
      request.scores == LabelScores::kModel ? scores_ : request.scores, logits);
  std::vector<LabelScore>& labels = job->result.outputs[item.input].labels;
  for (size_t i = 0; i < scores.size(); ++i) {
    labels.push_back({labels_[i], i, scores[i]});
  }
  std::stable_sort(labels.begin(), labels.end(),
                   [](const LabelScore& a, const LabelScore& b) {
                     return a.score > b.score;
                   });
  if (request.top_k > 0 && labels.size() > request.top_k) {
    labels.resize(request.top_k);
  }
}

void Classifier::ReadEntities(Job* job, const Item& item,
                              absl::Span<const float> rows) const {
  const Target& target = shared_.context->target();
  const std::string& text = job->request.inputs[item.input].text;
  const size_t width = labels_.size();
  std::vector<LabeledToken> tokens;
  for (size_t i = 0; i < item.encoding.ids.size(); ++i) {
    if (item.encoding.texts[i] != 0) continue;
    const auto [begin, end] = Trimmed(text, item.ranges[i]);
    if (begin == end) continue;
    const float* row = rows.data() + i * width;
    LabeledToken token;
    token.label = ArgMax(target, row, width);
    token.score = Exp(double{row[token.label]} - LogSumExp(target, row, width));
    token.begin = begin;
    token.end = end;
    // Without marks a word goes on where no space is before the token.
    token.continues_word =
        marks_inner_tokens_
            ? absl::StartsWith(tokenizer().TokenText(item.encoding.ids[i]),
                               "##") &&
                  !tokens.empty()
            : begin > 0 && !absl::ascii_isspace(text[begin - 1]);
    tokens.push_back(token);
  }
  job->result.outputs[item.input].entities =
      GroupTokens(tokens, labels_, job->request.aggregation);
}

void Classifier::ReadMasks(Job* job, const Item& item,
                           absl::Span<const float> rows) const {
  const Target& target = shared_.context->target();
  const size_t width = spec().head_width();
  for (size_t i = 0; i < item.ranges.size(); ++i) {
    const auto [begin, end] = item.ranges[i];
    if (begin == end) continue;
    const float* row = rows.data() + i * width;
    const double all = LogSumExp(target, row, width);
    std::vector<IndexedValue> best(std::min(job->request.top_k, width));
    TopK(target, row, width, best.size(), best.data());
    MaskChoices mask = {begin, end, {}};
    for (const IndexedValue& choice : best) {
      mask.choices.push_back({choice.index,
                              tokenizer().Decode({choice.index}, {}),
                              Exp(double{choice.value} - all)});
    }
    job->result.outputs[item.input].masks.push_back(std::move(mask));
  }
}

void Classifier::ReadAnswers(Job* job, const Item& item,
                             absl::Span<const float> rows) const {
  SpanLogits logits;
  for (size_t i = 0; i < item.encoding.ids.size(); ++i) {
    logits.start.push_back(rows[2 * i]);
    logits.end.push_back(rows[2 * i + 1]);
    logits.in_text.push_back(item.encoding.texts[i] == 1);
  }
  const std::string& text = *job->request.inputs[item.input].pair;
  std::vector<AnswerSpan>& answers = job->result.outputs[item.input].answers;
  for (const TokenSpan& span :
       BestSpans(logits, job->request.max_answer_tokens, job->request.top_k)) {
    const auto [begin, end] = Trimmed(
        text, {item.ranges[span.first].first, item.ranges[span.last].second});
    // Windows overlap: the better score of a span counts.
    const auto same =
        std::find_if(answers.begin(), answers.end(),
                     [begin = begin, end = end](const AnswerSpan& a) {
                       return a.begin == begin && a.end == end;
                     });
    if (same == answers.end()) {
      answers.push_back({span.score, begin, end});
    } else {
      same->score = std::max(same->score, span.score);
    }
  }
  // Batches come in any order: equal scores by place.
  std::sort(answers.begin(), answers.end(),
            [](const AnswerSpan& a, const AnswerSpan& b) {
              if (a.score != b.score) return a.score > b.score;
              return std::make_pair(a.begin, a.end) <
                     std::make_pair(b.begin, b.end);
            });
  if (answers.size() > job->request.top_k) {
    answers.resize(job->request.top_k);
  }
}

}  // namespace lanewise
