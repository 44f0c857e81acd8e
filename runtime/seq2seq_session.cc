#include "runtime/seq2seq_session.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "runtime/beam_search.h"
#include "runtime/beam_search_decoder.h"
#include "runtime/sampler.h"
#include "runtime/sha256.h"
#include "runtime/text_stream.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Clock = std::chrono::steady_clock;

// Rows of one pass of the encoder, where single inputs are not longer, and of
// one pass of the decoder.
constexpr size_t kEncoderRows = 2048;
constexpr size_t kDecoderRows = 512;

bool Cancelled(const TranslateCallbacks& callbacks) {
  return callbacks.should_cancel && callbacks.should_cancel();
}

absl::Status OfInput(size_t input, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("input ", input, ": ", status.message()));
}

// Asks before every step whether to go on, and hashes each input's logits.
class WatchedStepper : public BeamStepper {
 public:
  WatchedStepper(BeamStepper& stepper, const TranslateCallbacks& callbacks,
                 size_t vocab_size)
      : stepper_(stepper), callbacks_(callbacks), vocab_size_(vocab_size) {}

  void HashInputs(size_t inputs) {
    hashes_.resize(inputs);
    for (size_t i = 0; i < inputs; ++i) inputs_.push_back(i);
  }

  absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep> rows) override {
    cancelled_ = Cancelled(callbacks_);
    if (cancelled_) return absl::CancelledError("cancelled");
    LANEWISE_ASSIGN_OR_RETURN(const absl::Span<const float> logits,
                              stepper_.Advance(rows));
    if (hashes_.empty()) return logits;
    std::vector<size_t> inputs;
    for (size_t row = 0; row < rows.size(); ++row) {
      inputs.push_back(inputs_[rows[row].parent]);
      hashes_[inputs.back()].UpdateFloats(
          logits.subspan(row * vocab_size_, vocab_size_));
    }
    inputs_ = std::move(inputs);
    return logits;
  }

  bool cancelled() const { return cancelled_; }
  std::string HexDigest(size_t input) const {
    return hashes_.empty() ? "" : hashes_[input].HexDigest();
  }

 private:
  BeamStepper& stepper_;
  const TranslateCallbacks& callbacks_;
  size_t vocab_size_;
  std::vector<Sha256> hashes_;  // of each input; empty: none wanted
  std::vector<size_t> inputs_;  // of the rows
  bool cancelled_ = false;
};

}  // namespace

// Decoding token by token, all inputs together until each has ended.
class Seq2SeqSession::Greedy {
 public:
  Greedy(const SessionShared& shared, Executor* decoder, const Seq2SeqJob& job,
         const TranslateCallbacks& callbacks)
      : shared_(shared),
        decoder_(*decoder),
        job_(job),
        callbacks_(callbacks),
        vocab_(shared.model->spec().head_width()),
        scratch_(shared.context->threads(), SamplerScratch(vocab_)) {}

  absl::Status Run(absl::Span<const KvCache> memories, size_t first,
                   std::vector<Translation>* out) {
    LANEWISE_ASSIGN_OR_RETURN(sampler_,
                              Sampler::Create(job_.options.sampling,
                                              {vocab_, *job_.options.end_ids}));
    for (size_t i = 0; i < memories.size(); ++i) {
      rows_.push_back(
          std::make_unique<Row>(shared_, first + i, memories[i], &(*out)[i]));
      rows_.back()->history = job_.decoder_prompt;
    }
    LANEWISE_ASSIGN_OR_RETURN(bool go_on, Prefill());
    while (go_on && !rows_.empty() && Left() > 0) {
      LANEWISE_RETURN_IF_ERROR(Choose());
      go_on = ShowAndRemoveEnded() && Left() > 0 && !rows_.empty() &&
              !(stopped_ = Cancelled(callbacks_));
      if (go_on) LANEWISE_RETURN_IF_ERROR(Step());
    }
    for (const auto& row : rows_) {
      Finish(stopped_ ? FinishReason::kCancelled : FinishReason::kLength, *row);
    }
    return absl::OkStatus();
  }

 private:
  struct Row {
    Row(const SessionShared& shared, size_t index, const KvCache& its_memory,
        Translation* its_out)
        : input(index),
          memory(its_memory),
          out(*its_out),
          cache(shared.pool),
          stream(
              [prompts = shared.prompts](absl::Span<const int32_t> ids) {
                DecodeOptions options;
                options.skip_special_tokens = true;
                return prompts->tokenizer().Decode(ids, options);
              },
              nullptr) {}

    size_t input;
    const KvCache& memory;
    Translation& out;
    KvCache cache;
    TextStream stream;
    std::vector<int32_t> history;  // decoder prompt and new tokens
    absl::Status status;
    Sha256 hash;
  };

  // New tokens that the limits leave to each row.
  size_t Left() const {
    const size_t prompt = job_.decoder_prompt.size();
    const size_t made = rows_.empty() ? 0 : rows_[0]->history.size() - prompt;
    return std::min(job_.options.max_tokens, shared_.context_length - prompt) -
           made;
  }

