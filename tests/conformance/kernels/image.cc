// Resizing and normalization of images.
#include "model/features/image.h"

#include <cstdint>
#include <vector>

#include "model/features/image_processor.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

// [1, 3, height, width] as an image.
FloatImage ImageOf(const KernelArray& array) {
  FloatImage image;
  image.width = array.width;
  image.height = array.rows() / kImageChannels;
  const size_t plane = image.height * image.width;
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < kImageChannels; ++c) {
      image.pixels.push_back(array.values[c * plane + i]);
    }
  }
  return image;
}

void CheckResize(const KernelCase& c, CaseReport* report) {
  ResizeOptions options;
  options.antialias = c.flag("antialias");
  const FloatImage expected = ImageOf(c.output("y"));
  const auto found =
      Resize(ImageOf(c.input("x")), expected.height, expected.width, options);
  if (!found.ok()) {
    return AddExact({c.name(), "y"}, found.status().ToString(), report);
  }
  CompareToLargest({c.name(), "y"}, found->pixels, expected.pixels, 1e-5,
                   report);
}

// From bytes and from floats.
void CheckNormalize(const KernelCase& c, CaseReport* report) {
  const KernelArray& pixels = c.input("image");
  const auto config = ReadImageProcessorConfig(
      {{"do_resize", false},
       {"image_mean", c.params().value("mean", nlohmann::json())},
       {"image_std", c.params().value("std", nlohmann::json())}},
      "params");
  if (!config.ok() || pixels.shape.size() < 3) {
    return AddExact({c.name(), "pixel_values"}, config.status().ToString(),
                    report);
  }
  const size_t height = pixels.shape[pixels.shape.size() - 3];
  const size_t width = pixels.shape[pixels.shape.size() - 2];
  const Image image{
      height, width, {pixels.values.begin(), pixels.values.end()}};
  const FloatImage floats{height, width, pixels.values};
  for (const auto& found :
       {ProcessImage(*config, image), ProcessImage(*config, floats)}) {
    CompareElements(
        {c.name(), "pixel_values"},
        found.ok() ? found->values : std::vector<float>(),
        c.output("pixel_values").values, [](size_t) { return 3e-7; }, report);
  }
}

}  // namespace

bool CheckImage(const KernelCase& c, const Context& context,
                CaseReport* report) {
  if (c.Is("resize_")) {
    CheckResize(c, report);
    return true;
  }
  if (c.name() == "normalize") {
    CheckNormalize(c, report);
    return true;
  }
  return false;
}

}  // namespace lanewise
