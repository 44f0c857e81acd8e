// Filters of the sampler and logits processors.
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "runtime/sampler.h"
#include "runtime/sampler_processors.h"
#include "simd/status_macros.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

// Fails on a parameter this function does not know.
absl::StatusOr<SamplingOptions> Options(const KernelCase& c) {
  SamplingOptions options;
  options.temperature = 1.0;
  options.seed = 1;
  const std::map<std::string, double SamplingOptions::*> numbers = {
      {"temperature", &SamplingOptions::temperature},
      {"top_p", &SamplingOptions::top_p},
      {"min_p", &SamplingOptions::min_p},
      {"typical_p", &SamplingOptions::typical_p},
      {"epsilon_cutoff", &SamplingOptions::epsilon_cutoff},
      {"repetition_penalty", &SamplingOptions::repetition_penalty},
  };
  for (const auto& [key, value] : c.params().items()) {
    if (key == "top_k") {
      options.top_k = static_cast<int32_t>(c.count("top_k"));
    } else if (key == "no_repeat_ngram_size") {
      options.no_repeat_ngram = static_cast<int32_t>(c.count(key.c_str()));
    } else if (const auto field = numbers.find(key); field != numbers.end()) {
      options.*field->second = c.number(key.c_str());
    } else {
      return absl::UnimplementedError(
          absl::StrCat("parameter ", key, " is not supported"));
    }
  }
  return options;
}

// Probabilities of all ids after the filters, and which are kept.
absl::Status CheckFilters(const KernelCase& c, const Context& context,
                          CaseReport* report) {
  const KernelArray& logits = c.input("logits");
  const KernelArray& kept = c.output("kept");
  LANEWISE_ASSIGN_OR_RETURN(const SamplingOptions options, Options(c));
  LANEWISE_ASSIGN_OR_RETURN(const Sampler sampler,
                            Sampler::Create(options, {logits.width, {}}));
  SamplerScratch scratch(logits.width);
  std::vector<double> found(logits.values.size(), 0.0), largest;
  std::vector<float> found_kept(logits.values.size(), 0.0f);
  for (size_t row = 0; row < logits.rows(); ++row) {
    LANEWISE_ASSIGN_OR_RETURN(
        const auto tokens,
        sampler.Distribution(context.target(),
                             {{logits.row(row), logits.width}, {}}, scratch));
    for (const TokenProbability& token : tokens) {
      const size_t at = row * logits.width + static_cast<size_t>(token.id);
      found[at] = token.probability;
      found_kept[at] = 1.0f;
    }
    largest.push_back(tokens.front().probability);
  }
  CompareElements(
      {c.name(), "probs"}, absl::MakeConstSpan(found), c.output("probs").values,
      [&](size_t i) { return 1e-5 * largest[i / logits.width]; }, report);
  CompareBits({c.name(), "kept"}, found_kept, kept.values, report);
  return absl::OkStatus();
}

absl::Status CheckProcessors(const KernelCase& c, CaseReport* report) {
  const KernelArray& logits = c.input("logits");
  const KernelArray& ids = c.input("input_ids");
  LANEWISE_ASSIGN_OR_RETURN(const SamplingOptions options, Options(c));
  LANEWISE_ASSIGN_OR_RETURN(
      const LogitsProcessors processors,
      LogitsProcessors::Create(options, logits.width, {}));
  IdCounts counts(logits.width);
  std::vector<float> scores = logits.values;
  for (size_t row = 0; row < logits.rows(); ++row) {
    const std::vector<int32_t> history(ids.row(row), ids.row(row) + ids.width);
    processors.Apply(
        {history, history.size()},
        absl::MakeSpan(scores).subspan(row * logits.width, logits.width),
        counts);
  }
  const std::vector<float>& processed = c.output("processed").values;
  if (!processed.empty()) {
    // Four units in the last place.
    CompareElements(
        {c.name(), "processed"}, scores, processed,
        [&](size_t i) { return std::abs(processed[i]) * 0x1p-22; }, report);
    return absl::OkStatus();
  }
  // Bans: what is allowed keeps its logit, the rest has none.
  std::vector<float> allowed;
  for (size_t i = 0; i < scores.size(); ++i) {
    allowed.push_back(scores[i] == logits.values[i] ? 1.0f
                      : std::isinf(scores[i])       ? 0.0f
                                                    : -1.0f);
  }
  CompareBits({c.name(), "processed_allowed"}, allowed,
              c.output("processed_allowed").values, report);
  return absl::OkStatus();
}

}  // namespace

bool CheckSampling(const KernelCase& c, const Context& context,
                   CaseReport* report) {
  const absl::Status status = c.output("probs").empty()
                                  ? CheckProcessors(c, report)
                                  : CheckFilters(c, context, report);
  if (!status.ok()) AddExact({c.name(), "case"}, status.ToString(), report);
  return true;
}

}  // namespace lanewise
