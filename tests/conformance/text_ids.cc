#include "tests/conformance/text_ids.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lanewise {

void CompareTextIds(const Tokenizer& tokenizer, const TextRun& text,
                    CaseReport* report) {
  EncodeOptions options;
  options.parse_special_tokens = true;
  std::vector<int32_t> types;
  const absl::StatusOr<std::vector<int32_t>> ids =
      text.pair.has_value()
          ? tokenizer.EncodePair(text.text, *text.pair, options, &types)
          : tokenizer.Encode(text.text, options);
  if (!ids.ok()) {
    return AddExact({text.name, "input_ids"}, ids.status().ToString(), report);
  }
  CompareIds({text.name, "input_ids"}, *ids, text.input_ids, report);
  if (text.type_ids.empty()) return;
  if (!text.pair.has_value()) types.assign(ids->size(), 0);
  CompareIds({text.name, "token_type_ids"}, types, text.type_ids, report);
}

}  // namespace lanewise
