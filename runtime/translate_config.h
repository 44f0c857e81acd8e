// What a checkpoint says of how its encoder-decoder generates: defaults, and
// the tasks it offers by name.
#ifndef LANEWISE_RUNTIME_TRANSLATE_CONFIG_H_
#define LANEWISE_RUNTIME_TRANSLATE_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lanewise/translation.h"
#include "model/format/checkpoint.h"
#include "runtime/special_tokens.h"

namespace lanewise {

struct TranslateTask {
  std::string name;    // "translation_en_to_de"
  std::string prefix;  // "translate English to German: "
  TranslateOptions options;
};

struct TranslateConfig {
  // end_ids is set; start_id unless nothing tells it.
  TranslateOptions defaults;
  std::vector<TranslateTask> tasks;  // by name, ascending
  // Settings that change results elsewhere and are ignored here; one line each.
  std::vector<std::string> notices;

  const TranslateTask* FindTask(absl::string_view name) const;  // or null
};

// Folder: generation_config.json, in older ones config.json, whose
// task_specific_params are the tasks. GGUF: <architecture>.
// decoder_start_token_id. Lengths that count the start token (max_length,
// min_length) are turned into numbers of new tokens. Without a start token the
// beginning of sequence is it, as in the reference.
absl::StatusOr<TranslateConfig> ReadTranslateConfig(
    const Checkpoint& checkpoint, const SpecialTokens& special);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_TRANSLATE_CONFIG_H_
