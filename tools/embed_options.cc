#include "tools/embed_options.h"

#include "tools/engine_setup.h"

namespace lanewise {
namespace {

void AddVectorFlags(EmbedOptions* options, FlagSet* flags) {
  EmbedRequest& request = options->request;
  flags->Section("How a text becomes a vector");
  flags->Add({"pooling", "WHICH",
              "model (as its files say; default), first, last, mean, max, "
              "mean_sqrt_length or weighted_mean of its tokens' rows"},
             &request.pooling,
             {{"model", EmbedPooling::kModel},
              {"first", EmbedPooling::kFirst},
              {"last", EmbedPooling::kLast},
              {"mean", EmbedPooling::kMean},
              {"max", EmbedPooling::kMax},
              {"mean_sqrt_length", EmbedPooling::kMeanSqrtLength},
              {"weighted_mean", EmbedPooling::kWeightedMean}});
  flags->Add({"normalize", "model|yes|no",
              "scale vectors to length one (model: as its files say)"},
             &request.normalize,
             {{"model", std::optional<bool>()}, {"yes", true}, {"no", false}});
  flags->Add(
      {"dimensions", "N", "only the first N values, before scaling (0: all)"},
      &request.dimensions, 0, kMaxCount);
  flags->Add({"prompt", "TEXT", "put TEXT before every text"}, &request.prompt);
  flags->Add({"prompt_name", "NAME",
              "put one of the model's own prompts before every text"},
             &request.prompt_name);
  AddBatchFlags(&options->no_truncate, &request.batch_tokens, flags);
}

}  // namespace

FlagSet EmbedFlags(EmbedOptions* options) {
  FlagSet flags;
  flags.Section("What to embed");
  AddTextFlags(&options->input, &flags);
  AddVectorFlags(options, &flags);
  flags.Section("The model and how it runs");
  flags.Add({"model", "FILE_OR_FOLDER",
             "a GGUF file, or a folder with config.json, safetensors and "
             "tokenizer.json (default: all-MiniLM-L6-v2)"},
            &options->model);
  AddComputeFlags(&options->engine, &flags);
  flags.Section("What is printed");
  flags.Add({"similarity", "",
             "instead of vectors the cosine of each text with every text"},
            &options->similarity);
  flags.Add({"format", "text|jsonl|npy",
             "text: a line of numbers a text (default); jsonl: an object a "
             "text; npy: an array for NumPy"},
            &options->format,
            {{"text", EmbedFormat::kText},
             {"jsonl", EmbedFormat::kJsonl},
             {"npy", EmbedFormat::kNpy}});
  flags.Add({"out", "FILE",
             "write to FILE, which appears once it is whole, instead of "
             "standard output"},
            &options->out);
  flags.Add({"stats", "", "speeds and sizes, on standard error"},
            &options->stats);
  return flags;
}

absl::string_view EmbedIntroduction() {
  return R"(Turns texts into vectors that are close when the texts mean the same.

How alike are these?
  embed --similarity "A cat sits outside." "A feline is in the garden." "Rust never sleeps."

A vector for each line of a file, as an array for NumPy:
  embed --file sentences.txt --format npy --out vectors.npy

For programs (one object a text: text, tokens, embedding):
  cat questions.txt | embed --format jsonl --prompt_name query

Shorter vectors of a model that was trained for them:
  embed --model nomic-embed --dimensions 256 "A cat sits outside."

A line without text has a vector too, so that line and vector keep their
numbers. With --similarity a line has the cosines with all texts, then the text,
between tabs.

Exit code: 0, 1 for errors and after Ctrl-C, 2 for wrong usage. Text after `--`
may begin with a dash.
)";
}

absl::Status Check(const EmbedOptions& options, bool terminal_in,
                   bool terminal_out) {
  if (absl::Status status = Check(options.input, terminal_in); !status.ok()) {
    return status;
  }
  if (options.request.prompt.has_value() &&
      !options.request.prompt_name.empty()) {
    return absl::InvalidArgumentError(
        "both --prompt and --prompt_name: give only one of them");
  }
  if (options.format == EmbedFormat::kNpy && !options.out.has_value() &&
      terminal_out) {
    return absl::InvalidArgumentError(
        "--format npy is not for a terminal: add --out FILE or a pipe");
  }
  return CheckEngineFlags(options.engine);
}

}  // namespace lanewise
