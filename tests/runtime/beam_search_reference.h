// A language model by formula, and beam search over it written like the
// reference library's (transformers, GenerationMixin._beam_search): fixed-size
// arrays in which -1e9 marks what must not be chosen.
#ifndef LANEWISE_TESTS_RUNTIME_BEAM_SEARCH_REFERENCE_H_
#define LANEWISE_TESTS_RUNTIME_BEAM_SEARCH_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "runtime/beam_search.h"
#include "runtime/sampler_processors.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {

using Ids = std::vector<int32_t>;

struct ToyModel {
  size_t vocab_size;
  uint64_t seed;
  float spread = 2.0f;  // of the random logits

  // Probabilities where they are given, else logits, else random ones that
  // depend on the whole history.
  std::vector<std::pair<Ids, std::vector<double>>> table = {};
  std::vector<double> otherwise = {};
  std::vector<float> logits = {};
  size_t bad_length = 0;  // the history whose last logit is bad_value
  float bad_value = 0;

  std::vector<float> Logits(const Ids& history) const {
    std::vector<float> out = Base(history);
    if (history.size() == bad_length) out.back() = bad_value;
    return out;
  }

  std::vector<double> LogProbs(const Ids& history) const {
    const std::vector<float> x = Logits(history);
    double sum = 0;
    for (const float v : x) sum += std::exp(double{v});
    std::vector<double> out;
    for (const float v : x) out.push_back(double{v} - std::log(sum));
    return out;
  }

  // Log-probabilities in f32, after the processors.
  std::vector<float> Processed(const Ids& history, size_t prompt_length,
                               bool last, const SamplingOptions& options,
                               const Ids& eos) const {
    const std::vector<double> log_probs = LogProbs(history);
    std::vector<float> scores(log_probs.begin(), log_probs.end());
    IdCounts counts(vocab_size);
    LogitsProcessors::Create(options, vocab_size, eos)
        .value()
        .Apply({history, prompt_length, last}, absl::MakeSpan(scores), counts);
    return scores;
  }

 private:
  std::vector<float> Base(const Ids& history) const {
    for (const auto& [key, probabilities] : table) {
      if (key == history) return Logs(probabilities);
    }
    if (!otherwise.empty()) return Logs(otherwise);
    if (!logits.empty()) return logits;
    uint64_t hash = seed;
    for (const int32_t id : history) {
      hash = (hash ^ static_cast<uint64_t>(id)) * 0x100000001B3u + 0x9E3779B9u;
    }
    return TestRandom(hash).Uniforms(vocab_size, -spread, spread);
  }

  static std::vector<float> Logs(const std::vector<double>& probabilities) {
    std::vector<float> out;
    for (const double p : probabilities) {
      out.push_back(static_cast<float>(std::log(p)));
    }
    return out;
  }
};

// Keeps each row's history by following parents, as a cache would.
class ToyStepper : public BeamStepper {
 public:
  ToyStepper(const ToyModel& model,
             absl::Span<const absl::Span<const int32_t>> prompts)
      : model_(model) {
    for (const auto prompt : prompts) {
      if (prompt.empty()) continue;  // refused before the first step
      histories_.emplace_back(prompt.begin(), prompt.end() - 1);
    }
  }

  absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep> rows) override {
    std::vector<Ids> next;
    logits_.clear();
    for (const BeamStep& row : rows) {
      EXPECT_LT(row.parent, histories_.size());
      next.push_back(histories_[row.parent]);
      next.back().push_back(row.token);
      const std::vector<float> x = model_.Logits(next.back());
      logits_.insert(logits_.end(), x.begin(), x.end());
    }
    histories_ = std::move(next);
    ++calls_;
    return absl::MakeConstSpan(logits_);
  }

  size_t calls() const { return calls_; }

 private:
  const ToyModel& model_;
  std::vector<Ids> histories_;
  std::vector<float> logits_;
  size_t calls_ = 0;
};

// For one prompt. The vocabulary must be large enough that num_beams ·
// (1 + end tokens) real continuations exist at every step.
class ReferenceSearch {
 public:
  ReferenceSearch(const ToyModel& model, const BeamSearchRequest& request)
      : model_(model),
        request_(request),
        n_(static_cast<size_t>(request.beams.num_beams)),
        prompt_(request.prompts[0].size()),
        running_(n_, {Ids(request.prompts[0].begin(), request.prompts[0].end()),
                      kDead}),
        finished_(n_, {{}, kDead}),
        is_finished_(n_, false) {
    running_[0].score = 0;
  }

  std::vector<BeamHypothesis> Run() {
    while (Step()) {
    }
    std::vector<BeamHypothesis> out;
    for (const Sequence& s : finished_) {
      const double divisor = Divisor(s.ids.size() - prompt_);
      out.push_back({{s.ids.begin() + prompt_, s.ids.end()},
                     s.score * divisor,
                     s.score,
                     IsEos(s.ids.back())});
    }
    return out;
  }

