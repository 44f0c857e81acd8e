// Lanewise's public API: a model loaded once, and text generated with it.
//
//   #include "lanewise/engine.h"
//
//   auto engine = lanewise::Engine::Load("model.gguf", {});
//   if (!engine.ok()) return Fail(engine.status());
//   lanewise::GenerateRequest request;
//   request.messages = {{"user", "Write one sentence about the sea."}};
//   auto result = (*engine)->Generate(request, {});
//   if (result.ok()) std::cout << result->text << "\n";
//
// The bits of every logit, and so the text, are the same for any number of
// threads, any prefill chunk, any state of the cache and any instruction set
// with fused multiply-add. Errors are absl::Status; nothing here throws, aborts
// or exits.
#ifndef LANEWISE_RUNTIME_ENGINE_H_
#define LANEWISE_RUNTIME_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lanewise/beam_search_options.h"
#include "lanewise/classification.h"
#include "lanewise/embedding.h"
#include "lanewise/generation_options.h"
#include "lanewise/hypothesis.h"
#include "lanewise/translation.h"

namespace lanewise {

// What activations are when they meet weights.
enum class ActivationPrecision : uint8_t {
  kNative,  // int8 with quantized weights, bf16 with bf16, else f32
  kF32,     // f32 always: slower, the measure of what kNative costs
};

// How keys and values are kept.
enum class CachePrecision : uint8_t { kF16, kBF16, kF32 };

// What float matrices become while a model is loaded, and those of quantized
// types that would be F32 in memory (Q5_0, Q5_1, Q2_K, Q3_K, Q5_K, IQ4_NL,
// MXFP4); other quantized ones stay as they are. Results are those, bit for
// bit, of a file that `quantize` makes of the model; which matrices get another
// type than asked for is in notices().
enum class WeightPrecision : uint8_t {
  kAsStored,
  kBF16,
  kQ8_0,
  kQ6_K,
  kQ4_K,
  kQ4_1,
  kQ4_0,
};

struct EngineOptions {
  size_t threads = 0;  // 0: as many as this process may use (affinity, cgroup)
  std::string target;  // instruction set, e.g. "AVX2"; empty: the best here
  ActivationPrecision activations = ActivationPrecision::kNative;
  CachePrecision cache = CachePrecision::kF16;
  WeightPrecision weights = WeightPrecision::kAsStored;
  // Longest sequence; 0 or more than the model's own: the model's own.
  size_t context_length = 0;
  size_t prefill_chunk = 512;  // prompt tokens that are computed together
  size_t max_cache_bytes = size_t{1} << 34;  // keys and values of all sessions
  // Called while loading: layers done, layers in all. May be empty.
  std::function<void(size_t done, size_t total)> load_progress;
};

struct Message {
  std::string role;  // "system", "user", "assistant", …
  std::string content;
};

// One request. Exactly one of messages, prompt and prompt_ids is set.
struct GenerateRequest {
  std::vector<Message> messages;  // rendered by the model's chat template; its
                                  // contents never become control tokens
  std::string prompt;             // text as it is, without a template
  bool parse_special = false;     // prompt: text may spell control tokens
  std::vector<int32_t> prompt_ids;

