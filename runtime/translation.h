// Texts made of other texts by an encoder-decoder (translation, summaries,
// spelling to phonemes): what Engine::Translate takes and gives.
//
//   lanewise::TranslateRequest request;
//   request.texts = {"The house is small.", "Good morning."};
//   request.source_language = "en";
//   request.target_language = "de";
//   auto result = engine->Translate(request, {});
//   if (!result.ok()) return Fail(result.status());
//   // result->translations[0].text
//
// The model's own settings, changed:
//
//   auto options = engine->TranslateDefaults(request);
//   options->beams.num_beams = options->beams.num_return_sequences = 4;
//   request.options = *options;
//   // result->translations[0].hypotheses, each with its score
//
// The encoder runs once an input, and all beams read its one result. An input's
// translation does not depend, in any bit, on the inputs beside it.
#ifndef LANEWISE_RUNTIME_TRANSLATION_H_
#define LANEWISE_RUNTIME_TRANSLATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lanewise/beam_search_options.h"
#include "lanewise/generation_options.h"
#include "lanewise/hypothesis.h"

namespace lanewise {

// How tokens are chosen. What a model's files say of it is TranslateDefaults.
struct TranslateOptions {
  size_t max_tokens = 256;  // new tokens, at most what the model's positions
                            // leave
  // With one beam `sampling` chooses; with more it may only forbid, force and
  // penalise (temperature 0).
  BeamOptions beams;
  SamplingOptions sampling;
  // What the decoder begins with, and what ends a text; unset: the model's own.
  std::optional<int32_t> start_id;
  std::optional<std::vector<int32_t>> end_ids;
};

struct TranslateRequest {
  // The inputs: texts, or ids as the encoder reads them, with all special
  // tokens. Exactly one of the two.
  std::vector<std::string> texts;
  std::vector<std::vector<int32_t>> ids;
  bool parse_special = false;  // texts may spell control tokens

  // One of the model's own tasks (config.json: task_specific_params), e.g.
  // "translation_en_to_de": its prefix comes before every text, and its
  // settings are the defaults. Never chosen without being asked for.
  std::string task;

  // As the vocabulary spells them ("en_XX", "eng_Latn", "__en__") or in short
  // ("en", "eng") where one token fits. The source's token replaces the one
  // that the tokenizer puts around a text, or else comes first; the target's is
  // forced as the first token, or starts the decoder where the model's start
  // token is a language too. Other models have a token before the text for the
  // target alone (">>deu<<", "<2de>"), or a task "translation_en_to_de", and
  // need no source.
  std::string source_language, target_language;

  // What every translation begins with, after the start token and the target's;
  // not part of the result. As ids: all that follows the start token. At most
  // one of the two.
  std::string decoder_prompt;
  std::vector<int32_t> decoder_prompt_ids;

  std::optional<TranslateOptions> options;  // unset: TranslateDefaults
  // Inputs computed together, fewer with many beams; changes no result.
  size_t batch = 32;
  bool hash_logits = false;  // fill Translation::logits_hash
};

struct TranslateCallbacks {
  // New text of an input, whole UTF-8 characters only; with beams once, at the
  // end. Returning false ends all.
  std::function<bool(size_t input, absl::string_view text)> on_text;
  // Whenever inputs are finished: inputs done, inputs in all.
  std::function<void(size_t done, size_t total)> on_progress;
  // Asked before every step; true ends all.
  std::function<bool()> should_cancel;
};

// Of one input.
struct Translation {
  std::string text;          // what on_text was given, in one piece
  std::vector<int32_t> ids;  // new tokens, the end token included
  std::vector<double> log_probabilities;  // of ids, of the raw distribution;
                                          // empty with beams
  std::vector<Hypothesis> hypotheses;  // with beams, best first: text and ids
                                       // are the first one's
  size_t source_tokens = 0;
  FinishReason finish_reason = FinishReason::kLength;
  std::string logits_hash;  // SHA-256, hex, of all logits that were chosen
                            // from, as little-endian f32
};

struct TranslateResult {
  std::vector<Translation> translations;  // in the order of the inputs
  uint64_t seed = 0;                      // that reproduces this result
  double encode_seconds = 0;  // until the encoder's results are kept
  double decode_seconds = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_TRANSLATION_H_
