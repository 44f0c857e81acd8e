#include "runtime/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/sampler_processors.h"
#include "simd/scalar_math.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

struct Beam {
  std::vector<int32_t> ids;  // prompt and new tokens
  double score = 0.0;        // sum of log-probabilities
};

struct Continuation {
  double score;
  size_t beam;  // of the input, by rank
  int32_t id;
};

bool Better(const Continuation& a, const Continuation& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.beam != b.beam ? a.beam < b.beam : a.id < b.id;
}

// The search of one input. Once done() it has no running beams.
class InputSearch {
 public:
  InputSearch(absl::Span<const int32_t> prompt, const BeamOptions& options,
              size_t max_new_tokens)
      : options_(options),
        num_beams_(static_cast<size_t>(options.num_beams)),
        prompt_length_(prompt.size()),
        max_new_tokens_(max_new_tokens),
        running_(1) {
    running_[0].ids.assign(prompt.begin(), prompt.end());
  }

  bool done() const { return running_.empty(); }
  const std::vector<Beam>& running() const { return running_; }
  size_t step() const { return running_[0].ids.size() - prompt_length_; }
  size_t parent(size_t beam) const { return parents_[beam]; }
  TokenHistory History(size_t beam) const {
    return {running_[beam].ids, prompt_length_, step() + 1 == max_new_tokens_};
  }

  // Goes one step on with the best continuations of each running beam, in any
  // order, of which at least num_beams do not end. False when none exists and
  // none has finished.
  bool Advance(std::vector<Continuation>& continuations,
               absl::Span<const int32_t> eos_ids) {
    const size_t kept =
        std::min(continuations.size(), num_beams_ * (1 + eos_ids.size()));
    std::partial_sort(continuations.begin(), continuations.begin() + kept,
                      continuations.end(), Better);
    continuations.resize(kept);
    const size_t length = step() + 1;
    const double divisor = LengthDivisor(length);
    next_.resize(std::min(kept, num_beams_));
    parents_.clear();
    for (size_t rank = 0; rank < kept; ++rank) {
      const Continuation& c = continuations[rank];
      const bool ended =
          std::binary_search(eos_ids.begin(), eos_ids.end(), c.id);
      if (ended || length == max_new_tokens_) {
        if (rank < num_beams_) Finish(c, divisor, ended);
      } else if (parents_.size() < num_beams_) {
        Beam& beam = next_[parents_.size()];
        beam.ids = running_[c.beam].ids;
        beam.ids.push_back(c.id);
        beam.score = c.score;
        parents_.push_back(c.beam);
      }
    }
    next_.resize(parents_.size());
    running_.swap(next_);
    if (!done() && !MayImprove(divisor)) running_.clear();
    return !done() || !finished_.empty();
  }

  std::vector<BeamHypothesis> TakeResults() {
    const size_t wanted = static_cast<size_t>(options_.num_return_sequences);
    if (finished_.size() > wanted) finished_.resize(wanted);
    return std::move(finished_);
  }

 private:
  double LengthDivisor(size_t length) const {
    return Pow(static_cast<double>(length), options_.length_penalty);
  }

  void Finish(const Continuation& c, double divisor, bool ended) {
    const double score = c.score / divisor;
    if (finished_.size() == num_beams_) {
      if (!(score > finished_.back().score)) return;
      finished_.pop_back();
    }
    const auto place = std::upper_bound(
        finished_.begin(), finished_.end(), score,
        [](double s, const BeamHypothesis& h) { return s > h.score; });
    const std::vector<int32_t>& ids = running_[c.beam].ids;
    BeamHypothesis hypothesis{
        {ids.begin() + prompt_length_, ids.end()}, c.score, score, ended};
    hypothesis.ids.push_back(c.id);
    finished_.insert(place, std::move(hypothesis));
  }

