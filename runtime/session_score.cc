#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/score.h"
#include "runtime/session.h"
#include "simd/scalar_math.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

// Of the logits that are held at a time: what a large vocabulary has in common
// with a long chunk.
constexpr size_t kMaxLogitBytes = size_t{64} << 20;

}  // namespace

// The state of one Score call.
class GenerationSession::ScoreRun {
 public:
  ScoreRun(GenerationSession* session, const ScoreCallbacks& callbacks,
           const std::vector<int32_t>& ids)
      : session_(*session),
        callbacks_(callbacks),
        ids_(ids),
        vocab_(session->logits_.size()),
        scored_rows_(std::clamp<size_t>(kMaxLogitBytes / sizeof(float) / vocab_,
                                        1, session->shared_.prefill_chunk)) {}

  // Appends the log-probabilities of the windows' tokens.
  absl::Status Execute(const std::vector<ScoreWindow>& windows,
                       ScoreResult* result) {
    size_t longest = 0;
    for (const ScoreWindow& window : windows) {
      total_ += window.rows();
      longest = std::max(longest, window.rows());
    }
    logits_.resize(std::min(scored_rows_, longest) * vocab_);
    for (const ScoreWindow& window : windows) {
      LANEWISE_RETURN_IF_ERROR(RunWindow(window, result));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunWindow(const ScoreWindow& window, ScoreResult* result) {
    // The row before the first scored token predicts it.
    const size_t predicting = window.first - 1, last = window.end - 1;
    const size_t kept =
        session_.Reuse(absl::MakeConstSpan(ids_).subspan(
                           window.begin, window.end - window.begin),
                       predicting - window.begin);
    LANEWISE_RETURN_IF_ERROR(session_.cache_.Reserve(window.rows()));
    result->cached_tokens += kept;
    done_ += kept;
    for (size_t at = window.begin + kept; at < last;) {
      if (callbacks_.should_cancel && callbacks_.should_cancel()) {
        return absl::CancelledError("cancelled");
      }
      const bool scored = at >= predicting;
      const size_t rows =
          scored ? std::min(scored_rows_, last - at)
                 : std::min(session_.shared_.prefill_chunk, predicting - at);
      LANEWISE_RETURN_IF_ERROR(Forward(at, rows, scored));
      if (scored) {
        LANEWISE_RETURN_IF_ERROR(
            Append(at + 1, rows, &result->log_probabilities));
      }
      at += rows;
      done_ += rows;
      if (callbacks_.on_progress) callbacks_.on_progress(done_, total_);
    }
    return absl::OkStatus();
  }

  // Tokens [at, at + rows) go into the cache.
  absl::Status Forward(size_t at, size_t rows, bool scored) {
    const Executor::Entry entry{
        absl::MakeConstSpan(ids_).subspan(at, rows), &session_.cache_,
        scored ? Executor::Logits::kAll : Executor::Logits::kNone,
        session_.prompt_length_};
    LANEWISE_RETURN_IF_ERROR(
        session_.executor_->Forward({&entry, 1}, logits_.data()));
    session_.cached_ids_.insert(session_.cached_ids_.end(), entry.ids.begin(),
                                entry.ids.end());
    return absl::OkStatus();
  }

  // The log-probabilities of tokens [first, first + rows) by logits_.
  absl::Status Append(size_t first, size_t rows,
                      std::vector<double>* log_probabilities) const {
    const Context& context = *session_.shared_.context;
    const size_t before = log_probabilities->size();
    log_probabilities->resize(before + rows);
    context.ParallelFor(rows, [&](size_t row, size_t) {
      const float* logits = logits_.data() + row * vocab_;
      const size_t id = static_cast<size_t>(ids_[first + row]);
      (*log_probabilities)[before + row] =
          AllFinite(context.target(), logits, vocab_)
              ? logits[id] - LogSumExp(context.target(), logits, vocab_)
              : std::numeric_limits<double>::quiet_NaN();
    });
    for (size_t row = 0; row < rows; ++row) {
      if (!std::isnan((*log_probabilities)[before + row])) continue;
      return absl::InternalError(absl::StrCat(
          "token ", first + row, ": expected finite logits, found others"));
    }
    return absl::OkStatus();
  }

  GenerationSession& session_;
  const ScoreCallbacks& callbacks_;
  const std::vector<int32_t>& ids_;
  const size_t vocab_;
  const size_t scored_rows_;   // at a time
  std::vector<float> logits_;  // [rows at a time, vocab]
  size_t done_ = 0, total_ = 0;
};

absl::StatusOr<ScoreResult> GenerationSession::Score(
    const ScoreRequest& request, const ScoreCallbacks& callbacks) {
  const ScopedFloatEnvironment environment;
  LANEWISE_ASSIGN_OR_RETURN(const ScoreSequence sequence,
                            MakeScoreSequence(shared_, request));
  const auto start = std::chrono::steady_clock::now();
  ScoreResult result;
  LANEWISE_RETURN_IF_ERROR(
      ScoreRun(this, callbacks, sequence.ids)
          .Execute(
              ScoreWindows(sequence, shared_.context_length, request.stride),
              &result));
  result.prompt_tokens = sequence.first;
  result.ids.assign(
      sequence.ids.begin() + static_cast<std::ptrdiff_t>(sequence.first),
      sequence.ids.end());
  double sum = 0;
  for (const double value : result.log_probabilities) sum -= value;
  result.mean_nll = sum / static_cast<double>(result.ids.size());
  result.perplexity = Exp(result.mean_nll);
  result.seconds = SecondsSince(start);
  return result;
}

}  // namespace lanewise
