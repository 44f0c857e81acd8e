// What every program that runs a model has in common: the flags of the engine,
// and loading it.
#ifndef LANEWISE_TOOLS_ENGINE_SETUP_H_
#define LANEWISE_TOOLS_ENGINE_SETUP_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "tools/cli.h"
#include "tools/flags.h"

namespace lanewise {

// The largest count that a flag takes.
inline constexpr int64_t kMaxCount = 1'000'000'000;

// The help of --model where the default model generates text.
inline constexpr absl::string_view kModelHelp =
    "a GGUF file, or a folder with config.json, safetensors and tokenizer.json "
    "(default: SmolLM2-135M-Instruct)";

// A section of flags. `model` (as typed; empty: the default model) and `engine`
// must outlive the flags, and so must `model_help`.
void AddEngineFlags(std::string* model, EngineOptions* engine, FlagSet* flags,
                    absl::string_view model_help = kModelHelp);

// Those of them that every model minds: --threads, --target, --activations.
void AddComputeFlags(EngineOptions* engine, FlagSet* flags);

// What single flags cannot know.
absl::Status CheckEngineFlags(const EngineOptions& engine);

// Loads the model at `path` (of ModelPath) with a line of progress; prints its
// notices.
absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const Invocation& call,
                                                   const std::string& path,
                                                   EngineOptions options);

// Words of the flags.
absl::string_view Name(ActivationPrecision activations);
absl::string_view Name(CachePrecision cache);
absl::string_view Name(WeightPrecision weights);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_ENGINE_SETUP_H_
