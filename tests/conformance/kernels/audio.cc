// Log-mel spectrograms and their filters.
#include <algorithm>
#include <cmath>
#include <vector>

#include "model/features/log_mel.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

// The recorded spectra are computed in float: their amplitudes are off by 2^-24
// or so of the loudest one, which is much of a quiet one, and shows beyond 1e-5
// in at most one value of a thousand. A feature more by 1 is four decades of
// power.
void CompareFeatures(const KernelCase& c, const std::vector<float>& found,
                     const std::vector<float>& expected, CaseReport* report) {
  if (expected.empty() || found.size() != expected.size()) {
    return AddExact({c.name(), "input_features"}, "another shape", report);
  }
  const double loudest = *std::max_element(expected.begin(), expected.end());
  CompareElements(
      {c.name(), "input_features"}, found, expected,
      [&](size_t i) {
        const double ratio = std::pow(10.0, 2.0 * (loudest - expected[i]));
        return 1e-6 + 0x1p-23 * ratio;
      },
      report);
  size_t noisy = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    noisy += !(std::fabs(double{found[i]} - expected[i]) <= 1e-5);
  }
  AddExact({c.name(), "values beyond 1e-5"},
           noisy <= found.size() / 1000 ? "" : "more than one in a thousand",
           report);
}

}  // namespace

bool CheckAudio(const KernelCase& c, const Context& context,
                CaseReport* report) {
  const bool filters = c.Is("mel_filters_");
  if (!filters && !c.Is("whisper_mel_")) return false;
  LogMelConfig config;
  config.feature_size = c.count("mel_bins");
  if (!filters) config.chunk_length = c.count("chunk_length_s");
  const auto made = LogMel::Create(config);
  if (!made.ok()) {
    AddExact({c.name(), "case"}, made.status().ToString(), report);
    return true;
  }
  if (!filters) {
    const auto found = made->ComputeChunk(c.input("waveform").values);
    if (!found.ok()) {
      AddExact({c.name(), "case"}, found.status().ToString(), report);
      return true;
    }
    CompareFeatures(c, found->values, c.output("input_features").values,
                    report);
    return true;
  }
  const std::vector<double> found = made->DenseFilters();
  const std::vector<float>& expected = c.output("filters").values;
  CompareElements(
      {c.name(), "filters"}, absl::MakeConstSpan(found), expected,
      // Zeros are exact.
      [&](size_t i) { return expected[i] == 0 ? 0.0 : 3e-9; }, report);
  return true;
}

}  // namespace lanewise
