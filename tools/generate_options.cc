#include "tools/generate_options.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "runtime/utf8.h"
#include "simd/status_macros.h"
#include "tools/engine_setup.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

void AddInputFlags(GenerateOptions* options, FlagSet* flags) {
  flags->Section("What to continue");
  flags->Add({"prompt", "TEXT", "the user's message"}, &options->prompt);
  flags->Add({"file", "FILE",
              "read the message from FILE (-: standard input), less one "
              "newline at its end"},
             &options->file);
  flags->Add({"system", "TEXT", "a system message before it"},
             &options->system);
  flags->Add({"raw", "", "continue the text as it is, without chat template"},
             &options->raw);
  flags->Add({"special", "",
              "with --raw: text may spell control tokens like <|im_end|>"},
             &options->request.parse_special);
}

void AddSamplingFlags(GenerateOptions* options, FlagSet* flags) {
  GenerateRequest& request = options->request;
  SamplingOptions& sampling = request.sampling;
  flags->Section("How to choose tokens");
  flags->Add({"max_tokens", "N", "at most N new tokens (256)"},
             &request.max_tokens, 0, kMaxCount);
  flags->Add({"temperature", "T",
              "0: always the most probable token (default); 0.7: varied"},
             &sampling.temperature);
  flags->Add({"top_k", "K", "only the K most probable tokens (0: all)"},
             &sampling.top_k, 0, INT32_MAX);
  flags->Add({"top_p", "P",
              "only the most probable tokens that make up P together (1: all)"},
             &sampling.top_p);
  flags->Add({"min_p", "P",
              "only tokens at least P times as probable as the best (0: all)"},
             &sampling.min_p);
  flags->Add({"typical_p", "P", "only typical tokens, up to P (1: all)"},
             &sampling.typical_p);
  flags->Add({"repetition_penalty", "R",
              "divide the scores of tokens seen before by R (1: off)"},
             &sampling.repetition_penalty);
  flags->Add({"presence_penalty", "R",
              "subtract R from scores of generated tokens (0: off)"},
             &sampling.presence_penalty);
  flags->Add({"frequency_penalty", "R",
              "subtract R for each time a token was generated (0: off)"},
             &sampling.frequency_penalty);
  flags->Add({"no_repeat_ngram", "N", "no N tokens in a row twice (0: off)"},
             &sampling.no_repeat_ngram, 0, INT32_MAX);
  flags->Add({"seed", "N",
              "same seed, same text on every machine (default: a new one, "
              "shown by --stats and --json)"},
             &sampling.seed);
  flags->Add({"stop", "TEXT", "end before TEXT; may be given several times"},
             &request.stop);
  flags->Add({"ignore_end", "", "go on after end-of-text tokens"},
             &request.ignore_end);
}

void AddBeamFlags(GenerateOptions* options, FlagSet* flags) {
  BeamOptions& beams = options->request.beams;
  flags->Section("Beam search, in place of choosing token by token");
  flags->Add({"beams", "N",
              "follow the N most probable texts and print the best (1: off)"},
             &beams.num_beams, 1, BeamOptions::kMaxBeams);
  flags->Add({"length_penalty", "P",
              "scores are log-probability / length^P: above 0 for long texts, "
              "below 0 for short ones (1)"},
             &beams.length_penalty);
  flags->Add({"early_stopping", "no|yes|never",
              "with N texts finished: go on while the best running one is "
              "better (default), end at once, or go on while any running one "
              "could become better"},
             &beams.early_stopping,
             {{"no", EarlyStopping::kNo},
              {"yes", EarlyStopping::kYes},
              {"never", EarlyStopping::kNever}});
  flags->Add({"n_best", "N", "with --json: list the N best texts (1)"},
             &beams.num_return_sequences, 1, BeamOptions::kMaxBeams);
}

// Validate's messages begin with the name of the field, which is the flag's.
absl::Status CheckSampling(const SamplingOptions& sampling) {
  absl::Status status = Validate(sampling);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", status.message()));
}

