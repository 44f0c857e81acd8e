#include "model/features/ppm.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr uint64_t kMaxHeader = uint64_t{1} << 16;
constexpr uint64_t kMaxNumber = 1'000'000'000;

class PpmReader {
 public:
  explicit PpmReader(const MappedFile& file) : file_(file) {}

  absl::StatusOr<Image> Read();

 private:
  template <class... Parts>
  std::string Message(const Parts&... parts) const {
    return absl::StrCat(Printable(file_.path(), 1000), ": ", parts...);
  }

  void SkipSpace();
  absl::StatusOr<uint64_t> Number(absl::string_view field);

  const MappedFile& file_;
  std::string header_;  // and what follows it, up to kMaxHeader bytes
  size_t position_ = 0;
};

void PpmReader::SkipSpace() {
  while (position_ < header_.size()) {
    if (header_[position_] == '#') {
      while (position_ < header_.size() && header_[position_] != '\n') {
        ++position_;
      }
    } else if (absl::ascii_isspace(
                   static_cast<unsigned char>(header_[position_]))) {
      ++position_;
    } else {
      return;
    }
  }
}

absl::StatusOr<uint64_t> PpmReader::Number(absl::string_view field) {
  SkipSpace();
  const size_t begin = position_;
  uint64_t value = 0;
  while (position_ < header_.size() && value <= kMaxNumber &&
         absl::ascii_isdigit(static_cast<unsigned char>(header_[position_]))) {
    value = 10 * value + static_cast<uint64_t>(header_[position_] - '0');
    ++position_;
  }
  if (position_ > begin && value <= kMaxNumber) return value;
  return absl::InvalidArgumentError(
      Message(field, ": expected a number up to ", kMaxNumber, ", found \"",
              Printable(absl::string_view(header_).substr(begin), 20), "\""));
}

absl::StatusOr<Image> PpmReader::Read() {
  header_.resize(static_cast<size_t>(std::min(kMaxHeader, file_.size())));
  LANEWISE_RETURN_IF_ERROR(
      file_.ReadAt(0, absl::MakeSpan(reinterpret_cast<uint8_t*>(header_.data()),
                                     header_.size())));
  if (header_.substr(0, 2) != "P6") {
    return absl::InvalidArgumentError(
        Message("expected a binary PPM file (\"P6\"), found \"",
                Printable(header_, 20), "\""));
  }
  position_ = 2;
  Image image;
  LANEWISE_ASSIGN_OR_RETURN(image.width, Number("width"));
  LANEWISE_ASSIGN_OR_RETURN(image.height, Number("height"));
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t maximum, Number("maximum"));
  ++position_;  // one space, whatever it is
  if (maximum != 255) {
    return absl::UnimplementedError(
        Message("maximum: expected 255, found ", maximum));
  }
  if (image.width == 0 || image.height == 0) {
    return absl::InvalidArgumentError(
        Message("expected at least one pixel, found ", image.width, " x ",
                image.height));
  }
  if (image.width > kMaxImageSide || image.height > kMaxImageSide ||
      image.width * image.height > kMaxImagePixels) {
    return absl::ResourceExhaustedError(Message(
        "expected sides of at most ", kMaxImageSide, " and at most ",
        kMaxImagePixels, " pixels, found ", image.width, " x ", image.height));
  }
  const size_t bytes = image.width * image.height * kImageChannels;
  const uint64_t begin = std::min<uint64_t>(position_, file_.size());
  if (file_.size() - begin < bytes) {
    return absl::DataLossError(Message(
        "expected ", bytes, " bytes of pixels, found ", file_.size() - begin));
  }
  image.pixels.resize(bytes);
  LANEWISE_RETURN_IF_ERROR(file_.ReadAt(begin, absl::MakeSpan(image.pixels)));
  return image;
}

}  // namespace

absl::StatusOr<Image> ReadPpm(const MappedFile& file) {
  return PpmReader(file).Read();
}

absl::StatusOr<Image> ReadPpm(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return ReadPpm(file);
}

}  // namespace lanewise
