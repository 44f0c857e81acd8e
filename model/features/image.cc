#include "model/features/image.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr int kWeightBits = 22;  // of weights for bytes

double FilterWeight(ResizeFilter filter, double x) {
  x = std::fabs(x);
  if (filter == ResizeFilter::kBilinear) return x < 1.0 ? 1.0 - x : 0.0;
  constexpr double kA = -0.5;
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
  return 0.0;
}

double Support(ResizeFilter filter) {
  return filter == ResizeFilter::kBilinear ? 1.0 : 2.0;
}

// Weights of bytes are integers, those of floats are doubles.
template <class T>
using WeightOf =
    std::conditional_t<std::is_same_v<T, uint8_t>, int64_t, double>;

// What one element along an axis is the sum of.
template <class T>
struct Taps {
  size_t first;  // element of the source
  std::vector<WeightOf<T>> weights;
};

template <class T>
WeightOf<T> RoundWeight(double weight) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    const double scaled = weight * (1 << kWeightBits);
    return static_cast<int64_t>(scaled < 0.0 ? scaled - 0.5 : scaled + 0.5);
  } else {
    return weight;
  }
}

template <class T>
Taps<T> TapsOf(size_t index, size_t from, size_t to,
               const ResizeOptions& options) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double stretch = options.antialias ? std::max(scale, 1.0) : 1.0;
  const double support = Support(options.filter) * stretch;
  const double center = (static_cast<double>(index) + 0.5) * scale;
  const double begin = std::max(std::floor(center - support + 0.5), 0.0);
  const double end =
      std::min(std::floor(center + support + 0.5), static_cast<double>(from));
  std::vector<double> weights;
  double sum = 0.0;
  for (double i = begin; i < end; i += 1.0) {
    weights.push_back(
        FilterWeight(options.filter, (i - center + 0.5) * (1.0 / stretch)));
    sum += weights.back();
  }
  Taps<T> taps{static_cast<size_t>(begin), {}};
  for (const double weight : weights) {
    taps.weights.push_back(RoundWeight<T>(weight / sum));
  }
  return taps;
}

// What sums start with, and an element of a finished one.
template <class T>
constexpr WeightOf<T> kHalf =
    std::is_same_v<T, uint8_t> ? 1 << (kWeightBits - 1) : 0;

template <class T>
T Rounded(WeightOf<T> sum) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(
        std::clamp<int64_t>(sum, 0, (256 << kWeightBits) - 1) >> kWeightBits);
  } else {
    return static_cast<float>(sum);
  }
}

absl::Status CheckPixels(uint64_t height, uint64_t width) {
  if (height == 0 || width == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "image: expected at least one pixel, found ", height, " x ", width));
  }
  if (height > kMaxImageSide || width > kMaxImageSide ||
      height * width > kMaxImagePixels) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "image: expected sides of at most ", kMaxImageSide, " and at most ",
        kMaxImagePixels, " pixels, found ", height, " x ", width));
  }
  return absl::OkStatus();
}

template <class T>
absl::Status Check(const BasicImage<T>& image, size_t height, size_t width) {
  LANEWISE_RETURN_IF_ERROR(CheckPixels(image.height, image.width));
  LANEWISE_RETURN_IF_ERROR(CheckPixels(height, width));
  const size_t expected = image.height * image.width * kImageChannels;
  if (image.pixels.size() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "image: expected ", expected, " values, found ", image.pixels.size()));
}

template <class T>
BasicImage<T> ResizeRows(const BasicImage<T>& image, size_t width,
                         const ResizeOptions& options) {
  BasicImage<T> out{image.height, width, {}};
  out.pixels.resize(image.height * width * kImageChannels);
  std::vector<Taps<T>> taps;
  for (size_t x = 0; x < width; ++x) {
    taps.push_back(TapsOf<T>(x, image.width, width, options));
  }
  T* pixel = out.pixels.data();
  for (size_t y = 0; y < image.height; ++y) {
    const T* line = image.pixels.data() + y * image.width * kImageChannels;
    for (const Taps<T>& tap : taps) {
      const T* source = line + tap.first * kImageChannels;
      WeightOf<T> red = kHalf<T>, green = kHalf<T>, blue = kHalf<T>;
      for (const WeightOf<T> weight : tap.weights) {
        red += weight * source[0];
        green += weight * source[1];
        blue += weight * source[2];
        source += kImageChannels;
      }
      *pixel++ = Rounded<T>(red);
      *pixel++ = Rounded<T>(green);
      *pixel++ = Rounded<T>(blue);
    }
  }
  return out;
}