  size_t max_tokens = 256;  // new tokens, at most what the context leaves
  SamplingOptions sampling;
  // More than one beam: beam search in place of sampling. Then the processors
  // of `sampling` act on log-probabilities, its temperature is 0, and there are
  // no stop strings.
  BeamOptions beams;
  std::vector<std::string> stop;  // the text ends before the first of these
  bool ignore_end = false;        // go on after end-of-text and -turn tokens
  bool hash_logits = false;       // fill GenerateResult::logits_hash
};

struct GenerateCallbacks {
  // New text, whole UTF-8 characters only; with beams once, at the end.
  // Returning false ends generation.
  std::function<bool(absl::string_view text)> on_text;
  // While a prompt is computed: tokens done, tokens in all.
  std::function<void(size_t done, size_t total)> on_prompt;
  // Asked before every chunk and token; true ends generation.
  std::function<bool()> should_cancel;
};

struct GenerateResult {
  std::string text;          // what on_text was given, in one piece
  std::vector<int32_t> ids;  // new tokens, the end token included
  std::vector<double> log_probabilities;  // of ids, of the raw distribution;
                                          // empty with beams
  std::vector<Hypothesis> hypotheses;  // with beams, best first: text and ids
                                       // are the first one's
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;  // of the prompt, found in the session's cache
  FinishReason finish_reason = FinishReason::kLength;
  uint64_t seed = 0;          // that reproduces this result
  std::string logits_hash;    // SHA-256, hex, of all logits that were sampled
                              // from, as little-endian f32
  double prompt_seconds = 0;  // until the first token's logits
  double decode_seconds = 0;  // for the tokens after the first, without hashing
};

// A text whose tokens are given probabilities. Exactly one of text and ids is
// set.
//
//   lanewise::ScoreRequest request;
//   request.prompt = "The capital of France is";
//   request.text = " Paris.";
//   auto score = engine->Score(request, {});
//   // score->perplexity; score->log_probabilities[0] of score->ids[0]
struct ScoreRequest {
  std::string text;
  // Read before the text and not scored. Both are tokenized as one text, with
  // what the tokenizer puts around it; the tokens that this one and the prompt
  // alone begin with are the prompt's, and one that reaches from the prompt
  // into the text is scored.
  std::string prompt;
  bool parse_special = false;  // text and prompt may spell control tokens

  std::vector<int32_t> ids;
  std::vector<int32_t> prompt_ids;  // before ids, not scored

  // 0: what is longer than the context is an error. Else prompt and text are
  // read in windows of context_length() tokens that begin at multiples of
  // `stride`, each on its own, positions from 0; a window scores what no
  // earlier one did. So the first window's tokens depend on all before them,
  // later ones on at least context_length() - stride. At most
  // context_length() - 1, which is the fastest; 1 is the most exact.
  size_t stride = 0;
};

struct ScoreCallbacks {
  // After every chunk: tokens done, tokens in all, of all windows.
  std::function<void(size_t done, size_t total)> on_progress;
  // Asked before every chunk; true ends it with CANCELLED.
  std::function<bool()> should_cancel;
};

struct ScoreResult {
  std::vector<int32_t> ids;  // scored tokens: of the text, but never the very
                             // first token, which nothing precedes
  // Of ids, natural logarithm of the probability after all tokens before it (in
  // its window), of the raw distribution.
  std::vector<double> log_probabilities;
  size_t prompt_tokens = 0;  // before ids, not scored
  size_t cached_tokens = 0;  // of those, found in the session's cache
  double mean_nll = 0;       // mean of -log_probabilities
  double perplexity = 0;     // exp(mean_nll)
  double seconds = 0;
};

// A conversation: keeps keys and values, so that a prompt which begins as the
// last one ended computes only what is new. Not thread-safe; use one per
// thread of requests. Results are those of a fresh session, bit for bit.
class Session {
 public:
  virtual ~Session() = default;

  // INVALID_ARGUMENT for an empty or contradictory request, OUT_OF_RANGE for a
  // prompt that does not fit into the context (with both numbers),
  // FAILED_PRECONDITION for messages without a chat template, INTERNAL for
  // logits that are not finite (with the step).
  virtual absl::StatusOr<GenerateResult> Generate(
      const GenerateRequest& request, const GenerateCallbacks& callbacks) = 0;

  // As Engine::Score, of many texts behind one long prompt: the session keeps
  // the prompt. With cancellation and errors the session stays usable.
  virtual absl::StatusOr<ScoreResult> Score(
      const ScoreRequest& request, const ScoreCallbacks& callbacks) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // `path`: a GGUF file, or a folder with config.json, safetensors and
  // tokenizer.json. Calls that a model is not for are FAILED_PRECONDITION and
  // say which ones are.
  static absl::StatusOr<std::unique_ptr<Engine>> Load(
      const std::string& path, const EngineOptions& options);

