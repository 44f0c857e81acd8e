#include "tools/translate_options.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"
#include "tools/engine_setup.h"

namespace lanewise {
namespace {

void AddInputFlags(TranslateCommand* command, FlagSet* flags) {
  TranslateRequest& request = command->request;
  flags->Section("What to translate");
  flags->Add(
      {"file", "FILE", "read texts from FILE (-: standard input), one a line"},
      &command->file);
  flags->Add({"source_language", "NAME",
              "of the texts, as the model spells it (en_XX, eng_Latn, __en__) "
              "or in short (en, eng)"},
             &request.source_language);
  flags->Add({"target_language", "NAME", "to translate to, spelled alike"},
             &request.target_language);
  flags->Add({"task", "NAME",
              "one of the tasks in the model's config.json: its prefix before "
              "every text, its settings for what no flag says"},
             &request.task);
  flags->Add({"decoder_prompt", "TEXT",
              "what every translation begins with; not printed"},
             &request.decoder_prompt);
  flags->Add({"special", "", "texts may spell control tokens like </s>"},
             &request.parse_special);
}

void AddSearchFlags(TranslateOptions* options, FlagSet* flags) {
  BeamOptions& beams = options->beams;
  flags->Section("How to search (without a flag: as the model's files say)");
  flags->Add(
      {"beams", "N", "follow the N most probable texts (1: token by token)"},
      &beams.num_beams, 1, BeamOptions::kMaxBeams);
  flags->Add({"n_best", "N", "with --json: list the N best texts"},
             &beams.num_return_sequences, 1, BeamOptions::kMaxBeams);
  flags->Add({"length_penalty", "P",
              "scores of beams are log-probability / length^P: above 0 for "
              "long texts, below 0 for short ones"},
             &beams.length_penalty);
  flags->Add({"early_stopping", "no|yes|never",
              "with N texts finished: go on while the best running one is "
              "better, end at once, or go on while any running one could "
              "become better"},
             &beams.early_stopping,
             {{"no", EarlyStopping::kNo},
              {"yes", EarlyStopping::kYes},
              {"never", EarlyStopping::kNever}});
  flags->Add({"max_tokens", "N", "at most N new tokens a text"},
             &options->max_tokens, 0, kMaxCount);
  flags->Add({"min_tokens", "N", "at least N new tokens a text"},
             &options->sampling.min_new_tokens, 0, kMaxCount);
}

void AddSamplingFlags(SamplingOptions* sampling, FlagSet* flags) {
  flags->Add({"repetition_penalty", "R",
              "divide the scores of tokens chosen before by R (1: off)"},
             &sampling->repetition_penalty);
  flags->Add({"no_repeat_ngram", "N", "no N tokens in a row twice (0: off)"},
             &sampling->no_repeat_ngram, 0, INT32_MAX);
  flags->Add({"temperature", "T",
              "0: the most probable token; 0.7: varied, with one beam"},
             &sampling->temperature);
  flags->Add({"top_k", "K", "only the K most probable tokens (0: all)"},
             &sampling->top_k, 0, INT32_MAX);
  flags->Add({"top_p", "P",
              "only the most probable tokens that make up P together (1: all)"},
             &sampling->top_p);
  flags->Add({"seed", "N",
              "same seed, same text on every machine (default: a new one, "
              "shown by --json)"},
             &sampling->seed);
}

constexpr absl::string_view kTranslateModelHelp =
    "an encoder-decoder: a GGUF file, or a folder with config.json, "
    "safetensors and tokenizer.json (default: a small one that writes how "
    "English words are pronounced)";

// Validate's messages begin with a field.
template <class Options>
absl::Status CheckOptions(const Options& options) {
  const absl::Status status = Validate(options);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--", status.message()));
}

}  // namespace

FlagSet TranslateFlags(TranslateCommand* command) {
  FlagSet flags;
  AddInputFlags(command, &flags);
  AddSearchFlags(&command->options, &flags);
  AddSamplingFlags(&command->options.sampling, &flags);
  AddEngineFlags(&command->model, &command->engine, &flags,
                 kTranslateModelHelp);
  flags.Add({"batch", "N",
             "texts that are computed together (32); changes no result"},
            &command->request.batch, 1, 1 << 16);
  flags.Section("What is printed");
  flags.Add({"json", "",
             "an object a text: text, ids, hypotheses of beams with their "
             "scores, logits_hash (SHA-256 of all logits), settings"},
            &command->json);
  flags.Add({"stats", "", "speeds and sizes, on standard error"},
            &command->stats);
  return flags;
}

absl::string_view TranslateIntroduction() {
  return R"(Makes texts of other texts with an encoder-decoder: translations, summaries.

How is a word pronounced? (the model that comes with this program)
  translate beezley

A model of your own, told the languages:
  translate --model nllb-200 --source-language eng_Latn --target-language deu_Latn "Good morning."

The lines of a file or a pipe, a line each:
  translate --model opus-mt-en-de --file book.txt
  cat book.txt | translate --model opus-mt-en-de

What the model calls a task (T5's prefixes and settings):
  translate --model t5-small --task summarization --file article.txt
  translate --model t5-small --source-language en --target-language de "Good morning."

For programs, with the five best texts and their scores:
  translate --json --beams 5 --n-best 5 beezley

The texts are on standard output in the order of the input, all else on standard
error. An empty line stays one. Exit code: 0, 1 for errors (also of one line;
the others are translated) and after Ctrl-C, 2 for wrong usage. Text after `--`
may begin with a dash.
)";
}

absl::Status Check(const TranslateCommand& command, bool terminal) {
  if (command.file.has_value() && !command.texts.empty()) {
    return absl::InvalidArgumentError(
        "both texts and --file: give only one of them");
  }
  if (command.texts.empty() && !command.file.has_value() && terminal) {
    return absl::InvalidArgumentError(
        "no text: give some as arguments, with --file FILE or by a pipe");
  }
  const BeamOptions& beams = command.options.beams;
  if (beams.num_beams > 1 && command.options.sampling.temperature > 0) {
    return absl::InvalidArgumentError(
        "--beams looks for the most probable text, which --temperature does "
        "not: give only one of them");
  }
  if (beams.num_return_sequences > 1 && !command.json) {
    return absl::InvalidArgumentError(
        "--n_best lists texts in the JSON object: add --json");
  }
  LANEWISE_RETURN_IF_ERROR(CheckOptions(command.options.sampling));
  return CheckEngineFlags(command.engine);
}

absl::StatusOr<TranslateOptions> ApplyFlags(
    absl::Span<const std::string> arguments, const TranslateCommand& command,
    const TranslateOptions& model) {
  const TranslateOptions& given = command.options;
  TranslateCommand merged;
  merged.options = model;
  BeamOptions& beams = merged.options.beams;
  // Whoever asks for beams or for sampling does not mean the model's other one.
  if (given.beams.num_beams > 1) merged.options.sampling.temperature = 0;
  if (given.sampling.temperature > 0) beams.num_beams = 1;
  if (given.beams.num_return_sequences == 1) beams.num_return_sequences = 1;
  FlagSet flags = TranslateFlags(&merged);
  LANEWISE_RETURN_IF_ERROR(flags.Parse(arguments, &merged.texts));
  if (beams.num_return_sequences > beams.num_beams) {
    return absl::InvalidArgumentError(
        absl::StrCat("--n_best: expected at most --beams, which is ",
                     beams.num_beams, ", found ", beams.num_return_sequences));
  }
  LANEWISE_RETURN_IF_ERROR(CheckOptions(beams));
  return merged.options;
}

}  // namespace lanewise
