#include "tools/translate_output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/engine_setup.h"

namespace lanewise {
namespace {

double PerSecond(size_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void AddTranslation(const Translation& translation,
                    nlohmann::ordered_json* json) {
  (*json)["text"] = translation.text;
  (*json)["ids"] = translation.ids;
  (*json)["logits_hash"] = translation.logits_hash;
  (*json)["finish_reason"] =
      std::string(FinishReasonName(translation.finish_reason));
  (*json)["source_tokens"] = translation.source_tokens;
  if (translation.hypotheses.empty()) return;
  auto& list = (*json)["hypotheses"] = nlohmann::ordered_json::array();
  for (const Hypothesis& hypothesis : translation.hypotheses) {
    nlohmann::ordered_json item;
    item["text"] = hypothesis.text;
    item["ids"] = hypothesis.ids;
    item["log_probability"] = hypothesis.log_probability;
    item["score"] = hypothesis.score;
    item["finish_reason"] =
        std::string(FinishReasonName(hypothesis.finish_reason));
    list.push_back(std::move(item));
  }
}

}  // namespace

std::string TranslationJson(const TranslateRun& run,
                            const TranslatedText& text) {
  nlohmann::ordered_json json;
  json["number"] = text.number;
  json["source"] = std::string(text.source);
  if (!text.error.ok()) {
    json["error"] = std::string(text.error.message());
  } else if (text.translation == nullptr) {
    json["text"] = "";
  } else {
    AddTranslation(*text.translation, &json);
  }
  const EngineOptions& engine = run.command.engine;
  json["beams"] = run.command.options.beams.num_beams;
  json["seed"] = run.seed;
  json["target"] = std::string(run.engine.target());
  json["threads"] = run.engine.threads();
  json["activations"] = std::string(Name(engine.activations));
  json["cache"] = std::string(Name(engine.cache));
  json["weights"] = std::string(Name(engine.weights));
  json["model"] = run.model;
  return absl::StrCat(
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
      "\n");
}

void TranslateTotals::Add(const TranslateResult& result) {
  for (const Translation& translation : result.translations) {
    ++texts;
    source_tokens += translation.source_tokens;
    tokens += translation.ids.size();
  }
  encode_seconds += result.encode_seconds;
  decode_seconds += result.decode_seconds;
}

std::string StatsText(const Engine& engine, const TranslateTotals& totals) {
  return absl::StrFormat(
      "texts: %d; source: %d tokens, %.1f tokens/s\n"
      "translations: %d tokens, %.1f tokens/s\n"
      "threads: %d; target: %s; weights: %.1f MB\n",
      totals.texts, totals.source_tokens,
      PerSecond(totals.source_tokens, totals.encode_seconds), totals.tokens,
      PerSecond(totals.tokens, totals.decode_seconds), engine.threads(),
      engine.target(), static_cast<double>(engine.weight_bytes()) / 1e6);
}

}  // namespace lanewise
