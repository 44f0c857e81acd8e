#include "tools/score_options.h"

#include "absl/strings/str_cat.h"
#include "tools/engine_setup.h"
#include "tools/escaped.h"

namespace lanewise {

FlagSet ScoreFlags(ScoreOptions* options) {
  ScoreRequest& request = options->request;
  FlagSet flags;
  flags.Section("What to score");
  flags.Add({"file", "FILE",
             "read the text from FILE (-: standard input), less one newline at "
             "its end"},
            &options->file);
  flags.Add({"lines", "", "each line is a text of its own"}, &options->lines);
  flags.Add({"prompt", "TEXT",
             "what stands before the text (each text): read, not scored"},
            &request.prompt);
  flags.Add({"stride", "N",
             "score a text that is longer than the context in windows that "
             "begin every N tokens; each scores what no earlier one did (0: "
             "such a text is an error)"},
            &request.stride, 0, kMaxCount);
  flags.Add({"special", "",
             "text and prompt may spell control tokens like <|im_end|>"},
            &request.parse_special);
  AddEngineFlags(&options->model, &options->engine, &flags);
  flags.Section("What is printed");
  flags.Add({"tokens", "",
             "each scored token before the sums: its log-probability, its id "
             "and how it is spelled"},
            &options->tokens);
  flags.Add({"json", "",
             "one JSON object, with --lines one a line; arrays of the tokens "
             "with --tokens"},
            &options->json);
  flags.Add({"stats", "", "speeds and totals, on standard error"},
            &options->stats);
  return flags;
}

absl::string_view ScoreIntroduction() {
  return R"(Tells how probable a model finds a text.

Perplexity of a text, a file, a pipe:
  score "The cat sat on the mat."
  score --file book.txt --stride 512
  git log -1 --format=%B | score --model model.gguf

Which answer is the most probable one:
  printf ' Paris.\n Lyon.\n' | score --lines --prompt "The capital of France is"

Each token's log-probability:
  score --tokens "The cat sat on the mat."

For programs (one object; with --lines one a line):
  score --json --tokens "The cat sat."
  score --json --lines --file sentences.txt

Printed are the number of scored tokens, their mean negative log-likelihood in
nats, and the perplexity: e to the power of it. With --lines a line for each:
mean, perplexity, tokens, text, between tabs; "-" for an empty line. The first
token of all is only scored when the tokenizer puts one before it.

Exit code: 0, 1 for errors (also of one line; the others are scored) and after
Ctrl-C, 2 for wrong usage. Text after `--` may begin with a dash.
)";
}

absl::Status Check(const ScoreOptions& options, bool terminal) {
  if (options.text.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument '", Escaped(options.text[1], 80),
                     "': put the whole text in quotes"));
  }
  if (options.file.has_value() && !options.text.empty()) {
    return absl::InvalidArgumentError(
        "both a text and --file: give only one of them");
  }
  if (options.text.empty() && !options.file.has_value() && terminal) {
    return absl::InvalidArgumentError(
        "no text: give one as an argument, with --file FILE or by a pipe");
  }
  if (options.lines && options.tokens && !options.json) {
    return absl::InvalidArgumentError(
        "--tokens with --lines needs --json: a line of text has no room for "
        "them");
  }
  return CheckEngineFlags(options.engine);
}

}  // namespace lanewise
