#include "model/audio_stem.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "simd/target.h"

namespace lanewise {
namespace {

using testing::HasSubstr;

constexpr size_t kBands = 10, kWidth = 12, kPositions = 20;

// Any numbers, about ±0.5.
std::vector<float> Values(size_t count, uint64_t seed) {
  std::vector<float> values;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<float>(seed >> 40) * 0x1p-24f - 0.5f);
  }
  return values;
}

class AudioStemTest : public testing::Test {
 protected:
  void SetUp() override {
    spec_.width = kWidth;
    spec_.max_positions = kPositions;
    spec_.input = InputKind::kVectors;
    spec_.audio_stem = AudioStemSpec{kBands};
    spec_.head.task = HeadTask::kNone;
    LayerSpec layer;
    layer.attention.heads = layer.attention.kv_heads = 2;
    layer.attention.head_dim = layer.attention.value_dim = kWidth / 2;
    layer.attention.causal = false;
    layer.ffn.width = 8;
    spec_.layers.push_back(layer);
    Add("conv1.weight", {kWidth, kBands, 3});
    Add("conv1.bias", {kWidth});
    Add("conv2.weight", {kWidth, kWidth, 3});
    Add("conv2.bias", {kWidth});
    for (const char* name : {"q", "k", "v", "out"}) {
      Add(std::string("layers.0.self_attn.") + name + "_proj.weight",
          {kWidth, kWidth});
    }
    Add("layers.0.fc1.weight", {8, kWidth});
    Add("layers.0.fc2.weight", {kWidth, 8});
  }

  void Add(const std::string& name, std::vector<uint64_t> shape) {
    size_t count = 1;
    for (const uint64_t size : shape) count *= size;
    tensors_.push_back({"model.encoder." + name, std::move(shape),
                        Values(count, tensors_.size() + 1)});
  }

  absl::StatusOr<std::unique_ptr<const Model>> Load(const Context& context) {
    auto checkpoint = Checkpoint::FromTensors("stem", tensors_);
    if (!checkpoint.ok()) return checkpoint.status();
    return Model::FromSpec(spec_, *FamilyOfModelType("whisper"), **checkpoint,
                           context, {});
  }

  // A convolution of three taps and GELU, as the definition says. x [channels,
  // length], weights [kWidth, channels, 3].
  static std::vector<std::vector<double>> Convolve(
      const std::vector<std::vector<double>>& x, const NamedTensor& weight,
      const NamedTensor& bias, size_t stride) {
    const size_t length = x[0].size();
    std::vector<std::vector<double>> out(kWidth);
    for (size_t o = 0; o < kWidth; ++o) {
      for (size_t t = 0; t < length; t += stride) {
        double sum = bias.values[o];
        for (size_t c = 0; c < x.size(); ++c) {
          for (size_t tap = 0; tap < 3; ++tap) {
            const size_t at = t + tap;  // of the padded input
            if (at == 0 || at > length) continue;
            sum += x[c][at - 1] * weight.values[(o * x.size() + c) * 3 + tap];
          }
        }
        out[o].push_back(0.5 * sum * (1 + std::erf(sum / std::sqrt(2.0))));
      }
    }
    return out;
  }

  ModelSpec spec_;
  std::vector<NamedTensor> tensors_;
};

TEST_F(AudioStemTest, EqualsTheDefinitionOnEveryTarget) {
  for (const size_t frames : {1, 2, 3, 16, 31, 40}) {
    const std::vector<float> spectrogram = Values(kBands * frames, 99);
    std::vector<std::vector<double>> x(kBands);
    for (size_t band = 0; band < kBands; ++band) {
      x[band].assign(spectrogram.begin() + band * frames,
                     spectrogram.begin() + (band + 1) * frames);
    }
    x = Convolve(x, tensors_[0], tensors_[1], 1);
    x = Convolve(x, tensors_[2], tensors_[3], 2);
    std::vector<float> first;
    for (const Target& target : Target::Available()) {
      SCOPED_TRACE(std::string(target.name()));
      Context::Options options;
      options.target = target;
      const auto context = std::move(Context::Create(options)).value();
      const auto model = Load(*context);
      ASSERT_TRUE(model.ok()) << model.status();
      const auto stem =
          AudioStem::Create(**model, *context, ActivationType::kF32);
      ASSERT_TRUE(stem.ok()) << stem.status();
      std::vector<float> rows;
      ASSERT_TRUE((*stem)->Run(spectrogram, &rows).ok());
      ASSERT_EQ((*stem)->RowsOf(frames), (frames + 1) / 2);
      ASSERT_EQ(rows.size(), (frames + 1) / 2 * kWidth);
      for (size_t row = 0; row < x[0].size(); ++row) {
        for (size_t i = 0; i < kWidth; ++i) {
          EXPECT_NEAR(rows[row * kWidth + i], x[i][row], 1e-5);
        }
      }
      if (first.empty()) first = rows;
      if (target.has_fma()) {
        EXPECT_EQ(rows, first);
      }
    }
  }
}

TEST_F(AudioStemTest, RefusesWhatIsNoSpectrogram) {
  const auto context = std::move(Context::Create({})).value();
  const auto model = Load(*context);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto stem = AudioStem::Create(**model, *context, ActivationType::kF32);
  ASSERT_TRUE(stem.ok());
  std::vector<float> rows;
  for (const size_t size : {size_t{0}, kBands - 1, kBands + 1}) {
    const absl::Status status = (*stem)->Run(Values(size, 1), &rows);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("frames of 10 bands"));
  }
  EXPECT_TRUE((*stem)->Run(Values(kBands * 2 * kPositions, 1), &rows).ok());
  const absl::Status status =
      (*stem)->Run(Values(kBands * (2 * kPositions + 1), 1), &rows);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(status.message()), HasSubstr("40 frames"));
}

TEST_F(AudioStemTest, ErrorsNameTheTensor) {
  const auto context = std::move(Context::Create({})).value();
  tensors_[2].shape = {kWidth, 3, kWidth};
  EXPECT_THAT(std::string(Load(*context).status().message()),
              HasSubstr("model.encoder.conv2.weight: expected shape "
                        "[12, 12, 3]"));
  spec_.audio_stem.reset();
  const auto model = Load(*context);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(AudioStem::Create(**model, *context, ActivationType::kF32)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lanewise
