#include "tools/translate_output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/engine_output.h"
#include "tools/json_line.h"

namespace lanewise {
namespace {

void AddTranslation(const Translation& translation,
                    nlohmann::ordered_json* json) {
  (*json)["text"] = translation.text;
  (*json)["ids"] = translation.ids;
  (*json)["logits_hash"] = translation.logits_hash;
  (*json)["finish_reason"] =
      std::string(FinishReasonName(translation.finish_reason));
  (*json)["source_tokens"] = translation.source_tokens;
  if (translation.hypotheses.empty()) return;
  (*json)["hypotheses"] = HypothesesJson(translation.hypotheses);
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
  json["beams"] = run.command.options.beams.num_beams;
  json["seed"] = run.seed;
  AddEngineFields(run.engine, run.command.engine, run.model, &json);
  return JsonLine(json);
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
      "%s\n",
      totals.texts, totals.source_tokens,
      PerSecond(totals.source_tokens, totals.encode_seconds), totals.tokens,
      PerSecond(totals.tokens, totals.decode_seconds), EngineText(engine));
}

}  // namespace lanewise
