#include "tools/quantize.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "model/format/checkpoint.h"
#include "model/format/gguf_writer.h"
#include "simd/context.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/quantize_convert.h"
#include "tools/quantize_source.h"
#include "tools/quantize_types.h"

namespace lanewise {
namespace {

constexpr absl::string_view kIntroduction =
    R"(Writes a model's weights in another type, as a GGUF file.

  quantize --model ~/models/SmolLM2-135M --out smol-q4.gguf --type Q4_K
  quantize --model big-f16.gguf --out big-q8.gguf --type Q8_0
  quantize --model m.gguf --out n.gguf --type Q4_K --keep '*.ffn_down.*=Q6_K'

The model is a GGUF file (also split) or a Hugging Face folder of an
architecture that GGUF has; a folder's configuration and tokenizer are written
too. The report has a line for each tensor: its type before and after, its
size, the root mean squared error relative to that of the values, and the
largest error.

Types, smallest first, with bits a value: Q4_0 and Q4_K 4.5, Q4_1 5, Q5_K 5.5,
Q6_K 6.6, Q8_0 8.5, F16 and BF16 16, F32 32. What does not get the type asked
for:
  - vectors (norms, biases), position embeddings and routers of experts: F32
  - token embedding and output matrix with Q4_0, Q4_1, Q4_K, Q5_K or Q6_K:
    Q6_K, or Q8_0 when their rows are no multiple of 256 values
  - rows that are no whole blocks (256 values for the _K types, 32 for Q8_0,
    Q4_0 and Q4_1): Q8_0, or F16 when they are no multiple of 32; a note says so
A tensor that has its new type already is copied as it is.

The output appears under its name only once it is whole. Exit codes: 0 done,
1 failed, 2 wrong usage.
)";

struct Options {
  std::string model;
  std::string out;
  std::string type;
  std::vector<std::string> keep;
  bool no_tokenizer = false;
  size_t threads = 0;
};

FlagSet Flags(Options* options) {
  FlagSet flags;
  flags.Section("Flags");
  flags.Add({"model", "PATH", "the GGUF file or folder to read"},
            &options->model);
  flags.Add({"out", "FILE.gguf",
             "the file to write; one that is there is "
             "replaced"},
            &options->out);
  flags.Add({"type", "TYPE",
             "the type of the weights: F32, F16, BF16, Q8_0, "
             "Q6_K, Q5_K, Q4_K, Q4_1 or Q4_0"},
            &options->type);
  flags.Add({"keep", "PATTERN=TYPE",
             "the type of the tensors whose GGUF names match, where * stands "
             "for any text; may be repeated, the first that matches counts"},
            &options->keep);
  flags.Add({"no_tokenizer", "",
             "from a folder: write no vocabulary, for models whose tokenizer "
             "GGUF cannot express"},
            &options->no_tokenizer);
  flags.Add({"threads", "N", "threads to use; 0: as many as there are cores"},
            &options->threads, 0, Context::kMaxThreads);
  return flags;
}

absl::StatusOr<TypeOptions> ReadTypes(const Options& options) {
  const std::pair<const char*, const std::string*> required[] = {
      {"--model PATH", &options.model},
      {"--out FILE.gguf", &options.out},
      {"--type TYPE", &options.type}};
  for (const auto& [flag, value] : required) {
    if (value->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected ", flag,
                       ": quantize --model m.gguf --out new.gguf --type Q4_K"));
    }
  }
  TypeOptions types;
  absl::StatusOr<DType> type = ParseType(options.type);
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--type: ", type.status().message()));
  }
  types.type = *type;
  for (const std::string& text : options.keep) {
    LANEWISE_ASSIGN_OR_RETURN(KeepRule rule, ParseKeepRule(text));
    types.keep.push_back(std::move(rule));
  }
  return types;
}

std::string ShapeText(const SourceTensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape, ", "), "]");
}

class Program {
 public:
  Program(const Invocation& call, const Options& options, TypeOptions types)
      : call_(call), options_(options), types_(std::move(types)) {}