  // Whether the running beams may still displace a finished hypothesis;
  // `divisor`: of their present length.
  bool MayImprove(double divisor) const {
    if (finished_.size() < num_beams_) return true;
    // One beam is greedy decoding, which the first end token ends.
    if (num_beams_ == 1 || options_.early_stopping == EarlyStopping::kYes) {
      return false;
    }
    if (options_.early_stopping == EarlyStopping::kNever &&
        options_.length_penalty > 0.0) {
      divisor = LengthDivisor(max_new_tokens_);
    }
    return running_[0].score / divisor > finished_.back().score;
  }

  BeamOptions options_;
  size_t num_beams_;
  size_t prompt_length_;
  size_t max_new_tokens_;
  std::vector<Beam> running_;             // best first
  std::vector<Beam> next_;                // keeps its memory between steps
  std::vector<size_t> parents_ = {0};     // of running_, by former rank
  std::vector<BeamHypothesis> finished_;  // best first
};

class Search {
 public:
  Search(const Context& context, const BeamSearchRequest& request,
         BeamStepper& stepper, LogitsProcessors processors)
      : context_(context),
        stepper_(stepper),
        processors_(std::move(processors)),
        vocab_size_(request.vocab_size) {
    for (const int32_t id : request.eos_ids) {
      if (id >= 0 && static_cast<size_t>(id) < vocab_size_) {
        eos_ids_.push_back(id);
      }
    }
    std::sort(eos_ids_.begin(), eos_ids_.end());
    eos_ids_.erase(std::unique(eos_ids_.begin(), eos_ids_.end()),
                   eos_ids_.end());
    for (const absl::Span<const int32_t> prompt : request.prompts) {
      inputs_.emplace_back(prompt, request.beams, request.max_new_tokens);
    }
    first_rows_.resize(inputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) first_rows_[i] = i;
    // Enough of each beam that those which end leave num_beams others.
    per_row_ =
        std::min(static_cast<size_t>(request.beams.num_beams) + eos_ids_.size(),
                 vocab_size_);
    scratch_.assign(context.threads(), Scratch(vocab_size_));
  }

  absl::StatusOr<std::vector<std::vector<BeamHypothesis>>> Run() {
    while (ListRows()) {
      LANEWISE_ASSIGN_OR_RETURN(const absl::Span<const float> logits,
                                stepper_.Advance(steps_));
      if (logits.size() != rows_.size() * vocab_size_) {
        return absl::InvalidArgumentError(absl::StrCat(
            "logits: expected ", rows_.size(), " rows of ", vocab_size_,
            " values, found ", logits.size(), " values"));
      }
      LANEWISE_RETURN_IF_ERROR(Rank(logits));
      LANEWISE_RETURN_IF_ERROR(AdvanceInputs());
    }
    std::vector<std::vector<BeamHypothesis>> results;
    for (InputSearch& input : inputs_) results.push_back(input.TakeResults());
    return results;
  }

 private:
  struct Scratch {  // of a thread
    explicit Scratch(size_t vocab_size)
        : scores(vocab_size), counts(vocab_size) {}
    std::vector<float> scores;
    IdCounts counts;
  };
  struct Row {
    size_t input;
    size_t beam;
    bool finite = true;
    size_t count = 0;  // of its continuations in best_
  };

