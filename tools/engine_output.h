// What the programs that run a model print alike: the fields and the line that
// say how the engine ran, hypotheses of beam search.
#ifndef LANEWISE_TOOLS_ENGINE_OUTPUT_H_
#define LANEWISE_TOOLS_ENGINE_OUTPUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// target, threads, activations, cache, weights, model.
void AddEngineFields(const Engine& engine, const EngineOptions& options,
                     absl::string_view model, nlohmann::ordered_json* json);

nlohmann::ordered_json HypothesesJson(
    const std::vector<Hypothesis>& hypotheses);

// "threads: 2; target: AVX2; weights: 98.1 MB", for --stats.
std::string EngineText(const Engine& engine);

// 0 where no time has passed.
double PerSecond(size_t count, double seconds);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_ENGINE_OUTPUT_H_
