#include "model/features/image_processor.h"

#include <cmath>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Size = ImageProcessorConfig::Size;

// Bounds of numbers in a file, and of float pixels.
constexpr double kSmallest = 1e-6, kLargest = 1e6;
constexpr uint64_t kBilinearCode = 2, kBicubicCode = 3;  // Pillow's

absl::StatusOr<Size> ReadSides(const nlohmann::json& value,
                               absl::string_view file, absl::string_view key) {
  Size size;
  if (!value.is_object()) {
    LANEWISE_ASSIGN_OR_RETURN(size.height,
                              ToUint(value, file, key, kMaxImageSide, 1));
    size.width = size.height;
    return size;
  }
  const std::string inside = absl::StrCat(file, ": ", key);
  LANEWISE_ASSIGN_OR_RETURN(size.height,
                            GetUint(value, inside, "height", kMaxImageSide));
  LANEWISE_ASSIGN_OR_RETURN(size.width,
                            GetUint(value, inside, "width", kMaxImageSide));
  return size;
}

absl::Status ReadResize(const nlohmann::json& config, absl::string_view file,
                        ImageProcessorConfig* out) {
  LANEWISE_ASSIGN_OR_RETURN(const bool resize,
                            GetBoolOr(config, file, "do_resize", true));
  if (!resize) {
    out->size.reset();
    return absl::OkStatus();
  }
  const nlohmann::json* size = FindJson(config, "size");
  if (size != nullptr && FindJson(*size, "shortest_edge") != nullptr) {
    const std::string inside = absl::StrCat(file, ": size");
    if (FindJson(*size, "longest_edge") != nullptr) {
      return absl::UnimplementedError(
          absl::StrCat(inside,
                       ": longest_edge: expected none beside "
                       "shortest_edge, found one"));
    }
    out->size.reset();
    LANEWISE_ASSIGN_OR_RETURN(
        out->shortest_edge,
        GetUint(*size, inside, "shortest_edge", kMaxImageSide));
  } else if (size != nullptr) {
    LANEWISE_ASSIGN_OR_RETURN(out->size, ReadSides(*size, file, "size"));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const uint64_t filter,
      GetUintOr(config, file, "resample", 1000, kBilinearCode));
  if (filter != kBilinearCode && filter != kBicubicCode) {
    return absl::UnimplementedError(absl::StrCat(
        file, ": resample: expected 2 (bilinear) or 3 (bicubic), found ",
        filter));
  }
  out->filter =
      filter == kBicubicCode ? ResizeFilter::kBicubic : ResizeFilter::kBilinear;
  return absl::OkStatus();
}

absl::Status ReadChannels(const nlohmann::json& config, absl::string_view file,
                          absl::string_view key,
                          std::array<double, kImageChannels>* out) {
  if (FindJson(config, key) == nullptr) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* values,
                            GetArray(config, file, key));
  if (values->size() != kImageChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": ", key, ": expected ", kImageChannels,
                     " numbers, found ", values->size()));
  }
  for (size_t c = 0; c < kImageChannels; ++c) {
    LANEWISE_ASSIGN_OR_RETURN((*out)[c], ToFloat((*values)[c], file, key));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(absl::string_view file, absl::string_view key,
                         double value, double min) {
  if (min <= value && value <= kLargest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", key, ": expected a number from ", min, " to ",
                   kLargest, ", found ", value));
}

absl::Status ReadNormalization(const nlohmann::json& config,
                               absl::string_view file,
                               ImageProcessorConfig* out) {
  LANEWISE_ASSIGN_OR_RETURN(const bool rescale,
                            GetBoolOr(config, file, "do_rescale", true));
  LANEWISE_ASSIGN_OR_RETURN(
      out->scale, GetFloatOr(config, file, "rescale_factor", out->scale));
  if (!rescale) out->scale = 1.0;
  LANEWISE_ASSIGN_OR_RETURN(const bool normalize,
                            GetBoolOr(config, file, "do_normalize", true));
  LANEWISE_RETURN_IF_ERROR(
      ReadChannels(config, file, "image_mean", &out->mean));
  LANEWISE_RETURN_IF_ERROR(ReadChannels(config, file, "image_std", &out->std));
  if (!normalize) {
    out->mean = {0.0, 0.0, 0.0};
    out->std = {1.0, 1.0, 1.0};
  }
  // Within these bounds no pixel overflows.
  LANEWISE_RETURN_IF_ERROR(
      CheckNumber(file, "rescale_factor", out->scale, kSmallest));
  for (size_t c = 0; c < kImageChannels; ++c) {
    LANEWISE_RETURN_IF_ERROR(
        CheckNumber(file, "image_mean", out->mean[c], -kLargest));
    LANEWISE_RETURN_IF_ERROR(
        CheckNumber(file, "image_std", out->std[c], kSmallest));
  }
  return absl::OkStatus();
}