  absl::Status Run() {
    LANEWISE_ASSIGN_OR_RETURN(checkpoint_,
                              Checkpoint::Open(ResolvePath(options_.model)));
    SourceOptions source;
    source.tokenizer = !options_.no_tokenizer;
    LANEWISE_ASSIGN_OR_RETURN(source_,
                              MakeQuantizeSource(*checkpoint_, source));
    for (const std::string& notice : source_->notices()) NoteThat(notice);
    LANEWISE_RETURN_IF_ERROR(Choose());
    LANEWISE_RETURN_IF_ERROR(Convert());
    Report();
    return absl::OkStatus();
  }

 private:
  void NoteThat(absl::string_view text) {
    Note(call_, absl::StrCat("note: ", text));
  }

  absl::Status Choose() {
    std::map<std::string, std::pair<size_t, std::string>> fallbacks;
    size_t decoded = 0;
    std::vector<bool> matched(types_.keep.size());
    for (const SourceTensor& tensor : source_->tensors()) {
      const TypeChoice choice = ChooseType(tensor, types_);
      choices_.push_back(choice.type);
      if (Traits(tensor.type).block_size > 1 && choice.type != tensor.type) {
        ++decoded;
      }
      for (size_t i = 0; i < matched.size(); ++i) {
        if (MatchesPattern(types_.keep[i].pattern, tensor.name)) {
          matched[i] = true;
          break;
        }
      }
      if (!choice.wanted.has_value()) continue;
      const DTypeTraits& wanted = Traits(*choice.wanted);
      auto& [count, first] = fallbacks[absl::StrCat(
          "rows of ", tensor.row(), " values are no multiple of ",
          wanted.block_size, ", the block of ", wanted.name, ": written as ",
          Traits(choice.type).name)];
      if (count++ == 0) first = Escaped(tensor.name, 200);
    }
    for (const auto& [text, tensors] : fallbacks) {
      NoteThat(absl::StrCat(text, " (", tensors.first, " tensors, the first ",
                            tensors.second, ")"));
    }
    if (decoded > 0) {
      NoteThat(absl::StrCat(decoded,
                            " tensors are quantized already; what that lost "
                            "stays lost, so start from F16 or F32 where there "
                            "is such a file"));
    }
    for (size_t i = 0; i < matched.size(); ++i) {
      if (matched[i]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--keep: no tensor is named like \"",
          Escaped(types_.keep[i].pattern, 200),
          "\" or an earlier pattern takes all that are: `inspect` lists the "
          "names of a GGUF file"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<GgufWriter>> OpenOutput() const {
    const Metadata& from = source_->metadata();
    Metadata metadata(from.file());
    // The numbers of the type stand with the other general keys.
    const auto insert_type = [&] {
      metadata.Insert("general.file_type",
                      static_cast<int64_t>(FileType(types_.type)),
                      MetadataType::kUint32);
      metadata.Insert("general.quantization_version", int64_t{2},
                      MetadataType::kUint32);
    };
    for (const std::string& key : from.keys()) {
      metadata.Insert(key, *from.Find(key), from.TypeOf(key));
      if (key == "general.architecture") insert_type();
    }
    insert_type();  // nothing when they are there
    std::vector<GgufTensor> tensors;
    for (size_t i = 0; i < choices_.size(); ++i) {
      const SourceTensor& tensor = source_->tensors()[i];
      tensors.push_back({tensor.name, choices_[i], tensor.shape});
    }
    return GgufWriter::Create(ResolvePath(options_.out), metadata,
                              std::move(tensors));
  }

  absl::Status Convert() {
    Context::Options context_options;
    context_options.threads = options_.threads;
    LANEWISE_ASSIGN_OR_RETURN(const std::unique_ptr<Context> context,
                              Context::Create(context_options));
    uint64_t total = 0, done = 0;
    for (const SourceTensor& tensor : source_->tensors()) {
      total += tensor.elements();
    }
    const InterruptScope interrupt;
    LANEWISE_ASSIGN_OR_RETURN(const std::unique_ptr<GgufWriter> writer,
                              OpenOutput());
    ProgressLine progress(call_.io.err, "millions of values:");
    ConvertOptions convert;
    convert.progress = [&](uint64_t elements) -> absl::Status {
      progress.Update((done + elements) / 1'000'000, total / 1'000'000);
      if (!interrupt.requested()) return absl::OkStatus();
      return absl::CancelledError("interrupted; nothing was written");
    };
    for (size_t i = 0; i < choices_.size(); ++i) {
      absl::StatusOr<ConvertedTensor> tensor = ConvertTensor(
          *source_, i, choices_[i], *context, convert, writer.get());
      if (!tensor.ok()) {
        if (!absl::IsInvalidArgument(tensor.status())) return tensor.status();
        return absl::InvalidArgumentError(
            absl::StrCat(checkpoint_->path(), ": ", tensor.status().message()));
      }
      done += source_->tensors()[i].elements();
      converted_.push_back(*std::move(tensor));
    }
    LANEWISE_RETURN_IF_ERROR(writer->Finish());
    file_bytes_ = writer->file_bytes();
    return absl::OkStatus();
  }

  void Report() {
    std::string text =
        absl::StrFormat("%-36s %-18s %-7s %-5s %12s %10s %10s\n", "tensor",
                        "shape", "from", "to", "bytes", "rel. RMS", "largest");
    RoundTripError error;
    uint64_t elements = 0, before = 0, after = 0;
    for (size_t i = 0; i < converted_.size(); ++i) {
      const SourceTensor& tensor = source_->tensors()[i];
      const ConvertedTensor& converted = converted_[i];
      absl::StrAppendFormat(&text, "%-36s %-18s %-7s %-5s %12d %10.3g %10.3g\n",
                            Escaped(tensor.name, 200), ShapeText(tensor),
                            Traits(tensor.type).name, Traits(choices_[i]).name,
                            converted.bytes, converted.error.RelativeRms(),
                            converted.error.largest);
      if (converted.cut > 0) {
        NoteThat(absl::StrCat(
            Escaped(tensor.name, 200), ": ", converted.cut,
            " values beyond 65504, the largest of F16, were stored as that: "
            "BF16 has room for them"));
      }
      error.Add(converted.error);
      elements += tensor.elements();
      before += BytesOf(tensor.type, tensor.elements());
      after += converted.bytes;
    }
    const double bits = elements == 0 ? 0.0
                                      : 8.0 * static_cast<double>(after) /
                                            static_cast<double>(elements);
    absl::StrAppendFormat(
        &text,
        "total: %d tensors, %d values, %d bytes before, %d after (%.2f bits a "
        "value), relative RMS error %.3g, largest %.3g\n%s: %d bytes\n",
        converted_.size(), elements, before, after, bits, error.RelativeRms(),
        error.largest, Escaped(options_.out), file_bytes_);
    Output(call_.io.out).Write(text);
  }

  const Invocation& call_;
  const Options& options_;
  const TypeOptions types_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<QuantizeSource> source_;
  std::vector<DType> choices_;  // of each tensor
  std::vector<ConvertedTensor> converted_;
  uint64_t file_bytes_ = 0;
};

}  // namespace

int QuantizeModel(const Invocation& call) {
  Options options;
  FlagSet flags = Flags(&options);
  std::vector<std::string> positional;
  absl::Status status = flags.Parse(call.arguments, &positional);
  if (flags.help_requested()) return PrintHelp(call, kIntroduction, flags);
  if (status.ok() && !positional.empty()) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "expected flags only, found \"", Escaped(positional.front(), 200),
        "\": quantize --model m.gguf --out new.gguf --type Q4_K"));
  }
  if (!status.ok()) return FailUsage(call, status);
  absl::StatusOr<TypeOptions> types = ReadTypes(options);
  if (!types.ok()) return FailUsage(call, types.status());
  status = Program(call, options, *std::move(types)).Run();
  return status.ok() ? kExitOk : Fail(call, status);
}

}  // namespace lanewise
