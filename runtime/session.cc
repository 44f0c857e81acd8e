#include "runtime/session.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/sampler.h"
#include "runtime/sha256.h"
#include "runtime/stop_strings.h"
#include "runtime/text_stream.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Clock = std::chrono::steady_clock;

// Whether rows of sequences that count as `a` and as `b` tokens long are
// rotated alike.
bool SameFrequencies(const Model& model, size_t a, size_t b) {
  for (size_t i = 0; i < model.spec().ropes.size(); ++i) {
    const RopeTable& table = model.rope(i);
    std::vector<float> scratch_a(table.half()), scratch_b(table.half());
    if (table.Frequencies(a, scratch_a.data()) !=
        table.Frequencies(b, scratch_b.data())) {
      return false;
    }
  }
  return true;
}

}  // namespace

// The state of one Generate call.
class GenerationSession::Run {
 public:
  Run(GenerationSession* session, const GenerateRequest& request,
      const GenerateCallbacks& callbacks)
      : session_(*session), request_(request), callbacks_(callbacks) {}

  absl::StatusOr<GenerateResult> Execute() {
    LANEWISE_RETURN_IF_ERROR(Prepare());
    const Clock::time_point start = Clock::now();
    LANEWISE_ASSIGN_OR_RETURN(
        const bool finished,
        session_.Prefill(
            absl::MakeConstSpan(history_).subspan(result_.cached_tokens),
            callbacks_));
    result_.prompt_seconds = SecondsSince(start);
    if (!finished) {
      result_.finish_reason = FinishReason::kCancelled;
      return std::move(result_);
    }
    const Clock::time_point decode_start = Clock::now();
    LANEWISE_RETURN_IF_ERROR(Decode());
    result_.decode_seconds = SecondsSince(decode_start) - hash_seconds_;
    if (request_.hash_logits) result_.logits_hash = hash_.HexDigest();
    return std::move(result_);
  }

 private:
  absl::Status Prepare() {
    const SessionShared& shared = session_.shared_;
    LANEWISE_ASSIGN_OR_RETURN(stops_, StopStrings::Create(request_.stop));
    LANEWISE_ASSIGN_OR_RETURN(history_, session_.PromptIds(request_));
    result_.prompt_tokens = history_.size();
    limit_ =
        std::min(request_.max_tokens, shared.context_length - history_.size());
    if (!request_.ignore_end) ends_ = shared.prompts->special().end_ids;
    LANEWISE_ASSIGN_OR_RETURN(
        sampler_,
        Sampler::Create(request_.sampling, {session_.logits_.size(), ends_}));
    result_.seed = sampler_->seed();
    stream_.emplace(
        [prompts = shared.prompts](absl::Span<const int32_t> ids) {
          DecodeOptions options;
          options.skip_special_tokens = true;
          return prompts->tokenizer().Decode(ids, options);
        },
        &stops_);
    result_.cached_tokens = session_.Reuse(history_);
    // First: a request beyond the cache's memory ends here as a status.
    LANEWISE_RETURN_IF_ERROR(session_.cache_.Reserve(history_.size() + limit_));
    result_.ids.reserve(limit_);
    result_.log_probabilities.reserve(limit_);
    history_.reserve(history_.size() + limit_);
    return absl::OkStatus();
  }

  absl::Status Decode() {
    result_.finish_reason = FinishReason::kLength;
    while (result_.ids.size() < limit_) {
      if (Cancelled(callbacks_)) {
        result_.finish_reason = FinishReason::kCancelled;
        break;
      }
      LANEWISE_ASSIGN_OR_RETURN(const bool go_on, Step());
      if (!go_on) break;
      if (result_.ids.size() == limit_) break;
      LANEWISE_ASSIGN_OR_RETURN(
          const bool finished,
          session_.Prefill(absl::MakeConstSpan(history_).last(1), {}));
      (void)finished;  // nothing to cancel it
    }
    Show(stream_->Finish());
    return absl::OkStatus();
  }

  // Chooses and shows one token; false when it is the last.
  absl::StatusOr<bool> Step() {
    HashLogits();
    SamplerInput input;
    input.logits = session_.logits_;
    input.history = {history_, result_.prompt_tokens};
    LANEWISE_ASSIGN_OR_RETURN(const SampledToken token,
                              sampler_->Step(session_.shared_.context->target(),
                                             input, session_.sampler_scratch_));
    result_.ids.push_back(token.id);
    result_.log_probabilities.push_back(token.log_prob);
    history_.push_back(token.id);
    if (std::binary_search(ends_.begin(), ends_.end(), token.id)) {
      result_.finish_reason = FinishReason::kEnd;
      return false;
    }
    if (!Show(stream_->Push(token.id))) {
      result_.finish_reason = FinishReason::kCancelled;
      return false;
    }
    if (stream_->stopped()) {
      result_.finish_reason = FinishReason::kStop;
      return false;
    }
    return true;
  }

  void HashLogits() {
    if (!request_.hash_logits) return;
    const Clock::time_point start = Clock::now();
    hash_.UpdateFloats(session_.logits_);
    hash_seconds_ += SecondsSince(start);
  }

