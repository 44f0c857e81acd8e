// Spectrograms against their definition, and the fields of
// preprocessor_config.json. Against recorded values:
// //tests/conformance/kernels.
#include "model/features/log_mel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

using nlohmann::json;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

LogMel Make(const LogMelConfig& config) {
  absl::StatusOr<LogMel> made = LogMel::Create(config);
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

LogMelConfig SmallConfig() {
  LogMelConfig config;
  config.feature_size = 7;
  config.n_fft = 30;
  config.hop_length = 11;
  config.chunk_length = 1;
  return config;
}

// The definition, one frame at a time, with the standard library's functions.
std::vector<double> Reference(const LogMel& log_mel,
                              const std::vector<float>& signal) {
  const LogMelConfig& config = log_mel.config();
  const size_t n = config.n_fft, bins = n / 2 + 1;
  const size_t frames = signal.size() / config.hop_length;
  const std::vector<double> filters = log_mel.DenseFilters();
  std::vector<double> out(config.feature_size * frames);
  for (size_t t = 0; t < frames; ++t) {
    std::vector<double> power(bins);
    for (size_t k = 0; k < bins; ++k) {
      double re = 0, im = 0;
      for (size_t j = 0; j < n; ++j) {
        long at = static_cast<long>(t * config.hop_length + j) -
                  static_cast<long>(n / 2);
        const long last = static_cast<long>(signal.size()) - 1;
        while (at < 0 || at > last) {  // mirrored at either end
          if (at < 0) at = -at;
          if (at > last) at = 2 * last - at;
        }
        const double phase = 2 * M_PI / static_cast<double>(n);
        const double x = signal[static_cast<size_t>(at)] *
                         (0.5 - 0.5 * std::cos(phase * static_cast<double>(j)));
        re += x * std::cos(phase * static_cast<double>(j * k % n));
        im -= x * std::sin(phase * static_cast<double>(j * k % n));
      }
      power[k] = re * re + im * im;
    }
    for (size_t m = 0; m < config.feature_size; ++m) {
      double energy = 0;
      for (size_t k = 0; k < bins; ++k) {
        energy += filters[m * bins + k] * power[k];
      }
      out[m * frames + t] = std::log10(std::max(energy, 1e-10));
    }
  }
  const double largest = *std::max_element(out.begin(), out.end());
  for (double& value : out) {
    value = (std::max(value, largest - 8.0) + 4.0) / 4.0;
  }
  return out;
}

TEST(LogMel, AudioOfAnyLengthIsMirroredAtItsEnds) {
  const LogMel log_mel = Make(SmallConfig());
  TestRandom random(8);
  // Down to signals shorter than half a frame.
  for (const size_t length : {11, 12, 15, 16, 31, 100, 517}) {
    SCOPED_TRACE(length);
    const std::vector<float> signal = random.Uniforms(length);
    const absl::StatusOr<Spectrogram> found = log_mel.Compute(signal);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->frames, length / 11);
    const std::vector<double> expected = Reference(log_mel, signal);
    ASSERT_EQ(found->values.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(found->values[i], expected[i], 2e-6) << i;
    }
  }
}

TEST(LogMel, AChunkIsTheAudioThenSilence) {
  const LogMel log_mel = Make(SmallConfig());
  EXPECT_EQ(log_mel.chunk_samples(), 16000u);
  EXPECT_EQ(log_mel.chunk_frames(), 16000u / 11);
  TestRandom random(9);
  std::vector<float> signal = random.Uniforms(5000);
  const absl::StatusOr<Spectrogram> chunk = log_mel.ComputeChunk(signal);
  signal.resize(16000, 0.0f);
  const absl::StatusOr<Spectrogram> padded = log_mel.Compute(signal);
  ASSERT_TRUE(chunk.ok() && padded.ok());
  EXPECT_EQ(chunk->frames, log_mel.chunk_frames());
  EXPECT_EQ(chunk->values, padded->values);
  signal.push_back(0.0f);
  EXPECT_EQ(log_mel.ComputeChunk(signal).status().message(),
            "audio: expected at most 16000 samples (1 s), found 16001");
}

// No frames and no division by zero.
TEST(LogMel, M23EmptyAudio) {
  const LogMel log_mel = Make(SmallConfig());
  for (const size_t length : {0, 1, 10}) {
    const auto none = log_mel.Compute(std::vector<float>(length, 0.5f));
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_EQ(none->frames, 0u);
    EXPECT_TRUE(none->values.empty());
  }
  // Silence: all bands at 1e-10.
  const auto silence = log_mel.ComputeChunk({});
  ASSERT_TRUE(silence.ok()) << silence.status();
  for (const float value : silence->values) ASSERT_EQ(value, -1.5f);
}