  // The decoder prompt, of all inputs, in chunks. False: cancelled.
  absl::StatusOr<bool> Prefill() {
    const size_t length = job_.decoder_prompt.size();
    const size_t chunk = std::max<size_t>(kDecoderRows / rows_.size(), 1);
    for (size_t done = 0; done < length; done += chunk) {
      stopped_ = Cancelled(callbacks_);
      if (stopped_) return false;
      LANEWISE_RETURN_IF_ERROR(Forward(done, std::min(length, done + chunk)));
    }
    return true;
  }

  absl::Status Step() {
    const size_t length = rows_[0]->history.size();
    return Forward(length - 1, length);
  }

  // Columns [begin, end) of all rows' histories; logits_ of the last one.
  absl::Status Forward(size_t begin, size_t end) {
    batch_.clear();
    for (const auto& row : rows_) {
      LANEWISE_RETURN_IF_ERROR(row->cache.Reserve(end));
      Executor::Entry entry;
      entry.ids = absl::MakeConstSpan(row->history).subspan(begin, end - begin);
      entry.cache = &row->cache;
      entry.memory = &row->memory;
      entry.prompt_length = job_.decoder_prompt.size();
      batch_.push_back(entry);
    }
    logits_.resize(rows_.size() * vocab_);
    return decoder_.Forward(batch_, logits_.data());
  }

  // The next token of each row.
  absl::Status Choose() {
    const bool last = Left() == 1;
    shared_.context->ParallelFor(rows_.size(), [&](size_t i, size_t thread) {
      Row& row = *rows_[i];
      SamplerInput input;
      input.logits = absl::MakeConstSpan(logits_).subspan(i * vocab_, vocab_);
      input.history = {row.history, job_.decoder_prompt.size(), last};
      if (job_.hash_logits) row.hash.UpdateFloats(input.logits);
      const absl::StatusOr<SampledToken> token =
          sampler_->Step(shared_.context->target(), input, scratch_[thread]);
      row.status = token.status();
      if (!token.ok()) return;
      row.history.push_back(token->id);
      row.out.ids.push_back(token->id);
      row.out.log_probabilities.push_back(token->log_prob);
    });
    for (const auto& row : rows_) {
      if (!row->status.ok()) return OfInput(row->input, row->status);
    }
    return absl::OkStatus();
  }

  // False: the caller wants no more.
  bool ShowAndRemoveEnded() {
    const std::vector<int32_t>& ends = *job_.options.end_ids;
    for (const auto& row : rows_) {
      const int32_t id = row->history.back();
      if (std::binary_search(ends.begin(), ends.end(), id)) {
        Finish(FinishReason::kEnd, *row);
      } else {
        Show(row->stream.Push(id), *row);
      }
    }
    rows_.erase(std::remove_if(rows_.begin(), rows_.end(),
                               [](const auto& row) {
                                 return row->out.finish_reason ==
                                        FinishReason::kEnd;
                               }),
                rows_.end());
    return !stopped_;
  }

  void Finish(FinishReason reason, Row& row) {
    row.out.finish_reason = reason;
    Show(row.stream.Finish(), row);
    if (job_.hash_logits) row.out.logits_hash = row.hash.HexDigest();
  }

  void Show(const std::string& text, Row& row) {
    if (text.empty()) return;
    row.out.text += text;
    if (stopped_ || !callbacks_.on_text) return;
    stopped_ = !callbacks_.on_text(row.input, text);
  }

  const SessionShared& shared_;
  Executor& decoder_;
  const Seq2SeqJob& job_;
  const TranslateCallbacks& callbacks_;
  size_t vocab_;
  std::optional<Sampler> sampler_;
  std::vector<SamplerScratch> scratch_;     // of each thread
  std::vector<std::unique_ptr<Row>> rows_;  // that run
  std::vector<Executor::Entry> batch_;
  std::vector<float> logits_;  // [rows_, vocab_]
  bool stopped_ = false;       // by the caller
};

absl::StatusOr<std::unique_ptr<Seq2SeqSession>> Seq2SeqSession::Create(
    const SessionShared& shared, std::shared_ptr<KvPagePool> memory_pool) {
  auto session =
      absl::WrapUnique(new Seq2SeqSession(shared, std::move(memory_pool)));
  Executor::Options options;
  options.activations = shared.activations;
  options.max_rows = 1;  // grows with the inputs
  LANEWISE_ASSIGN_OR_RETURN(
      session->encoder_,
      Executor::Create(*shared.model->encoder(), *shared.context, options));
  LANEWISE_ASSIGN_OR_RETURN(
      session->decoder_,
      Executor::Create(*shared.model, *shared.context, options));
  return session;
}

size_t Seq2SeqSession::GroupSize(const Seq2SeqJob& job, size_t wanted) {
  const auto beams = static_cast<size_t>(job.options.beams.num_beams);
  return std::clamp<size_t>(kDecoderRows / beams, 1, wanted);
}

