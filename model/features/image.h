// Images in memory, and changes of their size as the reference's image library
// (Pillow) makes them.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       Image small, Resize(image, 224, 224, {ResizeFilter::kBicubic}));
//
// By fixed sequences of integer or double operations: the same pixels
// everywhere.
#ifndef LANEWISE_MODEL_FEATURES_IMAGE_H_
#define LANEWISE_MODEL_FEATURES_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace lanewise {

inline constexpr size_t kImageChannels = 3;  // red, green, blue
// Limits of an image, and of what lies between it and another size.
inline constexpr uint64_t kMaxImageSide = 65535;
inline constexpr uint64_t kMaxImagePixels = uint64_t{1} << 27;

// [height, width, 3].
template <class T>
struct BasicImage {
  size_t height = 0;
  size_t width = 0;
  std::vector<T> pixels;
};
using Image = BasicImage<uint8_t>;
using FloatImage = BasicImage<float>;  // usually from 0 to 255, too

enum class ResizeFilter : uint8_t {
  kBilinear,  // triangle
  kBicubic,   // Keys (1981), a = −1/2
};

struct ResizeOptions {
  ResizeFilter filter = ResizeFilter::kBilinear;
  // Filters grow with the reduction, so that every pixel counts. Without it
  // they are as narrow as for enlargement.
  bool antialias = true;
};

// The image in another size: along rows first, then along columns. Bytes are
// rounded to bytes after either, with weights in units of 2^-22, as Pillow
// does; floats are summed in double. INVALID_ARGUMENT where a size is 0 or
// pixels are not height · width · 3, RESOURCE_EXHAUSTED beyond the limits.
absl::StatusOr<Image> Resize(const Image& image, size_t height, size_t width,
                             const ResizeOptions& options);
absl::StatusOr<FloatImage> Resize(const FloatImage& image, size_t height,
                                  size_t width, const ResizeOptions& options);

// The middle of an image, where both sides have something; zeros around it. Of
// an odd rest the lower right keeps one more. Errors as Resize.
absl::StatusOr<Image> CenterCrop(const Image& image, size_t height,
                                 size_t width);
absl::StatusOr<FloatImage> CenterCrop(const FloatImage& image, size_t height,
                                      size_t width);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FEATURES_IMAGE_H_
