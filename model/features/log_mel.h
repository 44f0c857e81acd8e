// Log-mel spectrograms of audio, the input of Whisper (Radford et al.,
// arXiv:2212.04356, section 2.2, and the reference's feature extractor).
//
//   LANEWISE_ASSIGN_OR_RETURN(LogMelConfig config,
//                             ReadLogMelConfig(json,
//                             "preprocessor_config.json"));
//   LANEWISE_ASSIGN_OR_RETURN(LogMel log_mel, LogMel::Create(config));
//   LANEWISE_ASSIGN_OR_RETURN(WavAudio audio,
//                             ReadWav("a.wav", config.sampling_rate));
//   LANEWISE_ASSIGN_OR_RETURN(Spectrogram features,
//                             log_mel.ComputeChunk(audio.samples));
//
// All in double and without libm, so the same bits everywhere. 30 s of audio
// take about 50 ms on one thread.
#ifndef LANEWISE_MODEL_FEATURES_LOG_MEL_H_
#define LANEWISE_MODEL_FEATURES_LOG_MEL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/features/fft.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// The fields of preprocessor_config.json, with the reference's defaults.
struct LogMelConfig {
  size_t feature_size = 80;  // mel bands
  size_t sampling_rate = 16000;
  size_t hop_length = 160;   // samples from frame to frame
  size_t chunk_length = 30;  // seconds
  size_t n_fft = 400;        // samples in a frame
};

// Upper limits of the fields; n_fft also has to be an even product of 2, 3 and
// 5, hop_length at most n_fft.
inline constexpr uint64_t kMaxMelBands = 1024;
inline constexpr uint64_t kMaxSamplingRate = 192000;
inline constexpr uint64_t kMaxChunkSeconds = 3600;
inline constexpr uint64_t kMaxFrameSamples = 8192;
// Samples in all frames of one spectrogram together: 100 chunks of Whisper's.
inline constexpr uint64_t kMaxFramesSamples = uint64_t{1} << 27;

// Errors name the field. Also for what the spectrogram here has not: dither and
// normalization of the samples. A field "mel_filters", as older files have, is
// not read: the filters follow from the other fields.
absl::StatusOr<LogMelConfig> ReadLogMelConfig(const nlohmann::json& config,
                                              absl::string_view file);

// [mel_bins, frames].
struct Spectrogram {
  size_t mel_bins = 0;
  size_t frames = 0;
  std::vector<float> values;
};

// Frames of n_fft samples, centred at multiples of hop_length (at the ends the
// signal is mirrored), times a Hann window; power spectra; mel bands; log10 of
// at least 1e-10; at least the largest value less 8; (x + 4) / 4.
class LogMel {
 public:
  // INVALID_ARGUMENT for a field out of its range, by name.
  static absl::StatusOr<LogMel> Create(const LogMelConfig& config);

  const LogMelConfig& config() const { return config_; }
  size_t chunk_samples() const {
    return config_.chunk_length * config_.sampling_rate;
  }
  size_t chunk_frames() const { return chunk_samples() / config_.hop_length; }

  // Spectrogram of a chunk, [feature_size, chunk_frames()]: samples in [−1, 1],
  // then silence. INVALID_ARGUMENT for more samples than a chunk has, and for
  // one that is not finite.
  absl::StatusOr<Spectrogram> ComputeChunk(
      absl::Span<const float> samples) const;

  // The same without silence: samples.size() / hop_length frames; of fewer
  // samples than that no frame. (Whisper itself only knows whole chunks.)
  absl::StatusOr<Spectrogram> Compute(absl::Span<const float> samples) const;

  // Triangular filters, equidistant on the mel scale of Slaney's Auditory
  // Toolbox (1998) from 0 to 8000 Hz, each of area 1: row m is filter m,
  // [feature_size, n_fft / 2 + 1].
  std::vector<double> DenseFilters() const;

 private:
  // What a filter lets through: bins first, first + 1, ….
  struct Filter {
    size_t first = 0;
    std::vector<double> weights;
  };

  explicit LogMel(const LogMelConfig& config);
  absl::StatusOr<Spectrogram> ComputePadded(absl::Span<const float> samples,
                                            size_t length) const;
  void LoadFrame(absl::Span<const float> samples, size_t length, size_t frame,
                 double* out) const;

  LogMelConfig config_;
  RealFft fft_;
  std::vector<double> window_;   // [n_fft]
  std::vector<Filter> filters_;  // [feature_size]
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FEATURES_LOG_MEL_H_
