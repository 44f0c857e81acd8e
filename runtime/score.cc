#include "runtime/score.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/executor.h"
#include "model/kv_cache.h"
#include "simd/scalar_math.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

// Of the logits that are held at a time: what a large vocabulary has in common
// with a long chunk.
constexpr size_t kMaxLogitBytes = size_t{64} << 20;

// Tokens, of which those from `first` on are scored.
struct Sequence {
  std::vector<int32_t> ids;
  size_t first = 1;
};

// Whether it predicts each token from those before it and nothing else.
absl::Status CheckModel(const ModelSpec& spec) {
  if (spec.head.task == HeadTask::kNextToken && spec.encoder.empty() &&
      !spec.bidirectional()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "score: expected a decoder-only language model, found another kind");
}

absl::StatusOr<Sequence> Tokenize(const SessionShared& shared,
                                  const ScoreRequest& request) {
  EncodeOptions options;
  options.parse_special_tokens = request.parse_special;
  options.truncate = false;
  options.pad = false;
  const Tokenizer& tokenizer = shared.prompts->tokenizer();
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt,
                            tokenizer.Encode(request.prompt, options));
  Sequence sequence;
  LANEWISE_ASSIGN_OR_RETURN(
      sequence.ids,
      tokenizer.Encode(absl::StrCat(request.prompt, request.text), options));
  const size_t most = std::min(prompt.size(), sequence.ids.size());
  size_t common = 0;
  while (common < most && prompt[common] == sequence.ids[common]) ++common;
  sequence.first = std::max<size_t>(common, 1);
  return sequence;
}

absl::StatusOr<Sequence> MakeSequence(const SessionShared& shared,
                                      const ScoreRequest& request) {
  if (request.text.empty() == request.ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: expected one of text and ids, found ",
                     request.text.empty() ? "neither" : "both"));
  }
  if (request.text.empty() ? !request.prompt.empty()
                           : !request.prompt_ids.empty()) {
    return absl::InvalidArgumentError(
        "request: expected prompt with text and prompt_ids with ids, found one "
        "with the other");
  }
  if (!request.text.empty()) return Tokenize(shared, request);
  Sequence sequence;
  sequence.ids = request.prompt_ids;
  sequence.ids.insert(sequence.ids.end(), request.ids.begin(),
                      request.ids.end());
  sequence.first = std::max<size_t>(request.prompt_ids.size(), 1);
  return sequence;
}

absl::Status Check(const SessionShared& shared, const ScoreRequest& request,
                   const Sequence& sequence) {
  const size_t context = shared.context_length;
  if (request.stride >= context) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stride: expected less than the context of ", context,
        " tokens, so that windows overlap, found ", request.stride));
  }
  const size_t vocab = shared.model->spec().vocab_size;
  for (size_t i = 0; i < sequence.ids.size(); ++i) {
    const int32_t id = sequence.ids[i];
    if (id >= 0 && static_cast<size_t>(id) < vocab) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "token ", i, ": expected 0 to ", vocab - 1, ", found ", id));
  }
  if (sequence.first >= sequence.ids.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("text: expected a token that follows another one, found ",
                     sequence.ids.size(), " tokens with the prompt's"));
  }
  if (sequence.ids.size() > context && request.stride == 0) {
    return absl::OutOfRangeError(
        absl::StrCat("text: ", sequence.ids.size(),
                     " tokens do not fit into the context of ", context,
                     "; set a stride to score it in windows"));
  }
  return absl::OkStatus();
}

// Tokens [begin, end), of which those from `first` on are scored.
struct Window {
  size_t begin, end, first;

  // Without the last token, after which nothing is asked.
  size_t rows() const { return end - 1 - begin; }
};

std::vector<Window> Windows(const Sequence& sequence, size_t context,
                            size_t stride) {
  const size_t size = sequence.ids.size();
  std::vector<Window> windows;
  for (size_t begin = 0, first = sequence.first; first < size;
       begin += stride) {
    const size_t end = std::min(begin + context, size);
    if (end <= first) continue;  // nothing but the prompt
    windows.push_back({begin, end, first});
    first = end;
  }
  return windows;
}

class Scorer {
 public:
  Scorer(const SessionShared& shared, const ScoreCallbacks& callbacks,
         const std::vector<int32_t>& ids)
      : shared_(shared),
        callbacks_(callbacks),
        ids_(ids),
        vocab_(shared.model->spec().vocab_size),
        scored_rows_(std::clamp<size_t>(kMaxLogitBytes / sizeof(float) / vocab_,
                                        1, shared.prefill_chunk)),
        cache_(shared.pool) {}

