#include "tools/inspect.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "simd/types.h"
#include "tools/escaped.h"
#include "tools/inspect_attention.h"
#include "tools/model_summary.h"
#include "tools/output.h"

namespace lanewise {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kIntroduction =
    R"(Shows what is in a model's files, without running it.

  inspect model.gguf
  inspect ~/models/SmolLM2-135M-Instruct
  inspect --spec model.gguf        the network as this library runs it
  inspect --json model.gguf
  inspect --attention "The cat sat." --layers 0,5 model.gguf

With --attention the model is run on the text, and what its layers attend to is
written as attention.npy and attention.html (a heat map to open in a browser).

Works for models that this library cannot run too. Text out of the files is
printed with control characters escaped.
)";

// Bytes of one value of the metadata that are shown.
constexpr size_t kMaxValue = 200;

struct Options {
  bool spec = false;
  bool json = false;
  std::optional<std::string> attention;
  std::string layers;
  std::string heads;
  std::string output = "attention";
};

std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false,
                   nlohmann::json::error_handler_t::replace);
}

std::string ValueText(const Json& value) {
  if (value.is_string()) {
    return Escaped(value.get_ref<const std::string&>(), kMaxValue);
  }
  if (value.is_object() && value.size() == 2 && value.contains("first") &&
      value.contains("length")) {
    return absl::StrCat(ValueText(value["first"]), " ... ",
                        Dump(value["length"]), " values");
  }
  return OneLine(Dump(value), kMaxValue);
}

std::string ShapeText(const Tensor& tensor) {
  return absl::StrCat("[", absl::StrJoin(tensor.shape, ", "), "]");
}

std::string Text(const Checkpoint& checkpoint, const ModelSummary& summary) {
  std::string text = absl::StrCat(
      "file: ", Escaped(checkpoint.path()), "\nkind: ", summary.kind,
      "\narchitecture: ",
      summary.architecture.empty() ? "(the file names none)"
                                   : Escaped(summary.architecture, kMaxValue),
      "\nruns here: ",
      summary.supported.ok()
          ? "yes"
          : absl::StrCat("no: ", OneLine(summary.supported.message())),
      "\nparameters: ", summary.parameters,
      "\nbytes of tensors: ", summary.bytes, "\n");
  if (!summary.files.empty()) {
    absl::StrAppend(&text, "files: ", absl::StrJoin(summary.files, ", "), "\n");
  }
  absl::StrAppend(&text, "\nmetadata: ", summary.metadata.size(), "\n");
  for (const auto& [key, value] : summary.metadata) {
    absl::StrAppend(&text, "  ", Escaped(key, kMaxValue), " = ",
                    ValueText(value), "\n");
  }
  absl::StrAppend(&text, "\ntensors: ", checkpoint.tensors().size(), "\n");
  for (const Tensor& tensor : checkpoint.tensors()) {
    absl::StrAppendFormat(
        &text, "  %-40s %-6s %-16s %12d\n", Escaped(tensor.name, kMaxValue),
        Traits(tensor.type).name, ShapeText(tensor), tensor.data.size());
  }
  for (const UnsupportedTensor& tensor : checkpoint.unsupported()) {
    absl::StrAppendFormat(&text, "  %-40s %s (not supported)\n",
                          Escaped(tensor.name, kMaxValue),
                          Escaped(tensor.type, kMaxValue));
  }
  absl::StrAppend(&text, "\ntypes:\n");
  for (const TypeTotal& total : summary.totals) {
    absl::StrAppendFormat(&text, "  %-6s %6d tensors %14d values %14d bytes\n",
                          total.type, total.tensors, total.elements,
                          total.bytes);
  }
  return text;
}