 private:
  static constexpr double kDead = -1e9;
  struct Sequence {
    Ids ids;
    double score;
  };

  bool IsEos(int32_t id) const {
    return std::count(request_.eos_ids.begin(), request_.eos_ids.end(), id) > 0;
  }
  double Divisor(size_t length) const {
    return std::pow(static_cast<double>(length), request_.beams.length_penalty);
  }

  // Indices of the k largest, the lower index first on ties.
  static std::vector<size_t> TopIndices(const std::vector<double>& x,
                                        size_t k) {
    std::vector<size_t> order(x.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&x](size_t a, size_t b) { return x[a] > x[b]; });
    order.resize(k);
    return order;
  }

  std::vector<Sequence> TopContinuations() const {
    const size_t vocab = model_.vocab_size;
    const size_t step = running_[0].ids.size() - prompt_;
    std::vector<double> flat;
    for (const Sequence& beam : running_) {
      for (const float score : model_.Processed(
               beam.ids, prompt_, step + 1 == request_.max_new_tokens,
               request_.processors, request_.eos_ids)) {
        flat.push_back(beam.score + double{score});
      }
    }
    const size_t keep = std::max<size_t>(2, 1 + request_.eos_ids.size()) * n_;
    std::vector<Sequence> top;
    for (const size_t index : TopIndices(flat, keep)) {
      top.push_back({running_[index / vocab].ids, flat[index]});
      top.back().ids.push_back(static_cast<int32_t>(index % vocab));
    }
    return top;
  }

  void UpdateFinished(const std::vector<Sequence>& top,
                      const std::vector<bool>& hits) {
    const bool full =
        std::count(is_finished_.begin(), is_finished_.end(), false) == 0 &&
        request_.beams.early_stopping == EarlyStopping::kYes;
    std::vector<Sequence> merged = finished_;
    std::vector<bool> flags = is_finished_;
    for (size_t i = 0; i < top.size(); ++i) {
      const bool just_finished = hits[i] && i < n_;
      double score = top[i].score / Divisor(top[i].ids.size() - prompt_);
      if (full) score += kDead;
      if (!improvable_) score += kDead;
      if (!just_finished) score += kDead;
      merged.push_back({top[i].ids, score});
      flags.push_back(just_finished);
    }
    std::vector<double> scores;
    for (const Sequence& s : merged) scores.push_back(s.score);
    const std::vector<size_t> best = TopIndices(scores, n_);
    for (size_t i = 0; i < n_; ++i) {
      finished_[i] = merged[best[i]];
      is_finished_[i] = flags[best[i]];
    }
  }

  void CheckHeuristic() {
    const BeamOptions& o = request_.beams;
    const bool never =
        o.early_stopping == EarlyStopping::kNever && o.length_penalty > 0;
    const size_t length =
        never ? request_.max_new_tokens : running_[0].ids.size() - prompt_;
    const double best = running_[0].score / Divisor(length);
    double worst = finished_[0].score;
    for (const Sequence& s : finished_) worst = std::min(worst, s.score);
    bool any = false;
    for (const bool finished : is_finished_) {
      any = any || best > (finished ? worst : kDead);
    }
    improvable_ = improvable_ && any;
  }

  bool Step() {
    const std::vector<Sequence> top = TopContinuations();
    const size_t length = top[0].ids.size() - prompt_;
    std::vector<bool> hits;
    std::vector<double> running_scores;
    for (const Sequence& s : top) {
      hits.push_back(IsEos(s.ids.back()) || length == request_.max_new_tokens);
      running_scores.push_back(s.score + (hits.back() ? kDead : 0));
    }
    const std::vector<size_t> best = TopIndices(running_scores, n_);
    for (size_t i = 0; i < n_; ++i) {
      running_[i] = {top[best[i]].ids, running_scores[best[i]]};
    }
    UpdateFinished(top, hits);
    CheckHeuristic();
    const bool all_finished =
        std::count(is_finished_.begin(), is_finished_.end(), false) == 0;
    const bool open =
        !(all_finished && request_.beams.early_stopping == EarlyStopping::kYes);
    const bool valid = std::count(hits.begin(), hits.end(), false) > 0;
    return improvable_ && open && valid;
  }

  const ToyModel& model_;
  const BeamSearchRequest& request_;
  size_t n_;
  size_t prompt_;
  std::vector<Sequence> running_;
  std::vector<Sequence> finished_;
  std::vector<bool> is_finished_;
  bool improvable_ = true;
};

inline std::vector<BeamHypothesis> ReferenceBeamSearch(
    const ToyModel& model, const BeamSearchRequest& request) {
  return ReferenceSearch(model, request).Run();
}

}  // namespace lanewise

#endif  // LANEWISE_TESTS_RUNTIME_BEAM_SEARCH_REFERENCE_H_
