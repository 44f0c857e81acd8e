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

// 1 / theta^(2i / rotary_dim), rounded to float.
float Frequency(const RopeSpec& spec, double theta, size_t i) {
  const double exponent =
      static_cast<double>(2 * i) / static_cast<double>(spec.rotary_dim);
  return static_cast<float>(1.0 / Pow(theta, exponent));
}

void Divide(const std::vector<float>& factors,
            std::vector<float>* frequencies) {
  for (size_t i = 0; i < factors.size() && i < frequencies->size(); ++i) {
    (*frequencies)[i] /= factors[i];
  }
}

// Dynamic NTK: the base with which the longest wavelength of `length` positions
// is that of the original ones.
double DynamicTheta(const RopeSpec& spec, size_t length) {
  const double stretch = spec.factor * static_cast<double>(length) /
                             static_cast<double>(spec.original_positions) -
                         (spec.factor - 1.0);
  const double dim = static_cast<double>(spec.rotary_dim);
  return spec.theta * Pow(stretch, dim / (dim - 2.0));
}

}  // namespace

RopeTable::RopeTable(const RopeSpec& spec)
    : spec_(spec), frequencies_(spec.rotary_dim / 2) {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    float& frequency = frequencies_[i];
    frequency = Frequency(spec, spec.theta, i);
    if (spec.scaling == RopeSpec::Scaling::kLinear) {
      frequency = static_cast<float>(frequency / spec.factor);
    } else if (spec.scaling == RopeSpec::Scaling::kLlama3) {
      frequency = ScaleLlama3(spec, frequency);
    }
  }
  if (spec.scaling == RopeSpec::Scaling::kYarn) {
    ScaleYarn(spec, &frequencies_);
  }
  Divide(spec.frequency_factors, &frequencies_);
  if (spec.scaling == RopeSpec::Scaling::kLongrope) {
    long_frequencies_ = frequencies_;
    Divide(spec.long_factors, &long_frequencies_);
    Divide(spec.short_factors, &frequencies_);
  }
}

absl::Span<const float> RopeTable::Frequencies(size_t length,
                                               float* scratch) const {
  if (length <= spec_.original_positions) return frequencies_;
  if (spec_.scaling == RopeSpec::Scaling::kLongrope) return long_frequencies_;
  if (spec_.scaling != RopeSpec::Scaling::kDynamic) return frequencies_;
  const double theta = DynamicTheta(spec_, length);
  for (size_t i = 0; i < half(); ++i) scratch[i] = Frequency(spec_, theta, i);
  return absl::MakeConstSpan(scratch, half());
}

void RopeTable::Fill(absl::Span<const float> frequencies, size_t position,
                     float* cos, float* sin) const {
  const float factor = static_cast<float>(spec_.attention_factor);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const float angle = static_cast<float>(position) * frequencies[i];
    cos[i] = static_cast<float>(Cos(angle)) * factor;
    sin[i] = static_cast<float>(Sin(angle)) * factor;
  }
}

}  // namespace lanewise
