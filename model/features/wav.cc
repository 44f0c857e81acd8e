#include "model/features/wav.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// What a writer states that cannot go back to fill in the length.
constexpr uint32_t kUnknownLength = 0xFFFFFFFF;
constexpr int kMaxChunks = 1000;  // before the samples
constexpr uint16_t kInteger = 1, kFloat = 3, kExtensible = 0xFFFE;

uint32_t Little(const uint8_t* bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint32_t{bytes[i]} << 8 * i;
  return value;
}

struct Format {
  uint16_t code = 0;
  size_t channels = 0, rate = 0, frame_bytes = 0, bits = 0;
};

struct Chunk {
  uint64_t begin, length;
};

class WavReader {
 public:
  WavReader(const MappedFile& file, size_t rate) : file_(file), rate_(rate) {}

  absl::StatusOr<std::vector<float>> Read() {
    LANEWISE_RETURN_IF_ERROR(CheckHeader());
    LANEWISE_RETURN_IF_ERROR(FindChunks());
    LANEWISE_RETURN_IF_ERROR(CheckFormat());
    return ReadSamples();
  }

 private:
  template <class... Parts>
  std::string Message(const Parts&... parts) const {
    return absl::StrCat(Printable(file_.path(), 1000), ": ", parts...);
  }

  std::string HowToConvert() const {
    return absl::StrCat(
        "; convert it, for example with: ffmpeg -i IN -ac 1 -ar ", rate_,
        " -c:a pcm_s16le OUT.wav");
  }

  absl::Status CheckHeader() const;
  absl::Status FindChunks();
  absl::Status ReadFormat(const Chunk& chunk);
  absl::Status CheckFormat() const;
  absl::StatusOr<std::vector<float>> ReadSamples() const;
  float Sample(const uint8_t* bytes) const;

  const MappedFile& file_;
  const size_t rate_;  // expected
  bool has_format_ = false;
  Format format_;
  Chunk data_ = {0, 0};
};

absl::Status WavReader::CheckHeader() const {
  uint8_t header[12] = {};
  const size_t size =
      static_cast<size_t>(std::min<uint64_t>(file_.size(), sizeof(header)));
  LANEWISE_RETURN_IF_ERROR(file_.ReadAt(0, absl::MakeSpan(header, size)));
  const absl::string_view text(reinterpret_cast<const char*>(header), size);
  if (text.size() == sizeof(header) && text.substr(0, 4) == "RIFF" &&
      text.substr(8) == "WAVE") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      Message("expected a WAV file (\"RIFF\", length, \"WAVE\"), found ",
              size == 0 ? "an empty file" : "\"", Printable(text),
              size == 0 ? "" : "\"", HowToConvert()));
}

absl::Status WavReader::FindChunks() {
  uint64_t offset = 12;
  for (int i = 0; i < kMaxChunks; ++i) {
    if (file_.size() - offset < 8) {
      return absl::DataLossError(Message("data: no such chunk before the end"));
    }
    uint8_t header[8];
    LANEWISE_RETURN_IF_ERROR(file_.ReadAt(offset, absl::MakeSpan(header)));
    const absl::string_view id(reinterpret_cast<const char*>(header), 4);
    const uint32_t length = Little(header + 4, 4);
    Chunk chunk = {offset + 8, length};
    const uint64_t remaining = file_.size() - chunk.begin;
    if (id == "data" && length == kUnknownLength) chunk.length = remaining;
    if (chunk.length > remaining) {
      return absl::DataLossError(Message(Printable(id), ": expected ", length,
                                         " bytes, found ", remaining));
    }
    if (id == "data") {
      data_ = chunk;
      if (has_format_) return absl::OkStatus();
      return absl::InvalidArgumentError(
          Message("fmt: expected before the samples, found none"));
    }
    if (id == "fmt ") LANEWISE_RETURN_IF_ERROR(ReadFormat(chunk));
    offset =
        std::min(chunk.begin + chunk.length + chunk.length % 2, file_.size());
  }
  return absl::InvalidArgumentError(
      Message("data: expected among the first ", kMaxChunks, " chunks"));
}

