#include "tools/quantize_types.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "simd/quantize.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

bool IsFloat(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16;
}

// Matrices that are small and decide much: positions, token types, the router
// of experts.
bool StaysF32(absl::string_view name) {
  for (const absl::string_view part :
       {"position_embd", "token_types", "ffn_gate_inp", "_norm"}) {
    if (absl::StrContains(name, part)) return true;
  }
  return false;
}

bool IsEmbeddingOrOutput(absl::string_view name) {
  return name == "token_embd.weight" || name == "output.weight";
}

DType WantedType(const SourceTensor& tensor, const TypeOptions& options) {
  for (const KeepRule& rule : options.keep) {
    if (MatchesPattern(rule.pattern, tensor.name)) return rule.type;
  }
  if (tensor.shape.size() < 2 || StaysF32(tensor.name)) return DType::kF32;
  const bool small = !IsFloat(options.type) && options.type != DType::kQ8_0;
  if (!small || !IsEmbeddingOrOutput(tensor.name)) return options.type;
  return tensor.row() % kSuperblockSize == 0 ? DType::kQ6_K : DType::kQ8_0;
}

}  // namespace

absl::StatusOr<DType> ParseType(absl::string_view name) {
  const std::optional<DType> type = DTypeFromName(name);
  if (type.has_value() && CanEncode(*type)) return *type;
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a type out of F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q4_K, Q4_1, "
      "Q4_0, found \"",
      Escaped(name, 80), "\""));
}

absl::StatusOr<KeepRule> ParseKeepRule(absl::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == absl::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep: expected NAME_PATTERN=TYPE, like "
                     "'blk.*.ffn_down.weight=Q6_K', found \"",
                     Escaped(text, 200), "\""));
  }
  absl::StatusOr<DType> type = ParseType(text.substr(equals + 1));
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep: ", type.status().message()));
  }
  return KeepRule{std::string(text.substr(0, equals)), *type};
}

bool MatchesPattern(absl::string_view pattern, absl::string_view name) {
  // Greedy with one point of return: the last star and what it stands for.
  size_t p = 0, n = 0, star = absl::string_view::npos, stood_for = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      stood_for = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      n = ++stood_for;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

TypeChoice ChooseType(const SourceTensor& tensor, const TypeOptions& options) {
  // Integers that hold no weights stay as they are.
  if (Traits(tensor.type).decode == nullptr) return {tensor.type, {}};
  const DType wanted = WantedType(tensor, options);
  const uint64_t row = tensor.row();
  if (row % Traits(wanted).block_size == 0) return {wanted, {}};
  return {row % kBlockSize == 0 ? DType::kQ8_0 : DType::kF16, wanted};
}

uint32_t FileType(DType type) {
  switch (type) {
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kQ4_K:
      return 14;  // "mostly Q4_K, small"
    case DType::kQ5_K:
      return 16;
    case DType::kQ6_K:
      return 18;
    case DType::kBF16:
      return 32;
    default:
      return 0;
  }
}

}  // namespace lanewise