  // Appends the log-probabilities of the windows' tokens.
  absl::Status Run(const std::vector<Window>& windows,
                   std::vector<double>* log_probabilities) {
    size_t longest = 0;
    for (const Window& window : windows) {
      total_ += window.rows();
      longest = std::max(longest, window.rows());
    }
    Executor::Options options;
    options.activations = shared_.activations;
    options.max_rows = std::min(shared_.prefill_chunk, longest);
    LANEWISE_ASSIGN_OR_RETURN(
        executor_,
        Executor::Create(*shared_.model, *shared_.context, std::move(options)));
    logits_.resize(std::min(scored_rows_, longest) * vocab_);
    for (const Window& window : windows) {
      LANEWISE_RETURN_IF_ERROR(RunWindow(window, log_probabilities));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunWindow(const Window& window,
                         std::vector<double>* log_probabilities) {
    cache_.Truncate(0);
    LANEWISE_RETURN_IF_ERROR(cache_.Reserve(window.rows()));
    const size_t last = window.end - 1;
    // The row before the first scored token predicts it.
    const size_t predicting = window.first - 1;
    for (size_t at = window.begin; at < last;) {
      if (callbacks_.should_cancel && callbacks_.should_cancel()) {
        return absl::CancelledError("cancelled");
      }
      const bool scored = at >= predicting;
      const size_t rows =
          scored ? std::min(scored_rows_, last - at)
                 : std::min(shared_.prefill_chunk, predicting - at);
      const Executor::Entry entry{
          absl::MakeConstSpan(ids_).subspan(at, rows), &cache_,
          scored ? Executor::Logits::kAll : Executor::Logits::kNone,
          window.end - window.begin};
      LANEWISE_RETURN_IF_ERROR(executor_->Forward({&entry, 1}, logits_.data()));
      if (scored) {
        LANEWISE_RETURN_IF_ERROR(Append(at + 1, rows, log_probabilities));
      }
      at += rows;
      done_ += rows;
      if (callbacks_.on_progress) callbacks_.on_progress(done_, total_);
    }
    return absl::OkStatus();
  }

  // The log-probabilities of tokens [first, first + rows) by logits_.
  absl::Status Append(size_t first, size_t rows,
                      std::vector<double>* log_probabilities) const {
    const size_t before = log_probabilities->size();
    log_probabilities->resize(before + rows);
    shared_.context->ParallelFor(rows, [&](size_t row, size_t) {
      const Target& target = shared_.context->target();
      const float* logits = logits_.data() + row * vocab_;
      const size_t id = static_cast<size_t>(ids_[first + row]);
      (*log_probabilities)[before + row] =
          AllFinite(target, logits, vocab_)
              ? logits[id] - LogSumExp(target, logits, vocab_)
              : std::numeric_limits<double>::quiet_NaN();
    });
    for (size_t row = 0; row < rows; ++row) {
      if (!std::isnan((*log_probabilities)[before + row])) continue;
      return absl::InternalError(absl::StrCat(
          "token ", first + row, ": expected finite logits, found others"));
    }
    return absl::OkStatus();
  }

  const SessionShared& shared_;
  const ScoreCallbacks& callbacks_;
  const std::vector<int32_t>& ids_;
  const size_t vocab_;
  const size_t scored_rows_;  // at a time
  std::unique_ptr<Executor> executor_;
  KvCache cache_;
  std::vector<float> logits_;  // [rows at a time, vocab]
  size_t done_ = 0, total_ = 0;
};

}  // namespace

absl::StatusOr<ScoreResult> ScoreText(const SessionShared& shared,
                                      const ScoreRequest& request,
                                      const ScoreCallbacks& callbacks) {
  const ScopedFloatEnvironment environment;
  LANEWISE_RETURN_IF_ERROR(CheckModel(shared.model->spec()));
  LANEWISE_ASSIGN_OR_RETURN(const Sequence sequence,
                            MakeSequence(shared, request));
  LANEWISE_RETURN_IF_ERROR(Check(shared, request, sequence));
  const auto start = std::chrono::steady_clock::now();
  ScoreResult result;
  LANEWISE_RETURN_IF_ERROR(
      Scorer(shared, callbacks, sequence.ids)
          .Run(Windows(sequence, shared.context_length, request.stride),
               &result.log_probabilities));
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