absl::Status WavReader::ReadFormat(const Chunk& chunk) {
  uint8_t bytes[26] = {};
  if (chunk.length < 16) {
    return absl::InvalidArgumentError(
        Message("fmt: expected at least 16 bytes, found ", chunk.length));
  }
  const size_t size =
      static_cast<size_t>(std::min<uint64_t>(chunk.length, sizeof(bytes)));
  LANEWISE_RETURN_IF_ERROR(
      file_.ReadAt(chunk.begin, absl::MakeSpan(bytes, size)));
  format_.code = static_cast<uint16_t>(Little(bytes, 2));
  format_.channels = Little(bytes + 2, 2);
  format_.rate = Little(bytes + 4, 4);
  format_.frame_bytes = Little(bytes + 12, 2);
  format_.bits = Little(bytes + 14, 2);
  // The code proper is then the beginning of a GUID.
  if (format_.code == kExtensible && size == sizeof(bytes)) {
    format_.code = static_cast<uint16_t>(Little(bytes + 24, 2));
  }
  has_format_ = true;
  return absl::OkStatus();
}

absl::Status WavReader::CheckFormat() const {
  const size_t bits = format_.bits;
  const bool integer =
      format_.code == kInteger && (bits == 16 || bits == 24 || bits == 32);
  if (!integer && !(format_.code == kFloat && bits == 32)) {
    return absl::UnimplementedError(
        Message("format: expected 1 (integers) of 16, 24 or 32 bits or 3 "
                "(floats) of 32 bits, found ",
                format_.code, " of ", bits, " bits", HowToConvert()));
  }
  if (format_.channels != 1 && format_.channels != 2) {
    return absl::UnimplementedError(Message("channels: expected 1 or 2, found ",
                                            format_.channels, HowToConvert()));
  }
  if (format_.rate != rate_) {
    return absl::UnimplementedError(Message("sampling rate: expected ", rate_,
                                            " Hz, found ", format_.rate, " Hz",
                                            HowToConvert()));
  }
  if (format_.frame_bytes != format_.channels * bits / 8) {
    return absl::InvalidArgumentError(
        Message("block size: expected ", format_.channels * bits / 8,
                " bytes, found ", format_.frame_bytes));
  }
  if (data_.length / format_.frame_bytes > kMaxAudioSamples) {
    return absl::ResourceExhaustedError(
        Message("data: expected at most ", kMaxAudioSamples, " samples, found ",
                data_.length / format_.frame_bytes));
  }
  return absl::OkStatus();
}

float WavReader::Sample(const uint8_t* bytes) const {
  const size_t count = format_.bits / 8;
  const uint32_t value = Little(bytes, count);
  if (format_.code == kFloat) {
    float sample;
    std::memcpy(&sample, &value, sizeof(sample));
    return sample;
  }
  // The sign bit to the top: then any width is a fraction of 2^31.
  const uint32_t top = value << (32 - format_.bits);
  int32_t sample;
  std::memcpy(&sample, &top, sizeof(sample));
  return static_cast<float>(sample * 0x1p-31);
}

absl::StatusOr<std::vector<float>> WavReader::ReadSamples() const {
  // A last frame that is not whole is left out.
  const size_t frames = static_cast<size_t>(data_.length / format_.frame_bytes);
  const size_t sample_bytes = format_.bits / 8;
  std::vector<float> samples(frames);
  constexpr size_t kFrames = 1 << 14;
  std::vector<uint8_t> window(std::min(kFrames, frames) * format_.frame_bytes);
  for (size_t i = 0; i < frames; ++i) {
    if (i % kFrames == 0) {
      const size_t count = std::min(kFrames, frames - i);
      LANEWISE_RETURN_IF_ERROR(file_.ReadAt(
          data_.begin + uint64_t{i} * format_.frame_bytes,
          absl::MakeSpan(window.data(), count * format_.frame_bytes)));
    }
    const uint8_t* frame = window.data() + i % kFrames * format_.frame_bytes;
    samples[i] = Sample(frame);
    if (format_.channels == 2) {
      samples[i] = static_cast<float>(
          (double{samples[i]} + Sample(frame + sample_bytes)) / 2);
    }
    if (!std::isfinite(samples[i])) {
      return absl::InvalidArgumentError(Message(
          "sample ", i, ": expected a finite number, found ", samples[i]));
    }
  }
  return samples;
}

}  // namespace

absl::StatusOr<std::vector<float>> ReadWav(const MappedFile& file,
                                           size_t sampling_rate) {
  return WavReader(file, sampling_rate).Read();
}

absl::StatusOr<std::vector<float>> ReadWav(const std::string& path,
                                           size_t sampling_rate) {
  LANEWISE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadWav(file, sampling_rate);
}

}  // namespace lanewise