  bool Show(const std::string& text) {
    if (text.empty()) return true;
    result_.text += text;
    return !callbacks_.on_text || callbacks_.on_text(text);
  }

  GenerationSession& session_;
  const GenerateRequest& request_;
  const GenerateCallbacks& callbacks_;
  GenerateResult result_;
  std::vector<int32_t> history_;  // prompt and new tokens
  std::vector<int32_t> ends_;
  size_t limit_ = 0;
  StopStrings stops_;
  std::optional<Sampler> sampler_;
  std::optional<TextStream> stream_;
  Sha256 hash_;
  double hash_seconds_ = 0;  // not part of decoding
};

GenerationSession::GenerationSession(const SessionShared& shared,
                                     std::unique_ptr<Executor> executor)
    : shared_(shared),
      executor_(std::move(executor)),
      cache_(shared.pool),
      logits_(shared.model->spec().vocab_size),
      sampler_scratch_(shared.model->spec().vocab_size) {}

absl::StatusOr<std::unique_ptr<GenerationSession>> GenerationSession::Create(
    const SessionShared& shared) {
  Executor::Options options;
  options.activations = shared.activations;
  options.max_rows = shared.prefill_chunk;
  LANEWISE_ASSIGN_OR_RETURN(
      std::unique_ptr<Executor> executor,
      Executor::Create(*shared.model, *shared.context, std::move(options)));
  return absl::WrapUnique(new GenerationSession(shared, std::move(executor)));
}

absl::StatusOr<GenerateResult> GenerationSession::Generate(
    const GenerateRequest& request, const GenerateCallbacks& callbacks) {
  const ScopedFloatEnvironment environment;
  LANEWISE_RETURN_IF_ERROR(Validate(request.beams));
  if (request.beams.num_beams > 1) return GenerateBeams(request, callbacks);
  return Run(this, request, callbacks).Execute();
}

absl::StatusOr<std::vector<int32_t>> GenerationSession::PromptIds(
    const GenerateRequest& request) const {
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            shared_.prompts->Ids(request));
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        "prompt: expected at least one token, found none");
  }
  if (ids.size() >= shared_.context_length) {
    return absl::OutOfRangeError(absl::StrCat(
        "prompt: ", ids.size(), " tokens do not fit into the context of ",
        shared_.context_length,
        " and leave room for an answer; shorten the prompt"));
  }
  return ids;
}

size_t GenerationSession::Reuse(absl::Span<const int32_t> ids, size_t most) {
  most = std::min(cached_ids_.size(), most);
  size_t common = 0;
  while (common < most && cached_ids_[common] == ids[common]) ++common;
  // The cached rows counted as long as their prompt, or as they were then.
  const size_t longest = std::max(prompt_length_, common);
  if (!SameFrequencies(*shared_.model, prompt_length_, ids.size()) ||
      !SameFrequencies(*shared_.model, longest, ids.size())) {
    common = 0;
  }
  cache_.Truncate(common);
  cached_ids_.resize(common);
  prompt_length_ = ids.size();
  return common;
}

absl::StatusOr<bool> GenerationSession::Prefill(
    absl::Span<const int32_t> ids, const GenerateCallbacks& callbacks) {
  size_t done = 0;
  while (done < ids.size()) {
    if (Cancelled(callbacks)) return false;
    const size_t rows = std::min(shared_.prefill_chunk, ids.size() - done);
    const bool last = done + rows == ids.size();
    const Executor::Entry entry{
        ids.subspan(done, rows), &cache_,
        last ? Executor::Logits::kLast : Executor::Logits::kNone,
        prompt_length_};
    LANEWISE_RETURN_IF_ERROR(executor_->Forward({&entry, 1}, logits_.data()));
    cached_ids_.insert(cached_ids_.end(), entry.ids.begin(), entry.ids.end());
    done += rows;
    if (callbacks.on_prompt) callbacks.on_prompt(done, ids.size());
  }
  return true;
}

absl::StatusOr<std::vector<float>> GenerationSession::AllLogits(
    absl::Span<const int32_t> ids) {
  const ScopedFloatEnvironment environment;
  const size_t vocab = shared_.model->spec().vocab_size;
  cache_.Truncate(0);
  cached_ids_.clear();
  if (ids.size() > shared_.context_length) {
    return absl::OutOfRangeError(
        absl::StrCat("ids: ", ids.size(),
                     " tokens do not fit into the context "
                     "of ",
                     shared_.context_length));
  }
  LANEWISE_RETURN_IF_ERROR(cache_.Reserve(ids.size()));
  std::vector<float> logits(ids.size() * vocab);
  for (size_t done = 0; done < ids.size();) {
    const size_t rows = std::min(shared_.prefill_chunk, ids.size() - done);
    const Executor::Entry entry{ids.subspan(done, rows), &cache_,
                                Executor::Logits::kAll, ids.size()};
    LANEWISE_RETURN_IF_ERROR(
        executor_->Forward({&entry, 1}, logits.data() + done * vocab));
    done += rows;
  }
  cache_.Truncate(0);
  return logits;
}

}  // namespace lanewise