absl::Status CheckKnown(const nlohmann::json& config, absl::string_view file) {
  if (!config.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": expected an object, found ", DescribeJson(config)));
  }
  for (const auto& [key, value] : config.items()) {
    // Images are RGB here in any case.
    if (!absl::StartsWith(key, "do_") || key == "do_resize" ||
        key == "do_center_crop" || key == "do_rescale" ||
        key == "do_normalize" || key == "do_convert_rgb") {
      continue;
    }
    if (value.is_null() || value == false) continue;
    return absl::UnimplementedError(absl::StrCat(file, ": ", Printable(key),
                                                 ": expected false, found ",
                                                 DescribeJson(value)));
  }
  if (FindJson(config, "crop_pct") != nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": crop_pct: expected none, found ",
                     DescribeJson(*FindJson(config, "crop_pct"))));
  }
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<BasicImage<T>> ResizeAndCrop(const ImageProcessorConfig& config,
                                            const BasicImage<T>& image) {
  Size size = {image.height, image.width};
  if (config.size.has_value()) size = *config.size;
  if (config.shortest_edge.has_value() && image.height > 0 && image.width > 0) {
    // Sides beyond any limit are Resize's to refuse; their product is not to
    // overflow.
    const uint64_t edge = *config.shortest_edge;
    const auto side = [&](uint64_t own, uint64_t other) -> size_t {
      if (own <= other) return edge;
      return own > kMaxImageSide ? own : edge * own / other;
    };
    size = {side(image.height, image.width), side(image.width, image.height)};
  }
  LANEWISE_ASSIGN_OR_RETURN(
      BasicImage<T> out,
      Resize(image, size.height, size.width, {config.filter}));
  if (!config.crop.has_value()) return out;
  return CenterCrop(out, config.crop->height, config.crop->width);
}

template <class T>
absl::StatusOr<PixelValues> Process(const ImageProcessorConfig& config,
                                    const BasicImage<T>& image) {
  LANEWISE_ASSIGN_OR_RETURN(const BasicImage<T> small,
                            ResizeAndCrop(config, image));
  PixelValues out{small.height, small.width, {}};
  out.values.resize(small.pixels.size());
  const size_t plane = small.height * small.width;
  for (size_t c = 0; c < kImageChannels; ++c) {
    float* values = out.values.data() + c * plane;
    for (size_t i = 0; i < plane; ++i) {
      const double pixel = small.pixels[i * kImageChannels + c];
      values[i] = static_cast<float>((pixel * config.scale - config.mean[c]) /
                                     config.std[c]);
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<ImageProcessorConfig> ReadImageProcessorConfig(
    const nlohmann::json& config, absl::string_view file) {
  ImageProcessorConfig out;
  LANEWISE_RETURN_IF_ERROR(CheckKnown(config, file));
  LANEWISE_RETURN_IF_ERROR(ReadResize(config, file, &out));
  LANEWISE_ASSIGN_OR_RETURN(const bool crop,
                            GetBoolOr(config, file, "do_center_crop", false));
  if (crop) {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* size,
                              GetJson(config, file, "crop_size"));
    LANEWISE_ASSIGN_OR_RETURN(out.crop, ReadSides(*size, file, "crop_size"));
  }
  LANEWISE_RETURN_IF_ERROR(ReadNormalization(config, file, &out));
  return out;
}

absl::StatusOr<PixelValues> ProcessImage(const ImageProcessorConfig& config,
                                         const Image& image) {
  return Process(config, image);
}

absl::StatusOr<PixelValues> ProcessImage(const ImageProcessorConfig& config,
                                         const FloatImage& image) {
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    if (!(std::fabs(image.pixels[i]) <= kLargest)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "image: value ", i, ": expected a number from ", -kLargest, " to ",
          kLargest, ", found ", image.pixels[i]));
    }
  }
  return Process(config, image);
}

}  // namespace lanewise