  // The rows of the next step; false when all inputs are done.
  bool ListRows() {
    rows_.clear();
    steps_.clear();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const size_t first_row = rows_.size();
      const std::vector<Beam>& beams = inputs_[i].running();
      for (size_t beam = 0; beam < beams.size(); ++beam) {
        rows_.push_back({i, beam});
        steps_.push_back(
            {first_rows_[i] + inputs_[i].parent(beam), beams[beam].ids.back()});
      }
      first_rows_[i] = first_row;
    }
    return !rows_.empty();
  }

  // Fills best_ with the best continuations of each row.
  absl::Status Rank(absl::Span<const float> logits) {
    best_.resize(rows_.size() * per_row_);
    context_.ParallelFor(rows_.size(), [&](size_t row, size_t thread) {
      RankRow(logits.data() + row * vocab_size_, scratch_[thread], row);
    });
    for (const Row& row : rows_) {
      if (row.finite) continue;
      return absl::InternalError(absl::StrCat(
          "beam search: input ", row.input, ", step ",
          inputs_[row.input].step(), ": expected finite logits, found others"));
    }
    return absl::OkStatus();
  }

  void RankRow(const float* logits, Scratch& scratch, size_t index) {
    Row& row = rows_[index];
    row.finite = AllFinite(context_.target(), logits, vocab_size_);
    if (!row.finite) return;
    const double log_sum = LogSumExp(context_.target(), logits, vocab_size_);
    constexpr double kLowest = std::numeric_limits<float>::lowest();
    for (size_t id = 0; id < vocab_size_; ++id) {
      scratch.scores[id] = static_cast<float>(
          std::max(static_cast<double>(logits[id]) - log_sum, kLowest));
    }
    processors_.Apply(inputs_[row.input].History(row.beam),
                      absl::MakeSpan(scratch.scores), scratch.counts);
    row.count = TopK(context_.target(), scratch.scores.data(), vocab_size_,
                     per_row_, best_.data() + index * per_row_);
  }

  absl::Status AdvanceInputs() {
    for (size_t row = 0; row < rows_.size();) {
      const size_t input = rows_[row].input;
      InputSearch& search = inputs_[input];
      const size_t step = search.step();
      continuations_.clear();
      for (; row < rows_.size() && rows_[row].input == input; ++row) {
        const size_t beam = rows_[row].beam;
        const double score = search.running()[beam].score;
        for (size_t i = 0; i < rows_[row].count; ++i) {
          const IndexedValue& best = best_[row * per_row_ + i];
          if (best.value == kForbidden) break;
          continuations_.push_back(
              {score + static_cast<double>(best.value), beam, best.index});
        }
      }
      if (!search.Advance(continuations_, eos_ids_)) {
        return absl::FailedPreconditionError(
            absl::StrCat("beam search: input ", input, ", step ", step,
                         ": expected a token to choose, found all forbidden"));
      }
    }
    return absl::OkStatus();
  }

  const Context& context_;
  BeamStepper& stepper_;
  LogitsProcessors processors_;
  size_t vocab_size_;
  std::vector<int32_t> eos_ids_;  // ascending, of the vocabulary
  std::vector<InputSearch> inputs_;
  std::vector<size_t> first_rows_;  // of each input's beams, in the last step
  size_t per_row_ = 0;
  std::vector<Scratch> scratch_;
  std::vector<Row> rows_;
  std::vector<BeamStep> steps_;
  std::vector<IndexedValue> best_;  // [rows, per_row_], best first
  std::vector<Continuation> continuations_;
};

absl::Status Check(const BeamSearchRequest& request) {
  LANEWISE_RETURN_IF_ERROR(Validate(request.beams));
  if (request.processors.temperature != 0.0) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature: expected 0, for beam search does not "
                     "sample, found ",
                     request.processors.temperature));
  }
  if (request.max_new_tokens == 0) {
    return absl::InvalidArgumentError(
        "max_new_tokens: expected at least 1, found 0");
  }
  for (size_t i = 0; i < request.prompts.size(); ++i) {
    if (!request.prompts[i].empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "prompts[", i, "]: expected at least one token, found none"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::vector<BeamHypothesis>>> BeamSearch(
    const Context& context, const BeamSearchRequest& request,
    BeamStepper& stepper) {
  LANEWISE_RETURN_IF_ERROR(Check(request));
  LANEWISE_ASSIGN_OR_RETURN(
      LogitsProcessors processors,
      LogitsProcessors::Create(request.processors, request.vocab_size,
                               request.eos_ids));
  const ScopedFloatEnvironment environment;
  return Search(context, request, stepper, std::move(processors)).Run();
}

}  // namespace lanewise
