#include "tools/classify_options.h"

#include "tools/engine_setup.h"

namespace lanewise {
namespace {

void AddTaskFlags(ClassifyOptions* options, FlagSet* flags) {
  ClassifyRequest& request = options->request;
  flags->Section("What to classify");
  AddTextFlags(&options->input, flags);
  flags->Add({"pair", "TEXT", "the second text of a pair, beside each text"},
             &options->pair);
  flags->Add({"question", "TEXT", "answer this from each text"},
             &options->question);
  flags->Add({"mask", "MARK",
              "what stands for a missing word (default: the model's own, like "
              "[MASK])"},
             &request.mask);
  flags->Section("How to read the model");
  flags->Add({"top_k", "N", "the N best labels (0: all), words or answers (5)"},
             &request.top_k, 0, kMaxCount);
  flags->Add({"scores", "model|softmax|sigmoid|logits",
              "scores of labels (model: as its files say)"},
             &request.scores,
             {{"model", LabelScores::kModel},
              {"softmax", LabelScores::kSoftmax},
              {"sigmoid", LabelScores::kSigmoid},
              {"logits", LabelScores::kLogits}});
  flags->Add({"aggregation", "none|simple|first",
              "how tokens become entities: each alone, neighbours with one "
              "label (default), or whole words by their first token"},
             &request.aggregation,
             {{"none", Aggregation::kNone},
              {"simple", Aggregation::kSimple},
              {"first", Aggregation::kFirst}});
  flags->Add({"tokens", "", "short for --aggregation none"}, &options->tokens);
  flags->Add({"max_answer_tokens", "N", "longest answer (15)"},
             &request.max_answer_tokens, 1, kMaxCount);
  AddBatchFlags(&options->no_truncate, &request.batch_tokens, flags);
}

}  // namespace

FlagSet ClassifyFlags(ClassifyOptions* options) {
  FlagSet flags;
  AddTaskFlags(options, &flags);
  flags.Section("The model and how it runs");
  flags.Add({"model", "FOLDER",
             "a folder with config.json, safetensors and tokenizer.json, of a "
             "model with a head for labels, masked words or answers"},
            &options->model);
  AddComputeFlags(&options->engine, &flags);
  flags.Section("What is printed");
  flags.Add({"json", "", "one JSON object a text"}, &options->json);
  flags.Add({"stats", "", "speeds and sizes, on standard error"},
            &options->stats);
  return flags;
}

absl::string_view ClassifyIntroduction() {
  return R"(Labels texts with a model that was trained for it. What comes out depends on the
model's head.

Labels of texts, of pairs of texts:
  classify --model sentiment "I like this." "I do not."
  classify --model nli --pair "Somebody eats." "A man eats pizza."

Names and places in each line of a file:
  classify --model ner --file letters.txt --json

Missing words:
  classify --model bert-base-uncased --mask ___ "Paris is the ___ of France."

An answer out of a text:
  classify --model squad --question "Who wrote it?" --whole --file story.txt

A line has a score, then the label, word or answer (entities and answers: their
bytes in the text, as BEGIN-END, before), then, with several texts, the number of
the text, from 0; between tabs.

Exit code: 0, 1 for errors and after Ctrl-C, 2 for wrong usage. Text after `--`
may begin with a dash.
)";
}

absl::Status Check(const ClassifyOptions& options, bool terminal) {
  if (absl::Status status = Check(options.input, terminal); !status.ok()) {
    return status;
  }
  if (options.pair.has_value() && options.question.has_value()) {
    return absl::InvalidArgumentError(
        "both --pair and --question: give only one of them");
  }
  return CheckEngineFlags(options.engine);
}

}  // namespace lanewise