  // The engine must outlive its sessions.
  virtual absl::StatusOr<std::unique_ptr<Session>> NewSession() = 0;

  // With a session of its own. Thread-safe.
  virtual absl::StatusOr<GenerateResult> Generate(
      const GenerateRequest& request, const GenerateCallbacks& callbacks) = 0;

  // Log-probabilities of a given text, perplexity. Thread-safe. Memory does not
  // grow with the length of the text but for the result and the cache.
  // INVALID_ARGUMENT for a contradictory request or one without a token to
  // score, OUT_OF_RANGE for more tokens than the context (with both numbers),
  // INTERNAL for logits that are not finite (with the token).
  virtual absl::StatusOr<ScoreResult> Score(
      const ScoreRequest& request, const ScoreCallbacks& callbacks) = 0;

  // Vectors of texts, or of inputs that are vectors themselves, of any model
  // with hidden states. Thread-safe.
  // INVALID_ARGUMENT for a contradictory request, OUT_OF_RANGE for a text that
  // is too long and may not be cut (with both numbers).
  virtual absl::StatusOr<EmbedResult> Embed(
      const EmbedRequest& request, const EmbedCallbacks& callbacks) = 0;

  // Labels, entities, masked words or answers, by the model's head.
  // Thread-safe. INVALID_ARGUMENT for inputs that the head cannot take,
  // OUT_OF_RANGE for one that is too long and may not be cut.
  virtual absl::StatusOr<ClassifyResult> Classify(
      const ClassifyRequest& request, const ClassifyCallbacks& callbacks) = 0;

  // Texts out of texts, of an encoder-decoder. Thread-safe. INVALID_ARGUMENT
  // for a contradictory request, an unknown task or language or one that is
  // missing (with those that are known), OUT_OF_RANGE for an input that is
  // longer than the model's positions (with both numbers), INTERNAL for logits
  // that are not finite (with input and step).
  virtual absl::StatusOr<TranslateResult> Translate(
      const TranslateRequest& request, const TranslateCallbacks& callbacks) = 0;

  // The options that `request` would be translated with if it had none: those
  // of generation_config.json (older folders: config.json), with those of the
  // request's task. Errors as Translate.
  virtual absl::StatusOr<TranslateOptions> TranslateDefaults(
      const TranslateRequest& request) const = 0;

  // The prompt of `messages` as the chat template renders it, ready for an
  // answer.
  virtual absl::StatusOr<std::string> RenderChat(
      absl::Span<const Message> messages) const = 0;

  // Token ids as Generate would compute them for such a request.
  virtual absl::StatusOr<std::vector<int32_t>> PromptIds(
      const GenerateRequest& request) const = 0;

  // Logits of every position of `ids` from an empty cache: [ids, vocab_size].
  virtual absl::StatusOr<std::vector<float>> Logits(
      absl::Span<const int32_t> ids) = 0;

  // Text of ids, without control tokens.
  virtual std::string Decode(absl::Span<const int32_t> ids) const = 0;

  // How the vocabulary spells a token; "" out of range.
  virtual std::string TokenText(int32_t id) const = 0;

  virtual bool has_chat_template() const = 0;
  virtual size_t vocab_size() const = 0;
  virtual size_t context_length() const = 0;  // in force
  virtual size_t threads() const = 0;
  virtual absl::string_view target() const = 0;
  virtual size_t weight_bytes() const = 0;  // packed, in memory
  // What loading ignored, clamped or took from the tensors; one line each.
  virtual const std::vector<std::string>& notices() const = 0;
};

// Names of the instruction-set targets that can be asked for here, best first.
std::vector<std::string> AvailableTargets();

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_ENGINE_H_
