// WAV files made byte by byte: what is read, and what is refused.
#include "model/features/wav.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "model/format/mapped_file.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

constexpr uint16_t kInteger = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr size_t kRate = 16000;

std::string Chunk(const std::string& id, const std::string& body) {
  return id + Little<uint32_t>(static_cast<uint32_t>(body.size())) + body +
         std::string(body.size() % 2, '\0');
}

// By default a good file without samples.
struct WavBuilder {
  uint16_t code = kInteger;
  uint16_t channels = 1;
  uint32_t rate = kRate;
  uint16_t bits = 16;
  std::string fmt_rest, before, data;

  std::string Format() const {
    const uint16_t block = static_cast<uint16_t>(channels * bits / 8);
    return Little(code) + Little(channels) + Little(rate) +
           Little<uint32_t>(rate * block) + Little(block) + Little(bits) +
           fmt_rest;
  }
  std::string Build() const {
    const std::string chunks =
        "WAVE" + Chunk("fmt ", Format()) + before + Chunk("data", data);
    return "RIFF" + Little<uint32_t>(static_cast<uint32_t>(chunks.size())) +
           chunks;
  }
};

absl::StatusOr<std::vector<float>> Read(const std::string& bytes) {
  return ReadWav(MappedFile::FromBytes("a.wav", Bytes(bytes)), kRate);
}

void ExpectSamples(const WavBuilder& wav, const std::vector<float>& expected) {
  const auto samples = Read(wav.Build());
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(*samples, expected);
}

void ExpectError(const std::string& bytes, absl::StatusCode code,
                 const std::vector<std::string>& parts) {
  Refusal refusal;
  refusal.code = code;
  refusal.parts = parts;
  refusal.parts.push_back("a.wav: ");
  const TempDir dir;
  const std::string path = dir.Write("a.wav", bytes);
  ExpectRefused([&] { return ReadWav(path, kRate).status(); }, refusal);
}

std::string Integers16(const std::vector<int16_t>& values) {
  std::string bytes;
  for (const int16_t value : values) bytes += Little(value);
  return bytes;
}

TEST(Wav, Integers) {
  WavBuilder wav;
  wav.data = Integers16({0, 1, -1, 16384, 32767, -32768});
  ExpectSamples(wav, {0.0f, 0x1p-15f, -0x1p-15f, 0.5f, 32767 * 0x1p-15f, -1});
  wav.bits = 24;
  wav.data =
      std::string("\x00\x00\x00\x01\x00\x00\xff\xff\xff\x00\x00\x80", 12);
  ExpectSamples(wav, {0.0f, 0x1p-23f, -0x1p-23f, -1.0f});
  wav.bits = 32;
  wav.data = Little<int32_t>(1 << 30) + Little<int32_t>(INT32_MIN) +
             Little<int32_t>(INT32_MAX);
  ExpectSamples(wav, {0.5f, -1.0f, 1.0f});
}

TEST(Wav, Floats) {
  WavBuilder wav;
  wav.code = kFloat;
  wav.bits = 32;
  wav.data = Little(0.25f) + Little(-3.5f) + Little(1e-30f);
  ExpectSamples(wav, {0.25f, -3.5f, 1e-30f});
}

TEST(Wav, StereoBecomesTheMean) {
  WavBuilder wav;
  wav.channels = 2;
  wav.data = Integers16({16384, 0, -32768, -32768, 3, -1});
  ExpectSamples(wav, {0.25f, -1.0f, 0x1p-15f});
  wav.code = kFloat;
  wav.bits = 32;
  const float largest = std::numeric_limits<float>::max();
  wav.data = Little(largest) + Little(largest);
  ExpectSamples(wav, {largest});
}

TEST(Wav, ExtensibleFormat) {
  WavBuilder wav;
  wav.code = kExtensible;
  wav.fmt_rest = Little<uint16_t>(22) + Little<uint16_t>(16) +
                 Little<uint32_t>(4) + Little(kInteger) +
                 std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14);
  wav.data = Integers16({8192});
  ExpectSamples(wav, {0.25f});
}

TEST(Wav, OtherChunksAndALastHalfFrame) {
  WavBuilder wav;
  wav.before = Chunk("LIST", "odd") + Chunk("fact", "four") + Chunk("x   ", "");
  wav.data = Integers16({8192}) + "?";
  ExpectSamples(wav, {0.25f});
  wav.data.clear();
  ExpectSamples(wav, {});
}

// As a program writes it that pipes its output.
TEST(Wav, UnknownLengthIsTheRest) {
  WavBuilder wav;
  wav.data = Integers16({8192, 16384, -32768});
  std::string bytes = wav.Build();
  bytes.replace(bytes.size() - 10, 4, "\xff\xff\xff\xff");
  bytes.replace(4, 4, "\xff\xff\xff\xff");
  const auto samples = Read(bytes);
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(*samples, (std::vector<float>{0.25f, 0.5f, -1.0f}));
}

