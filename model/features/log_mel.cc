#include "model/features/log_mel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "simd/scalar_math.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;
constexpr double kLog10 = 2.30258509299404568402;  // natural, of 10
constexpr double kHighestFrequency = 8000.0;       // of the filters

// Slaney's mel scale: linear below 1000 Hz, which is 15 mel, and logarithmic
// above, 27 steps from 1000 Hz to 6400 Hz.
double MelOfHertz(double hertz) {
  if (hertz < 1000.0) return hertz * 3.0 / 200.0;
  return 15.0 + Log(hertz / 1000.0) * (27.0 / Log(6.4));
}

double HertzOfMel(double mel) {
  if (mel < 15.0) return mel * 200.0 / 3.0;
  return 1000.0 * Exp((mel - 15.0) * (Log(6.4) / 27.0));
}

// Index of the sample that stands at i in the mirrored signal of `length`
// samples, of which neither end is repeated.
size_t Mirrored(int64_t i, size_t length) {
  if (length == 1) return 0;
  const int64_t last = static_cast<int64_t>(length) - 1;
  i = (i < 0 ? -i : i) % (2 * last);
  return static_cast<size_t>(i <= last ? i : 2 * last - i);
}

absl::Status CheckRange(absl::string_view field, uint64_t value, uint64_t min,
                        uint64_t max) {
  if (min <= value && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected an integer from ", min, " to ", max,
                   ", found ", value));
}

absl::Status Check(const LogMelConfig& config) {
  LANEWISE_RETURN_IF_ERROR(
      CheckRange("feature_size", config.feature_size, 1, kMaxMelBands));
  LANEWISE_RETURN_IF_ERROR(CheckRange("sampling_rate", config.sampling_rate,
                                      2 * uint64_t{8000}, kMaxSamplingRate));
  LANEWISE_RETURN_IF_ERROR(
      CheckRange("n_fft", config.n_fft, 2, kMaxFrameSamples));
  if (!RealFft::Supports(config.n_fft)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "n_fft: expected an even product of 2, 3 and 5, found ", config.n_fft));
  }
  LANEWISE_RETURN_IF_ERROR(
      CheckRange("hop_length", config.hop_length, 1, config.n_fft));
  LANEWISE_RETURN_IF_ERROR(
      CheckRange("chunk_length", config.chunk_length, 1, kMaxChunkSeconds));
  const uint64_t frames =
      uint64_t{config.chunk_length} * config.sampling_rate / config.hop_length;
  const uint64_t work = frames * std::max(config.n_fft, config.feature_size);
  if (work > kMaxFramesSamples) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk_length: expected at most ", kMaxFramesSamples,
                     " samples in the frames of a chunk, found ", work, " (",
                     frames, " frames every ", config.hop_length, " samples)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LogMelConfig> ReadLogMelConfig(const nlohmann::json& config,
                                              absl::string_view file) {
  LogMelConfig out;
  const auto read = [&](absl::string_view key, uint64_t max,
                        size_t* value) -> absl::Status {
    LANEWISE_ASSIGN_OR_RETURN(*value,
                              GetUintOr(config, file, key, max, *value, 1));
    return absl::OkStatus();
  };
  LANEWISE_RETURN_IF_ERROR(
      read("feature_size", kMaxMelBands, &out.feature_size));
  LANEWISE_RETURN_IF_ERROR(
      read("sampling_rate", kMaxSamplingRate, &out.sampling_rate));
  LANEWISE_RETURN_IF_ERROR(
      read("hop_length", kMaxFrameSamples, &out.hop_length));
  LANEWISE_RETURN_IF_ERROR(
      read("chunk_length", kMaxChunkSeconds, &out.chunk_length));
  LANEWISE_RETURN_IF_ERROR(read("n_fft", kMaxFrameSamples, &out.n_fft));
  for (const absl::string_view key : {"dither", "padding_value"}) {
    LANEWISE_ASSIGN_OR_RETURN(const double value,
                              GetFloatOr(config, file, key, 0.0));
    if (value != 0.0) {
      return absl::UnimplementedError(
          absl::StrCat(file, ": ", key, ": expected 0, found ", value));
    }
  }
  LANEWISE_ASSIGN_OR_RETURN(const bool normalize,
                            GetBoolOr(config, file, "do_normalize", false));
  if (normalize) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": do_normalize: expected false, found true"));
  }
  const absl::Status status = Check(out);
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(file, ": ", status.message()));
  }
  return out;
}

