#include "tools/engine_setup.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"
#include "tools/output.h"

namespace lanewise {
namespace {

constexpr std::array<std::pair<absl::string_view, WeightPrecision>, 7>
    kWeights = {{{"stored", WeightPrecision::kAsStored},
                 {"bf16", WeightPrecision::kBF16},
                 {"q8_0", WeightPrecision::kQ8_0},
                 {"q6_k", WeightPrecision::kQ6_K},
                 {"q4_k", WeightPrecision::kQ4_K},
                 {"q4_1", WeightPrecision::kQ4_1},
                 {"q4_0", WeightPrecision::kQ4_0}}};

}  // namespace

void AddEngineFlags(std::string* model, EngineOptions* engine, FlagSet* flags,
                    absl::string_view model_help) {
  flags->Section("The model and how it runs");
  flags->Add({"model", "FILE_OR_FOLDER", model_help}, model);
  AddComputeFlags(engine, flags);
  flags->Add({"weights", "TYPE",
              "make float matrices bf16, q8_0, q6_k, q4_k, q4_1 or q4_0 while "
              "loading (default: stored, as they are in the file)"},
             &engine->weights, {kWeights.begin(), kWeights.end()});
  flags->Add({"cache", "f16|bf16|f32", "type of cached keys and values (f16)"},
             &engine->cache,
             {{"f16", CachePrecision::kF16},
              {"bf16", CachePrecision::kBF16},
              {"f32", CachePrecision::kF32}});
  flags->Add({"context", "N", "longest sequence (0: the model's own)"},
             &engine->context_length, 0, kMaxCount);
  flags->Add(
      {"prefill_chunk", "N", "prompt tokens that are computed together (512)"},
      &engine->prefill_chunk, 1, kMaxCount);
}

void AddComputeFlags(EngineOptions* engine, FlagSet* flags) {
  flags->Add({"threads", "N", "threads (0: as many as this process may use)"},
             &engine->threads, 0, 1024);
  flags->Add(
      {"target", "NAME", "instruction set, e.g. AVX2 (default: the best here)"},
      &engine->target);
  flags->Add({"activations", "native|f32",
              "f32: exact activations with quantized weights, slower"},
             &engine->activations,
             {{"native", ActivationPrecision::kNative},
              {"f32", ActivationPrecision::kF32}});
}

absl::Status CheckEngineFlags(const EngineOptions& engine) {
  const std::vector<std::string> targets = AvailableTargets();
  const bool known = std::any_of(
      targets.begin(), targets.end(), [&engine](const std::string& name) {
        return absl::EqualsIgnoreCase(name, engine.target);
      });
  if (engine.target.empty() || known) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--target: expected one of ", absl::StrJoin(targets, ", "),
                   ", found '", Escaped(engine.target, 80), "'"));
}

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const Invocation& call,
                                                   const std::string& path,
                                                   EngineOptions options) {
  ProgressLine progress(call.io.err, "loading the model: layers");
  options.load_progress = [&progress](size_t done, size_t total) {
    progress.Update(done, total);
  };
  LANEWISE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::Load(path, options));
  progress.Clear();
  for (const std::string& notice : engine->notices()) {
    Note(call, absl::StrCat("note: ", notice));
  }
  return engine;
}

absl::string_view Name(ActivationPrecision activations) {
  return activations == ActivationPrecision::kF32 ? "f32" : "native";
}

absl::string_view Name(CachePrecision cache) {
  switch (cache) {
    case CachePrecision::kF32:
      return "f32";
    case CachePrecision::kBF16:
      return "bf16";
    case CachePrecision::kF16:
      break;
  }
  return "f16";
}

absl::string_view Name(WeightPrecision weights) {
  for (const auto& [name, value] : kWeights) {
    if (value == weights) return name;
  }
  return "?";
}

}  // namespace lanewise