absl::StatusOr<std::vector<KvCache>> Seq2SeqSession::Encode(
    absl::Span<const std::vector<int32_t>> sources) {
  const size_t width = shared_.model->encoder()->spec().width;
  std::vector<KvCache> memories;
  std::vector<float> hidden;  // [rows, width]
  for (size_t begin = 0; begin < sources.size();) {
    std::vector<Executor::Entry> batch;
    size_t rows = 0, end = begin;
    do {
      batch.push_back({sources[end], nullptr, Executor::Logits::kNone});
      rows += sources[end++].size();
    } while (end < sources.size() &&
             rows + sources[end].size() <= kEncoderRows);
    hidden.resize(rows * width);
    Executor::Outputs outputs;
    outputs.hidden = hidden.data();
    LANEWISE_RETURN_IF_ERROR(encoder_->Reserve(rows));
    LANEWISE_RETURN_IF_ERROR(encoder_->Forward(batch, outputs));
    absl::Span<const float> rest = hidden;
    for (; begin < end; ++begin) {
      const size_t values = sources[begin].size() * width;
      memories.emplace_back(memory_pool_);
      LANEWISE_RETURN_IF_ERROR(
          decoder_->FillMemory(rest.first(values), &memories.back()));
      rest.remove_prefix(values);
    }
  }
  return memories;
}

absl::StatusOr<std::vector<Translation>> Seq2SeqSession::Run(
    const Seq2SeqJob& job, absl::Span<const std::vector<int32_t>> sources,
    size_t first, const TranslateCallbacks& callbacks) {
  const ScopedFloatEnvironment environment;
  std::vector<Translation> translations(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    translations[i].source_tokens = sources[i].size();
    translations[i].finish_reason = FinishReason::kCancelled;
  }
  if (sources.empty() || Cancelled(callbacks)) return translations;
  LANEWISE_RETURN_IF_ERROR(
      decoder_->Reserve(std::max(sources.size(), kDecoderRows)));
  const Clock::time_point start = Clock::now();
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<KvCache> memories,
                            Encode(sources));
  encode_seconds_ += SecondsSince(start);
  const Clock::time_point decode_start = Clock::now();
  if (job.options.beams.num_beams > 1) {
    LANEWISE_RETURN_IF_ERROR(
        SearchBeams(job, memories, first, callbacks, &translations));
  } else {
    LANEWISE_RETURN_IF_ERROR(Greedy(shared_, decoder_.get(), job, callbacks)
                                 .Run(memories, first, &translations));
  }
  decode_seconds_ += SecondsSince(decode_start);
  return translations;
}

absl::Status Seq2SeqSession::SearchBeams(
    const Seq2SeqJob& job, absl::Span<const KvCache> memories, size_t first,
    const TranslateCallbacks& callbacks,
    std::vector<Translation>* translations) {
  BeamSearchRequest search;
  search.prompts.assign(memories.size(), job.decoder_prompt);
  search.beams = job.options.beams;
  search.processors = job.options.sampling;
  search.vocab_size = shared_.model->spec().head_width();
  search.eos_ids = *job.options.end_ids;
  search.max_new_tokens =
      std::min(job.options.max_tokens,
               shared_.context_length - job.decoder_prompt.size());
  if (search.max_new_tokens == 0) {
    for (Translation& out : *translations) {
      out.finish_reason = FinishReason::kLength;
    }
    return absl::OkStatus();
  }
  std::vector<const KvCache*> pointers;
  for (const KvCache& memory : memories) pointers.push_back(&memory);
  DecoderInputs inputs;
  inputs.prompts = search.prompts;
  inputs.memories = pointers;
  LANEWISE_ASSIGN_OR_RETURN(
      const auto decoder,
      DecoderBeamStepper::Create(*decoder_, shared_.pool, inputs));
  WatchedStepper stepper(*decoder, callbacks, search.vocab_size);
  if (job.hash_logits) stepper.HashInputs(memories.size());
  auto found = BeamSearch(*shared_.context, search, stepper);
  if (stepper.cancelled()) return absl::OkStatus();
  LANEWISE_RETURN_IF_ERROR(found.status());
  bool wanted = static_cast<bool>(callbacks.on_text);
  for (size_t i = 0; i < memories.size(); ++i) {
    Translation& out = (*translations)[i];
    for (BeamHypothesis& beam : (*found)[i]) {
      out.hypotheses.push_back(ToHypothesis(*shared_.prompts, std::move(beam)));
    }
    const Hypothesis& best = out.hypotheses.front();
    out.text = best.text;
    out.ids = best.ids;
    out.finish_reason = best.finish_reason;
    out.logits_hash = stepper.HexDigest(i);
    wanted =
        wanted && (out.text.empty() || callbacks.on_text(first + i, out.text));
  }
  return absl::OkStatus();
}

}  // namespace lanewise
