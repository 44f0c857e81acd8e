// What `translate` prints.
#ifndef LANEWISE_TOOLS_TRANSLATE_OUTPUT_H_
#define LANEWISE_TOOLS_TRANSLATE_OUTPUT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lanewise/engine.h"
#include "tools/translate_options.h"

namespace lanewise {

struct TranslatedText {
  size_t number;  // from 1 on
  absl::string_view source;
  const Translation* translation;  // null: empty line, or an error
  absl::Status error;
};

// What all texts of a run have in common, for --json.
struct TranslateRun {
  const Engine& engine;
  const TranslateCommand& command;
  std::string model;
  uint64_t seed = 0;
};

// --json: one object and a newline.
std::string TranslationJson(const TranslateRun& run,
                            const TranslatedText& text);

struct TranslateTotals {
  size_t texts = 0;
  size_t source_tokens = 0;
  size_t tokens = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;

  void Add(const TranslateResult& result);
};

// --stats: lines for standard error.
std::string StatsText(const Engine& engine, const TranslateTotals& totals);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_TRANSLATE_OUTPUT_H_