TEST(LogMel, SamplesOfAnySize) {
  const LogMel log_mel = Make(SmallConfig());
  std::vector<float> signal(100, std::numeric_limits<float>::max());
  const auto loud = log_mel.Compute(signal);
  ASSERT_TRUE(loud.ok()) << loud.status();
  for (const float value : loud->values) ASSERT_TRUE(std::isfinite(value));
  for (const float bad : {kNaN, kInfinity, -kInfinity}) {
    signal[42] = bad;
    const absl::Status status = log_mel.Compute(signal).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("sample 42: expected a finite number"),
              std::string::npos)
        << status;
  }
}

TEST(LogMel, LongAudioIsRefused) {
  LogMelConfig config = SmallConfig();
  config.n_fft = 8192;
  config.hop_length = 1;
  const auto status =
      Make(config).Compute(std::vector<float>((1 << 14) + 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "audio: expected at most 16384 samples, found 16385");
}

std::string ErrorOf(const json& config) {
  const auto read = ReadLogMelConfig(config, "p.json");
  return read.ok() ? "" : std::string(read.status().message());
}

TEST(LogMel, ReadsTheConfig) {
  const auto defaults = ReadLogMelConfig(json::object(), "p.json");
  ASSERT_TRUE(defaults.ok()) << defaults.status();
  EXPECT_EQ(defaults->feature_size, 80u);
  EXPECT_EQ(defaults->n_fft, 400u);
  const json published = {{"chunk_length", 30},
                          {"feature_extractor_type", "WhisperFeatureExtractor"},
                          {"feature_size", 128},
                          {"hop_length", 80},
                          {"n_fft", 480},
                          {"n_samples", 480000},
                          {"nb_max_frames", 3000},
                          {"dither", 0.0},
                          {"padding_side", "right"},
                          {"padding_value", 0.0},
                          {"processor_class", "WhisperProcessor"},
                          {"return_attention_mask", false},
                          {"sampling_rate", 24000}};
  const auto read = ReadLogMelConfig(published, "p.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->feature_size, 128u);
  EXPECT_EQ(read->hop_length, 80u);
  EXPECT_EQ(read->n_fft, 480u);
  EXPECT_EQ(read->sampling_rate, 24000u);
  EXPECT_EQ(read->chunk_length, 30u);
}

TEST(LogMel, ConfigErrorsNameTheField) {
  for (const char* key : {"feature_size", "sampling_rate", "hop_length",
                          "chunk_length", "n_fft"}) {
    for (const json& bad : {json("80"), json(0), json(-1), json(1e9), json(2.5),
                            json(json::array({1}))}) {
      const std::string error = ErrorOf({{key, bad}});
      EXPECT_EQ(error.rfind(std::string("p.json: ") + key + ": expected", 0),
                0u)
          << error;
    }
  }
  EXPECT_EQ(ErrorOf({{"n_fft", 402}}),
            "p.json: n_fft: expected an even product of 2, 3 and 5, found 402");
  EXPECT_EQ(ErrorOf({{"hop_length", 401}}),
            "p.json: hop_length: expected an integer from 1 to 400, found 401");
  EXPECT_EQ(ErrorOf({{"sampling_rate", 8000}}),
            "p.json: sampling_rate: expected an integer from 16000 to 192000, "
            "found 8000");
  EXPECT_EQ(ErrorOf({{"dither", 0.5}}),
            "p.json: dither: expected 0, found 0.5");
  EXPECT_EQ(ErrorOf({{"do_normalize", true}}),
            "p.json: do_normalize: expected false, found true");
  // Each in range, but a minute of work together.
  EXPECT_NE(ErrorOf({{"chunk_length", 3600}, {"hop_length", 1}})
                .find("p.json: chunk_length: expected at most 134217728"),
            std::string::npos);
}

TEST(LogMel, CreateChecksToo) {
  LogMelConfig config;
  config.n_fft = 0;
  EXPECT_FALSE(LogMel::Create(config).ok());
  config = {};
  config.hop_length = 0;
  EXPECT_FALSE(LogMel::Create(config).ok());
}

}  // namespace
}  // namespace lanewise
