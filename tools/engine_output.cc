#include "tools/engine_output.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "tools/engine_setup.h"

namespace lanewise {

void AddEngineFields(const Engine& engine, const EngineOptions& options,
                     absl::string_view model, nlohmann::ordered_json* json) {
  (*json)["target"] = std::string(engine.target());
  (*json)["threads"] = engine.threads();
  (*json)["activations"] = std::string(Name(options.activations));
  (*json)["cache"] = std::string(Name(options.cache));
  (*json)["weights"] = std::string(Name(options.weights));
  (*json)["model"] = std::string(model);
}

nlohmann::ordered_json HypothesesJson(
    const std::vector<Hypothesis>& hypotheses) {
  auto list = nlohmann::ordered_json::array();
  for (const Hypothesis& hypothesis : hypotheses) {
    nlohmann::ordered_json json;
    json["text"] = hypothesis.text;
    json["ids"] = hypothesis.ids;
    json["log_probability"] = hypothesis.log_probability;
    json["score"] = hypothesis.score;
    json["finish_reason"] =
        std::string(FinishReasonName(hypothesis.finish_reason));
    list.push_back(std::move(json));
  }
  return list;
}

std::string EngineText(const Engine& engine) {
  return absl::StrFormat("threads: %d; target: %s; weights: %.1f MB",
                         engine.threads(), engine.target(),
                         static_cast<double>(engine.weight_bytes()) / 1e6);
}

double PerSecond(size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace lanewise
