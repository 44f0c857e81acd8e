// Which storage type `quantize` gives each tensor.
#ifndef LANEWISE_TOOLS_QUANTIZE_TYPES_H_
#define LANEWISE_TOOLS_QUANTIZE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "simd/types.h"
#include "tools/quantize_source.h"

namespace lanewise {

// "NAME_PATTERN=TYPE"; `*` in the pattern stands for any text.
struct KeepRule {
  std::string pattern;
  DType type;
};

struct TypeOptions {
  DType type = DType::kQ8_0;
  std::vector<KeepRule> keep;  // the first that matches counts
};

struct TypeChoice {
  DType type;
  // The type that was meant, where rows are no whole blocks of it.
  std::optional<DType> wanted;
};

// INVALID_ARGUMENT lists the types.
absl::StatusOr<DType> ParseType(absl::string_view name);
absl::StatusOr<KeepRule> ParseKeepRule(absl::string_view text);

// Whether `name` is of the form of `pattern`.
bool MatchesPattern(absl::string_view pattern, absl::string_view name);

TypeChoice ChooseType(const SourceTensor& tensor, const TypeOptions& options);

// general.file_type: the number that GGUF gives to a file mostly of this type.
uint32_t FileType(DType type);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_QUANTIZE_TYPES_H_