template <class T>
BasicImage<T> ResizeColumns(const BasicImage<T>& image, size_t height,
                            const ResizeOptions& options) {
  BasicImage<T> out{height, image.width, {}};
  const size_t line = image.width * kImageChannels;
  out.pixels.resize(height * line);
  std::vector<WeightOf<T>> sums(line);
  T* pixel = out.pixels.data();
  for (size_t y = 0; y < height; ++y) {
    const Taps<T> taps = TapsOf<T>(y, image.height, height, options);
    std::fill(sums.begin(), sums.end(), kHalf<T>);
    const T* source = image.pixels.data() + taps.first * line;
    for (const WeightOf<T> weight : taps.weights) {
      for (size_t i = 0; i < line; ++i) sums[i] += weight * source[i];
      source += line;
    }
    for (const WeightOf<T> sum : sums) *pixel++ = Rounded<T>(sum);
  }
  return out;
}

template <class T>
absl::StatusOr<BasicImage<T>> ResizeAny(const BasicImage<T>& image,
                                        size_t height, size_t width,
                                        const ResizeOptions& options) {
  LANEWISE_RETURN_IF_ERROR(Check(image, height, width));
  LANEWISE_RETURN_IF_ERROR(CheckPixels(image.height, width));
  // An axis that keeps its length is left alone.
  const BasicImage<T>* source = &image;
  BasicImage<T> rows;
  if (width != image.width) {
    rows = ResizeRows(image, width, options);
    source = &rows;
  }
  if (height != image.height) return ResizeColumns(*source, height, options);
  return *source;
}

template <class T>
absl::StatusOr<BasicImage<T>> CenterCropAny(const BasicImage<T>& image,
                                            size_t height, size_t width) {
  LANEWISE_RETURN_IF_ERROR(Check(image, height, width));
  // Where the crop begins in the image, rounded down, also below zero; and
  // where the image begins in the crop.
  const size_t top = image.height > height ? (image.height - height) / 2 : 0;
  const size_t left = image.width > width ? (image.width - width) / 2 : 0;
  const size_t above =
      height > image.height ? (height - image.height + 1) / 2 : 0;
  const size_t before = width > image.width ? (width - image.width + 1) / 2 : 0;
  const size_t rows = std::min(height, image.height);
  const size_t columns = std::min(width, image.width);
  BasicImage<T> out{height, width, {}};
  out.pixels.resize(height * width * kImageChannels);
  for (size_t y = 0; y < rows; ++y) {
    std::copy_n(
        image.pixels.data() + ((top + y) * image.width + left) * kImageChannels,
        columns * kImageChannels,
        out.pixels.data() + ((above + y) * width + before) * kImageChannels);
  }
  return out;
}

}  // namespace

absl::StatusOr<Image> Resize(const Image& image, size_t height, size_t width,
                             const ResizeOptions& options) {
  return ResizeAny(image, height, width, options);
}

absl::StatusOr<FloatImage> Resize(const FloatImage& image, size_t height,
                                  size_t width, const ResizeOptions& options) {
  return ResizeAny(image, height, width, options);
}

absl::StatusOr<Image> CenterCrop(const Image& image, size_t height,
                                 size_t width) {
  return CenterCropAny(image, height, width);
}

absl::StatusOr<FloatImage> CenterCrop(const FloatImage& image, size_t height,
                                      size_t width) {
  return CenterCropAny(image, height, width);
}

}  // namespace lanewise