TEST(Wav, MoreThanOneWindow) {
  WavBuilder wav;
  std::vector<int16_t> values;
  std::vector<float> expected;
  for (int i = 0; i < 40000; ++i) {
    values.push_back(static_cast<int16_t>(i * 31));
    expected.push_back(static_cast<float>(values.back()) * 0x1p-15f);
  }
  wav.data = Integers16(values);
  ExpectSamples(wav, expected);
}

TEST(WavBad, AnotherRateSaysWhatToDo) {
  WavBuilder wav;
  wav.rate = 44100;
  wav.channels = 2;
  ExpectError(wav.Build(), absl::StatusCode::kUnimplemented,
              {"sampling rate: expected 16000 Hz, found 44100 Hz; convert it",
               "ffmpeg -i IN -ac 1 -ar 16000 -c:a pcm_s16le OUT.wav"});
}

TEST(WavBad, OtherFormats) {
  const auto code = absl::StatusCode::kUnimplemented;
  WavBuilder wav;
  wav.bits = 8;
  ExpectError(wav.Build(), code, {"format: expected", "found 1 of 8 bits"});
  wav.code = 7;  // µ-law
  ExpectError(wav.Build(), code, {"format: expected", "found 7 of 8 bits"});
  wav.code = kFloat;
  wav.bits = 64;
  ExpectError(wav.Build(), code, {"format: expected", "found 3 of 64 bits"});
  wav.code = kExtensible;  // without its extension
  ExpectError(wav.Build(), code, {"format: expected", "found 65534"});
  wav = {};
  for (const uint16_t channels : {0, 3, 65535}) {
    wav.channels = channels;
    ExpectError(wav.Build(), code, {"channels: expected 1 or 2, found"});
  }
}

TEST(WavBad, NotAWavFile) {
  const auto code = absl::StatusCode::kInvalidArgument;
  ExpectError("", code, {"expected a WAV file", "an empty file"});
  ExpectError("RIFF", code, {"expected a WAV file", "found \"RIFF\""});
  ExpectError("RF64\xff\xff\xff\xffWAVEds64", code, {"found \"RF64"});
  ExpectError("ID3\x04 an mp3 file, say", code, {"found \"ID3"});
  WavBuilder wav;
  std::string bytes = wav.Build();
  bytes.replace(12, 4, "junk");
  ExpectError(bytes, code, {"fmt: expected before the samples"});
  bytes = "RIFF....WAVE" + Chunk("fmt ", wav.Format().substr(0, 15));
  ExpectError(bytes, code, {"fmt: expected at least 16 bytes, found 15"});
  bytes = wav.Build();
  bytes[32] = 3;
  ExpectError(bytes, code, {"block size: expected 2 bytes, found 3"});
}

TEST(WavBad, ManyChunks) {
  WavBuilder wav;
  for (int i = 0; i < 1000; ++i) wav.before += Chunk("junk", "");
  ExpectError(wav.Build(), absl::StatusCode::kInvalidArgument,
              {"data: expected among the first 1000 chunks"});
}

TEST(WavBad, NumbersThatAreNotFinite) {
  WavBuilder wav;
  wav.code = kFloat;
  wav.bits = 32;
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    wav.data = Little(1.0f) + Little(bad);
    ExpectError(wav.Build(), absl::StatusCode::kInvalidArgument,
                {"sample 1: expected a finite number"});
  }
}

TEST(WavBad, CutAnywhere) {
  WavBuilder wav;
  wav.before = Chunk("LIST", "text");
  wav.data = Integers16({1, 2, 3, 4});
  const std::string bytes = wav.Build();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto code = size < 12 ? absl::StatusCode::kInvalidArgument
                                : absl::StatusCode::kDataLoss;
    ExpectError(bytes.substr(0, size), code, {});
  }
}

// Whatever a byte becomes: samples no more than the file has, or an error.
TEST(WavBad, AnyByteChanged) {
  WavBuilder wav;
  wav.before = Chunk("LIST", "text");
  wav.data = Integers16({1, 2, 3, 4});
  const std::string bytes = wav.Build();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int value : {0, 1, 2, 127, 128, 254, 255}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      const auto samples = Read(changed);
      if (samples.ok()) {
        EXPECT_LE(samples->size(), 4u) << i;
      } else {
        EXPECT_EQ(samples.status().message().rfind("a.wav: ", 0), 0u);
      }
    }
  }
}

TEST(WavBad, NoSuchFile) {
  const auto status = ReadWav("/nowhere/a.wav", kRate).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace lanewise