std::string JsonText(const Checkpoint& checkpoint,
                     const ModelSummary& summary) {
  Json json;
  json["path"] = checkpoint.path();
  json["kind"] = summary.kind;
  json["architecture"] = summary.architecture;
  json["supported"] = summary.supported.ok();
  if (!summary.supported.ok()) {
    json["reason"] = std::string(summary.supported.message());
  }
  json["parameters"] = summary.parameters;
  json["bytes"] = summary.bytes;
  json["files"] = summary.files;
  Json& metadata = json["metadata"] = Json::object();
  for (const auto& [key, value] : summary.metadata) metadata[key] = value;
  Json& tensors = json["tensors"] = Json::array();
  for (const Tensor& tensor : checkpoint.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"type", std::string(Traits(tensor.type).name)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.data.size()}});
  }
  Json& unsupported = json["unsupported_tensors"] = Json::array();
  for (const UnsupportedTensor& tensor : checkpoint.unsupported()) {
    unsupported.push_back({{"name", tensor.name}, {"type", tensor.type}});
  }
  Json& types = json["types"] = Json::object();
  for (const TypeTotal& total : summary.totals) {
    types[total.type] = {{"tensors", total.tensors},
                         {"values", total.elements},
                         {"bytes", total.bytes}};
  }
  if (!summary.spec.empty()) json["spec"] = summary.spec;
  return absl::StrCat(Dump(json), "\n");
}

int RunAttention(const Invocation& call, const Options& options,
                 const std::string& path) {
  const absl::StatusOr<std::string> written =
      WriteAttention({path, *options.attention, options.layers, options.heads,
                      ResolvePath(options.output)});
  if (!written.ok()) return Fail(call, written.status());
  Output out(call.io.out);
  out.Write(*written);
  return out.status().ok() ? kExitOk : Fail(call, out.status());
}

int Run(const Invocation& call, const Options& options,
        const std::string& path) {
  absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint =
      Checkpoint::Open(path);
  if (!checkpoint.ok()) return Fail(call, checkpoint.status());
  const ModelSummary summary = Summarize(**checkpoint);
  Output out(call.io.out);
  if (options.json) {
    out.Write(JsonText(**checkpoint, summary));
  } else if (!options.spec) {
    out.Write(Text(**checkpoint, summary));
  } else if (!summary.spec.empty()) {
    out.Write(summary.spec);
    out.EndLine();
  } else {
    return Fail(call, summary.supported);
  }
  return out.status().ok() ? kExitOk : Fail(call, out.status());
}

}  // namespace

int Inspect(const Invocation& call) {
  Options options;
  FlagSet flags;
  flags.Section("Flags");
  flags.Add({"spec", "", "the network as this library runs it, and no more"},
            &options.spec);
  flags.Add({"json", "", "one JSON object with all of it"}, &options.json);
  flags.Section("Flags of --attention");
  flags.Add({"attention", "TEXT", "write what layers attend to in TEXT"},
            &options.attention);
  flags.Add({"layers", "N,N", "these layers, from 0; all without it"},
            &options.layers);
  flags.Add({"heads", "N,N", "these heads, from 0; all without it"},
            &options.heads);
  flags.Add({"output", "NAME", "write NAME.npy and NAME.html (attention)"},
            &options.output);
  std::vector<std::string> positional;
  absl::Status status = flags.Parse(call.arguments, &positional);
  if (flags.help_requested()) return PrintHelp(call, kIntroduction, flags);
  if (status.ok() && options.spec && options.json) {
    status = absl::InvalidArgumentError(
        "both --spec and --json: --json has the spec in it, give only one");
  }
  if (status.ok() && options.attention.has_value() &&
      (options.spec || options.json)) {
    status = absl::InvalidArgumentError(
        "--attention with --spec or --json: give only one");
  }
  if (status.ok() && positional.size() != 1) {
    status = absl::InvalidArgumentError(
        absl::StrCat("expected one file or folder, found ", positional.size(),
                     " arguments: inspect model.gguf"));
  }
  if (!status.ok()) return FailUsage(call, status);
  const std::string path = ResolvePath(positional[0]);
  return options.attention.has_value() ? RunAttention(call, options, path)
                                       : Run(call, options, path);
}

}  // namespace lanewise
