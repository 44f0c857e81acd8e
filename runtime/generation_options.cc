#include "runtime/generation_options.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class Value>
absl::Status Error(absl::string_view field, absl::string_view expected,
                   const Value& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", expected, ", found ", found));
}

// lowest <= value <= highest; false for NaN.
bool Between(double value, double lowest, double highest) {
  return lowest <= value && value <= highest;
}

absl::Status ValidateFilters(const SamplingOptions& options) {
  if (!Between(options.temperature, 0, kInfinity) ||
      options.temperature == kInfinity) {
    return Error("temperature", "a finite number, at least 0",
                 options.temperature);
  }
  if (options.top_k < 0) {
    return Error("top_k", "at least 0 (0 is off)", options.top_k);
  }
  if (!Between(options.top_p, 0, 1)) {
    return Error("top_p", "0 to 1", options.top_p);
  }
  if (!Between(options.min_p, 0, 1)) {
    return Error("min_p", "0 to 1", options.min_p);
  }
  if (!Between(options.typical_p, 0, 1) || options.typical_p == 0) {
    return Error("typical_p", "more than 0, at most 1", options.typical_p);
  }
  if (!Between(options.epsilon_cutoff, 0, 1) || options.epsilon_cutoff == 1) {
    return Error("epsilon_cutoff", "at least 0, less than 1",
                 options.epsilon_cutoff);
  }
  return absl::OkStatus();
}

absl::Status ValidatePenalties(const SamplingOptions& options) {
  if (!std::isfinite(options.repetition_penalty) ||
      options.repetition_penalty <= 0) {
    return Error("repetition_penalty", "a finite number, more than 0",
                 options.repetition_penalty);
  }
  if (!std::isfinite(options.presence_penalty)) {
    return Error("presence_penalty", "a finite number",
                 options.presence_penalty);
  }
  if (!std::isfinite(options.frequency_penalty)) {
    return Error("frequency_penalty", "a finite number",
                 options.frequency_penalty);
  }
  if (options.no_repeat_ngram < 0) {
    return Error("no_repeat_ngram", "at least 0 (0 is off)",
                 options.no_repeat_ngram);
  }
  if (options.min_new_tokens < 0) {
    return Error("min_new_tokens", "at least 0", options.min_new_tokens);
  }
  return absl::OkStatus();
}

absl::Status ValidateId(absl::string_view field, int32_t id) {
  if (id < 0) return Error(field, "an id, at least 0", id);
  return absl::OkStatus();
}

absl::Status ValidateIds(absl::string_view field,
                         const std::vector<int32_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(
        ValidateId(absl::StrCat(field, "[", i, "]"), ids[i]));
  }
  return absl::OkStatus();
}

absl::Status ValidateBias(const std::vector<LogitBias>& entries) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string field = absl::StrCat("logit_bias[", i, "]");
    LANEWISE_RETURN_IF_ERROR(
        ValidateId(absl::StrCat(field, ".id"), entries[i].id));
    if (!std::isfinite(entries[i].bias)) {
      return Error(absl::StrCat(field, ".bias"), "a finite number",
                   entries[i].bias);
    }
    ids.push_back(entries[i].id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) {
    return Error("logit_bias", "distinct ids", absl::StrCat(*twice, " twice"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Validate(const SamplingOptions& options) {
  LANEWISE_RETURN_IF_ERROR(ValidateFilters(options));
  LANEWISE_RETURN_IF_ERROR(ValidatePenalties(options));
  LANEWISE_RETURN_IF_ERROR(ValidateBias(options.logit_bias));
  LANEWISE_RETURN_IF_ERROR(
      ValidateIds("suppressed_ids", options.suppressed_ids));
  LANEWISE_RETURN_IF_ERROR(
      ValidateIds("begin_suppressed_ids", options.begin_suppressed_ids));
  for (size_t i = 0; i < options.bad_words.size(); ++i) {
    const std::string field = absl::StrCat("bad_words[", i, "]");
    if (options.bad_words[i].empty()) {
      return Error(field, "at least one id", "none");
    }
    LANEWISE_RETURN_IF_ERROR(ValidateIds(field, options.bad_words[i]));
  }
  if (options.forced_first_id.has_value()) {
    LANEWISE_RETURN_IF_ERROR(
        ValidateId("forced_first_id", *options.forced_first_id));
  }
  if (options.forced_last_id.has_value()) {
    LANEWISE_RETURN_IF_ERROR(
        ValidateId("forced_last_id", *options.forced_last_id));
  }
  return absl::OkStatus();
}

}  // namespace lanewise
