// Little-endian values out of a file, in order, with every length checked
// against the bytes that remain.
//
//   ByteReader reader(&file);
//   LANEWISE_ASSIGN_OR_RETURN(uint32_t version, reader.Read<uint32_t>());
//
// Reads through MappedFile::ReadAt, so a file that shrinks meanwhile is an
// error and not a signal.
#ifndef LANEWISE_MODEL_FORMAT_BYTE_READER_H_
#define LANEWISE_MODEL_FORMAT_BYTE_READER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/format/mapped_file.h"
#include "simd/status_macros.h"

namespace lanewise {

class ByteReader {
 public:
  explicit ByteReader(const MappedFile* file) : file_(*file) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return file_.size() - position_; }

  // DATA_LOSS ("truncated: …", without the path) when fewer bytes remain.
  absl::Status ReadBytes(absl::Span<uint8_t> out) {
    if (out.size() > remaining()) {
      return absl::DataLossError(
          absl::StrCat("truncated: expected ", out.size(), " bytes at ",
                       position_, ", found ", remaining()));
    }
    size_t done = 0;
    while (done < out.size()) {
      if (position_ - window_begin_ >= window_.size()) {
        LANEWISE_RETURN_IF_ERROR(Refill());
      }
      const size_t at = static_cast<size_t>(position_ - window_begin_);
      const size_t n = std::min(window_.size() - at, out.size() - done);
      std::memcpy(out.data() + done, window_.data() + at, n);
      done += n;
      position_ += n;
    }
    return absl::OkStatus();
  }

  // An integer or IEEE float.
  template <class T>
  absl::StatusOr<T> Read() {
    uint8_t bytes[sizeof(T)];
    LANEWISE_RETURN_IF_ERROR(ReadBytes(absl::MakeSpan(bytes)));
    using Bits = std::conditional_t<
        sizeof(T) == 1, uint8_t,
        std::conditional_t<
            sizeof(T) == 2, uint16_t,
            std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
    uint64_t bits = 0;
    for (size_t i = 0; i < sizeof(T); ++i) bits |= uint64_t{bytes[i]} << 8 * i;
    const Bits narrow = static_cast<Bits>(bits);
    T value;
    std::memcpy(&value, &narrow, sizeof(T));
    return value;
  }

  // A 64-bit length of at most `max`, then that many bytes.
  absl::StatusOr<std::string> ReadString(uint64_t max) {
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>());
    if (length > remaining()) {
      return absl::DataLossError(
          absl::StrCat("truncated: expected a string of ", length, " bytes at ",
                       position_, ", found ", remaining()));
    }
    if (length > max) {
      return absl::InvalidArgumentError(absl::StrCat(
          "expected a string of at most ", max, " bytes, found ", length));
    }
    std::string text(static_cast<size_t>(length), '\0');
    LANEWISE_RETURN_IF_ERROR(ReadBytes(
        absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
    return text;
  }

 private:
  static constexpr uint64_t kWindow = 1 << 16;

  absl::Status Refill() {
    window_begin_ = position_;
    window_.resize(static_cast<size_t>(std::min(kWindow, remaining())));
    return file_.ReadAt(position_, absl::MakeSpan(window_));
  }

  const MappedFile& file_;
  uint64_t position_ = 0;
  uint64_t window_begin_ = 0;
  std::vector<uint8_t> window_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_BYTE_READER_H_
