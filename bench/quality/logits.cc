// Logits of every position of a text, as raw little-endian float32 [ids,
// vocab].
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "nlohmann/json.hpp"
#include "simd/status_macros.h"
#include "tools/cli.h"
#include "tools/escaped.h"
#include "tools/flags.h"
#include "tools/output.h"

namespace lanewise {
namespace {

constexpr absl::string_view kIntroduction =
    R"(Writes the logits of every position of a text to a file: raw little-endian
float32, [ids, vocabulary]. Each 512 ids start from an empty cache.

  logits --model model.gguf --ids ids.json --out native.f32
  logits --model model.gguf --ids ids.json --out exact.f32 --activations f32

ids.json is one list of token ids.
)";

constexpr size_t kChunk = 512;

struct Options {
  std::string model, ids, out;
  EngineOptions engine;
};

FlagSet MakeFlags(Options* options) {
  FlagSet flags;
  EngineOptions& engine = options->engine;
  flags.Section("Flags");
  flags.Add({"model", "FILE_OR_FOLDER", "the model"}, &options->model);
  flags.Add({"ids", "FILE", "JSON: a list of token ids"}, &options->ids);
  flags.Add({"out", "FILE", "where the logits go"}, &options->out);
  flags.Add({"threads", "N", "threads (0: all)"}, &engine.threads, 0, 1024);
  flags.Add({"target", "NAME", "instruction set"}, &engine.target);
  flags.Add({"activations", "native|f32", "what activations are"},
            &engine.activations,
            {{"native", ActivationPrecision::kNative},
             {"f32", ActivationPrecision::kF32}});
  flags.Add({"cache", "f16|bf16|f32", "type of keys and values (f16)"},
            &engine.cache,
            {{"f16", CachePrecision::kF16},
             {"bf16", CachePrecision::kBF16},
             {"f32", CachePrecision::kF32}});
  return flags;
}

absl::StatusOr<std::vector<int32_t>> ReadIds(const Invocation& call,
                                             const std::string& file) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(call, file));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto error = [&file] {
    return absl::InvalidArgumentError(
        absl::StrCat(Escaped(file), ": expected a JSON list of token ids"));
  };
  if (!json.is_array()) return error();
  std::vector<int32_t> ids;
  for (const nlohmann::json& id : json) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX) {
      return error();
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

absl::Status WriteLogits(Engine* engine, absl::Span<const int32_t> ids,
                         const std::string& file) {
  std::FILE* out = std::fopen(file.c_str(), "wb");
  if (out == nullptr) return absl::ErrnoToStatus(errno, file);
  absl::Status status;
  while (status.ok() && !ids.empty()) {
    const size_t count = std::min(ids.size(), kChunk);
    absl::StatusOr<std::vector<float>> logits =
        engine->Logits(ids.subspan(0, count));
    status = logits.status();
    if (status.ok() && std::fwrite(logits->data(), sizeof(float),
                                   logits->size(), out) != logits->size()) {
      status = absl::ErrnoToStatus(errno, file);
    }
    ids.remove_prefix(count);
  }
  if (std::fclose(out) != 0 && status.ok()) {
    status = absl::ErrnoToStatus(errno, file);
  }
  if (!status.ok()) std::remove(file.c_str());
  return status;
}

absl::Status Run(const Invocation& call, const Options& options) {
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                            ReadIds(call, options.ids));
  LANEWISE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      Engine::Load(ResolvePath(options.model), options.engine));
  return WriteLogits(engine.get(), ids, ResolvePath(options.out));
}

int Main(const Invocation& call) {
  Options options;
  FlagSet flags = MakeFlags(&options);
  std::vector<std::string> positional;
  absl::Status status = flags.Parse(call.arguments, &positional);
  if (flags.help_requested()) return PrintHelp(call, kIntroduction, flags);
  if (status.ok() && (options.model.empty() || options.ids.empty() ||
                      options.out.empty() || !positional.empty())) {
    status = absl::InvalidArgumentError(
        "expected --model FILE_OR_FOLDER --ids FILE --out FILE");
  }
  if (!status.ok()) return FailUsage(call, status);
  status = Run(call, options);
  return status.ok() ? kExitOk : Fail(call, status);
}

}  // namespace
}  // namespace lanewise

int main(int argc, char** argv) {
  return lanewise::Main(lanewise::MakeInvocation("logits", argc, argv, ""));
}