absl::StatusOr<LogMel> LogMel::Create(const LogMelConfig& config) {
  LANEWISE_RETURN_IF_ERROR(Check(config));
  return LogMel(config);
}

LogMel::LogMel(const LogMelConfig& config)
    : config_(config), fft_(config.n_fft), window_(config.n_fft) {
  const double n = static_cast<double>(config.n_fft);
  for (size_t i = 0; i < config.n_fft; ++i) {
    window_[i] = 0.5 - 0.5 * Cos(kTwoPi * static_cast<double>(i) / n);
  }
  const double highest = MelOfHertz(kHighestFrequency);
  const auto corner = [&](size_t i) {
    return HertzOfMel(highest * static_cast<double>(i) /
                      static_cast<double>(config.feature_size + 1));
  };
  const double bin_width = static_cast<double>(config.sampling_rate) / n;
  filters_.resize(config.feature_size);
  for (size_t m = 0; m < filters_.size(); ++m) {
    const double low = corner(m), peak = corner(m + 1), high = corner(m + 2);
    Filter& filter = filters_[m];
    for (size_t bin = 0; bin < fft_.bins(); ++bin) {
      const double hertz = static_cast<double>(bin) * bin_width;
      const double height = std::min((hertz - low) / (peak - low),
                                     (high - hertz) / (high - peak));
      if (!(height > 0.0)) continue;
      if (filter.weights.empty()) filter.first = bin;
      filter.weights.push_back(height * (2.0 / (high - low)));
    }
  }
}

std::vector<double> LogMel::DenseFilters() const {
  std::vector<double> dense(filters_.size() * fft_.bins());
  for (size_t m = 0; m < filters_.size(); ++m) {
    std::copy(filters_[m].weights.begin(), filters_[m].weights.end(),
              dense.data() + m * fft_.bins() + filters_[m].first);
  }
  return dense;
}

void LogMel::LoadFrame(absl::Span<const float> samples, size_t length,
                       size_t frame, double* out) const {
  const int64_t begin = static_cast<int64_t>(frame * config_.hop_length) -
                        static_cast<int64_t>(config_.n_fft / 2);
  for (size_t i = 0; i < config_.n_fft; ++i) {
    const size_t at = Mirrored(begin + static_cast<int64_t>(i), length);
    out[i] = at < samples.size() ? samples[at] * window_[i] : 0.0;
  }
}

absl::StatusOr<Spectrogram> LogMel::ComputePadded(
    absl::Span<const float> samples, size_t length) const {
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sample ", i, ": expected a finite number, found ", samples[i]));
    }
  }
  Spectrogram out;
  out.mel_bins = filters_.size();
  out.frames = length / config_.hop_length;
  out.values.resize(out.mel_bins * out.frames);
  std::vector<double> frame(config_.n_fft), power(fft_.bins());
  std::vector<double> scratch(fft_.scratch_size());
  float largest = -std::numeric_limits<float>::infinity();
  for (size_t t = 0; t < out.frames; ++t) {
    LoadFrame(samples, length, t, frame.data());
    fft_.Power(frame.data(), power.data(), scratch.data());
    for (size_t m = 0; m < out.mel_bins; ++m) {
      const Filter& filter = filters_[m];
      double energy = 0.0;
      for (size_t i = 0; i < filter.weights.size(); ++i) {
        energy += filter.weights[i] * power[filter.first + i];
      }
      const float log =
          static_cast<float>(Log(std::max(energy, 1e-10)) / kLog10);
      largest = std::max(largest, log);
      out.values[m * out.frames + t] = log;
    }
  }
  for (float& value : out.values) {
    value = (std::max(value, largest - 8.0f) + 4.0f) / 4.0f;
  }
  return out;
}

absl::StatusOr<Spectrogram> LogMel::ComputeChunk(
    absl::Span<const float> samples) const {
  if (samples.size() > chunk_samples()) {
    return absl::InvalidArgumentError(
        absl::StrCat("audio: expected at most ", chunk_samples(), " samples (",
                     config_.chunk_length, " s), found ", samples.size()));
  }
  return ComputePadded(samples, chunk_samples());
}

absl::StatusOr<Spectrogram> LogMel::Compute(
    absl::Span<const float> samples) const {
  const uint64_t frames =
      kMaxFramesSamples / std::max(config_.n_fft, config_.feature_size);
  const uint64_t limit = frames * config_.hop_length;
  if (samples.size() > limit) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "audio: expected at most ", limit, " samples, found ", samples.size()));
  }
  return ComputePadded(samples, samples.size());
}

}  // namespace lanewise
