#include "tools/score_output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "simd/scalar_math.h"
#include "tools/engine_output.h"
#include "tools/escaped.h"
#include "tools/json_line.h"

namespace lanewise {
namespace {

double Sum(const ScoreResult& result) {
  double sum = 0;
  for (const double value : result.log_probabilities) sum += value;
  return sum;
}

void AddResult(const Engine& engine, const ScoreOptions& options,
               const ScoreResult& result, nlohmann::ordered_json* json) {
  (*json)["tokens"] = result.ids.size();
  (*json)["prompt_tokens"] = result.prompt_tokens;
  (*json)["log_probability"] = Sum(result);
  (*json)["mean_nll"] = result.mean_nll;
  (*json)["perplexity"] = result.perplexity;
  if (!options.tokens) return;
  (*json)["ids"] = result.ids;
  auto& texts = (*json)["spellings"] = nlohmann::ordered_json::array();
  for (const int32_t id : result.ids) texts.push_back(engine.TokenText(id));
  (*json)["log_probabilities"] = result.log_probabilities;
}

}  // namespace

void ScoreTotals::Add(const ScoreResult& result) {
  ++texts;
  tokens += result.ids.size();
  read_tokens +=
      result.prompt_tokens - result.cached_tokens + result.ids.size();
  nll -= Sum(result);
  seconds += result.seconds;
}

std::string SummaryText(const Engine& engine, const ScoreOptions& options,
                        const ScoreResult& result) {
  std::string text;
  if (options.tokens) {
    for (size_t i = 0; i < result.ids.size(); ++i) {
      absl::StrAppendFormat(&text, "%.6f\t%d\t%s\n",
                            result.log_probabilities[i], result.ids[i],
                            Escaped(engine.TokenText(result.ids[i])));
    }
  }
  absl::StrAppendFormat(
      &text, "tokens: %d\nmean negative log-likelihood: %.6f\nperplexity: %g\n",
      result.ids.size(), result.mean_nll, result.perplexity);
  return text;
}

std::string ScoreJson(const Engine& engine, const ScoreOptions& options,
                      const ScoreResult& result, absl::string_view model) {
  nlohmann::ordered_json json;
  AddResult(engine, options, result, &json);
  json["stride"] = options.request.stride;
  json["context"] = engine.context_length();
  json["tokens_per_second"] =
      PerSecond(result.prompt_tokens + result.ids.size(), result.seconds);
  AddEngineFields(engine, options.engine, model, &json);
  return JsonLine(json);
}

std::string LineText(const Engine& engine, const ScoreOptions& options,
                     const ScoredLine& line) {
  if (!options.json) {
    if (line.result == nullptr)
      return absl::StrCat("-\t-\t0\t", line.text, "\n");
    return absl::StrFormat("%.6f\t%g\t%d\t%s\n", line.result->mean_nll,
                           line.result->perplexity, line.result->ids.size(),
                           line.text);
  }
  nlohmann::ordered_json json;
  json["line"] = line.number;
  json["text"] = std::string(line.text);
  if (line.result != nullptr) {
    AddResult(engine, options, *line.result, &json);
  } else if (!line.error.ok()) {
    json["error"] = std::string(line.error.message());
  } else {
    json["tokens"] = 0;
  }
  return JsonLine(json);
}

std::string StatsText(const Engine& engine, const ScoreTotals& totals) {
  const double mean =
      totals.tokens > 0 ? totals.nll / static_cast<double>(totals.tokens) : 0;
  return absl::StrFormat(
      "texts: %d; tokens: %d scored of %d, %.1f tokens/s\n"
      "over all tokens: mean negative log-likelihood %.6f, perplexity %g\n"
      "%s; context: %d tokens\n",
      totals.texts, totals.tokens, totals.read_tokens,
      PerSecond(totals.read_tokens, totals.seconds), mean, Exp(mean),
      EngineText(engine), engine.context_length());
}

}  // namespace lanewise
