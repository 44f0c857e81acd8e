// Images as vision models read them: resized, cropped, scaled and normalized as
// preprocessor_config.json says (Dosovitskiy et al., arXiv:2010.11929, and the
// reference's image processors).
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       ImageProcessorConfig config,
//       ReadImageProcessorConfig(json, "preprocessor_config.json"));
//   LANEWISE_ASSIGN_OR_RETURN(Image image, ReadPpm("cat.ppm"));
//   LANEWISE_ASSIGN_OR_RETURN(PixelValues pixels, ProcessImage(config, image));
#ifndef LANEWISE_MODEL_FEATURES_IMAGE_PROCESSOR_H_
#define LANEWISE_MODEL_FEATURES_IMAGE_PROCESSOR_H_

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/features/image.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// Steps in their order; an absent one is left out.
struct ImageProcessorConfig {
  struct Size {
    size_t height = 224;
    size_t width = 224;
  };
  // Either to a size, or so that the shorter side has this length and the
  // longer one follows, rounded down.
  std::optional<Size> size = Size{};
  std::optional<size_t> shortest_edge;
  ResizeFilter filter = ResizeFilter::kBilinear;
  std::optional<Size> crop;
  double scale = 1.0 / 255.0;  // 1: not scaled
  // Subtracted, then divided by, per channel.
  std::array<double, kImageChannels> mean = {0.5, 0.5, 0.5};
  std::array<double, kImageChannels> std = {0.5, 0.5, 0.5};
};

// What is absent has the defaults of ViT above. "size" may be one number (both
// sides), {"height", "width"} or {"shortest_edge"}; "resample" is 2 (bilinear)
// or 3 (bicubic). Errors name the field; a "do_…" that is not known here is one
// unless false, as it would change the pixels.
absl::StatusOr<ImageProcessorConfig> ReadImageProcessorConfig(
    const nlohmann::json& config, absl::string_view file);

// [3, height, width].
struct PixelValues {
  size_t height = 0;
  size_t width = 0;
  std::vector<float> values;
};

// (pixel · scale − mean) / std in double, rounded once. Errors as Resize, and
// INVALID_ARGUMENT for floats beyond ±1e6, NaN among them.
absl::StatusOr<PixelValues> ProcessImage(const ImageProcessorConfig& config,
                                         const Image& image);
absl::StatusOr<PixelValues> ProcessImage(const ImageProcessorConfig& config,
                                         const FloatImage& image);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FEATURES_IMAGE_PROCESSOR_H_