absl::Status CheckBeams(const GenerateOptions& options) {
  const BeamOptions& beams = options.request.beams;
  const SamplingOptions& sampling = options.request.sampling;
  const BeamOptions off;
  if (beams.num_beams == 1) {
    if (beams.num_return_sequences == 1 &&
        beams.length_penalty == off.length_penalty &&
        beams.early_stopping == off.early_stopping) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "--length_penalty, --early_stopping and --n_best are for beam search: "
        "add --beams N");
  }
  if (sampling.temperature != 0 || sampling.top_k != 0 || sampling.top_p != 1 ||
      sampling.min_p != 0 || sampling.typical_p != 1) {
    return absl::InvalidArgumentError(
        "--beams looks for the most probable text, which --temperature, "
        "--top_k, --top_p, --min_p and --typical_p do not: give only one kind");
  }
  if (!options.request.stop.empty()) {
    return absl::InvalidArgumentError(
        "both --beams and --stop: beams end at end tokens and --max_tokens "
        "only; give only one of them");
  }
  if (beams.num_return_sequences > beams.num_beams) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n_best: expected at most --beams, which is ",
                     beams.num_beams, ", found ", beams.num_return_sequences));
  }
  if (beams.num_return_sequences > 1 && !options.json) {
    return absl::InvalidArgumentError(
        "--n_best lists texts in the JSON object: add --json");
  }
  const absl::Status status = Validate(beams);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", status.message()));
}

}  // namespace

FlagSet GenerateFlags(GenerateOptions* options) {
  FlagSet flags;
  AddInputFlags(options, &flags);
  AddSamplingFlags(options, &flags);
  AddBeamFlags(options, &flags);
  AddEngineFlags(&options->model, &options->engine, &flags);
  flags.Section("What is printed");
  flags.Add({"stats", "", "speeds and sizes, on standard error"},
            &options->stats);
  flags.Add({"json", "",
             "one JSON object: text, ids, logits_hash (SHA-256 of all "
             "logits), speeds, seed and settings; hypotheses of --beams"},
            &options->json);
  return flags;
}

absl::string_view GenerateIntroduction() {
  return R"(Generates text with a Transformer.

Answer one message:
  generate --prompt "Write one sentence about the sea."

The message from a file or a pipe:
  generate --file question.txt
  git diff | generate --system "You review code."

Chat: on a terminal, without a message (/reset starts over, /exit ends):
  generate

Your own model, other tokens every time, reproducible with the seed:
  generate --model model.gguf --prompt "Hello" --temperature 0.8 --top_p 0.95 --seed 1

Continue a text instead of answering it:
  generate --raw --prompt "Once upon a time" --max_tokens 100 --stop "The end"

The most probable answer out of many followed at a time:
  generate --prompt "Name a colour." --beams 5

For programs:
  generate --prompt "Hello" --json
  generate --prompt "Hello" --json --beams 5 --n_best 3

The text is on standard output, all else on standard error. Exit code: 0, 1 for
errors and after Ctrl-C, 2 for wrong usage.
)";
}

absl::Status Check(const GenerateOptions& options,
                   const std::vector<std::string>& positional) {
  if (!positional.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument '", Escaped(positional[0], 80),
                     "': put the whole message in quotes after --prompt"));
  }
  if (options.prompt.has_value() && options.file.has_value()) {
    return absl::InvalidArgumentError(
        "both --prompt and --file: give only one of them");
  }
  if (options.raw && options.system.has_value()) {
    return absl::InvalidArgumentError(
        "--system needs the chat template that --raw turns off: give only one "
        "of them");
  }
  if (options.request.parse_special && !options.raw) {
    return absl::InvalidArgumentError(
        "--special is for --raw only: messages never become control tokens");
  }
  for (const std::string& stop : options.request.stop) {
    if (stop.empty() || !IsValidUtf8(stop)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--stop: expected text in UTF-8, found '", Escaped(stop, 80), "'"));
    }
  }
  LANEWISE_RETURN_IF_ERROR(CheckEngineFlags(options.engine));
  LANEWISE_RETURN_IF_ERROR(CheckBeams(options));
  return CheckSampling(options.request.sampling);
}

}  // namespace lanewise
