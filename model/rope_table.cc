#include "model/rope_table.h"

#include <algorithm>
#include <cmath>

#include "simd/scalar_math.h"

namespace lanewise {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

// Llama 3.1: long wavelengths are slowed by the factor, short ones stay, and
// those between are blended.
float ScaleLlama3(const RopeSpec& spec, float frequency) {
  const double original = static_cast<double>(spec.original_positions);
  const double wavelength = kTwoPi / frequency;
  if (wavelength < original / spec.high_freq_factor) return frequency;
  const float slowed = static_cast<float>(frequency / spec.factor);
  if (wavelength > original / spec.low_freq_factor) return slowed;
  const double smooth = (original / wavelength - spec.low_freq_factor) /
                        (spec.high_freq_factor - spec.low_freq_factor);
  return static_cast<float>((1.0 - smooth) * frequency / spec.factor +
                            smooth * frequency);
}

// YaRN (Peng et al., arXiv:2309.00071, eq. 17-23): the dimension whose
// wavelength makes `rotations` turns within the original context.
double YarnDimension(const RopeSpec& spec, double rotations) {
  const double original = static_cast<double>(spec.original_positions);
  return static_cast<double>(spec.rotary_dim) *
         Log(original / (rotations * kTwoPi)) / (2.0 * Log(spec.theta));
}

void ScaleYarn(const RopeSpec& spec, std::vector<float>* frequencies) {
  double low = YarnDimension(spec, spec.beta_fast);
  double high = YarnDimension(spec, spec.beta_slow);
  if (spec.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(spec.rotary_dim) - 1.0);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies->size(); ++i) {
    const double ramp =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double frequency = (*frequencies)[i];
    (*frequencies)[i] = static_cast<float>(frequency / spec.factor * ramp +
                                           frequency * (1.0 - ramp));
  }
}

}  // namespace

RopeTable::RopeTable(const RopeSpec& spec)
    : inverse_frequencies_(spec.rotary_dim / 2),
      attention_factor_(static_cast<float>(spec.attention_factor)) {
  for (size_t i = 0; i < inverse_frequencies_.size(); ++i) {
    const double exponent =
        static_cast<double>(2 * i) / static_cast<double>(spec.rotary_dim);
    float frequency = static_cast<float>(1.0 / Pow(spec.theta, exponent));
    if (spec.scaling == RopeSpec::Scaling::kLinear) {
      frequency = static_cast<float>(frequency / spec.factor);
    } else if (spec.scaling == RopeSpec::Scaling::kLlama3) {
      frequency = ScaleLlama3(spec, frequency);
    }
    inverse_frequencies_[i] = frequency;
  }
  if (spec.scaling == RopeSpec::Scaling::kYarn) {
    ScaleYarn(spec, &inverse_frequencies_);
  }
  for (size_t i = 0;
       i < spec.frequency_factors.size() && i < inverse_frequencies_.size();
       ++i) {
    inverse_frequencies_[i] /= spec.frequency_factors[i];
  }
}

void RopeTable::Fill(size_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < inverse_frequencies_.size(); ++i) {
    const float angle = static_cast<float>(position) * inverse_frequencies_[i];
    cos[i] = static_cast<float>(Cos(angle)) * attention_factor_;
    sin[i] = static_cast<float>(Sin(angle)) * attention_factor_;
  }
}

}  // namespace lanewise
