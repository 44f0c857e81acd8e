// Pixel values, and the fields of preprocessor_config.json. Against recorded
// values: //tests/conformance/kernels.
#include "model/features/image_processor.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;

ImageProcessorConfig Read(const json& fields) {
  const auto config = ReadImageProcessorConfig(fields, "p.json");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : ImageProcessorConfig{};
}

std::string ErrorOf(const json& fields) {
  const auto config = ReadImageProcessorConfig(fields, "p.json");
  return config.ok() ? "" : std::string(config.status().message());
}

TEST(ImageProcessor, ReadsTheConfig) {
  const ImageProcessorConfig defaults = Read(json::object());
  EXPECT_EQ(defaults.size->height, 224u);
  EXPECT_EQ(defaults.scale, 1.0 / 255.0);
  EXPECT_EQ(defaults.mean[2], 0.5);
  const ImageProcessorConfig vit =
      Read({{"do_normalize", true},
            {"do_rescale", true},
            {"do_resize", true},
            {"image_mean", {0.1, 0.2, 0.3}},
            {"image_processor_type", "ViTImageProcessor"},
            {"image_std", {0.4, 0.5, 0.6}},
            {"resample", 3},
            {"rescale_factor", 0.25},
            {"size", {{"height", 384}, {"width", 256}}}});
  EXPECT_EQ(vit.size->height, 384u);
  EXPECT_EQ(vit.size->width, 256u);
  EXPECT_EQ(vit.filter, ResizeFilter::kBicubic);
  EXPECT_EQ(vit.scale, 0.25);
  EXPECT_EQ(vit.mean[1], 0.2);
  EXPECT_EQ(vit.std[2], 0.6);
  EXPECT_FALSE(vit.crop.has_value());
  const ImageProcessorConfig clip = Read({{"do_center_crop", true},
                                          {"do_convert_rgb", true},
                                          {"crop_size", 224},
                                          {"size", {{"shortest_edge", 256}}}});
  EXPECT_FALSE(clip.size.has_value());
  EXPECT_EQ(clip.shortest_edge, 256u);
  EXPECT_EQ(clip.crop->height, 224u);
  EXPECT_EQ(clip.crop->width, 224u);
  EXPECT_EQ(Read({{"size", 96}}).size->width, 96u);
  const ImageProcessorConfig plain = Read({{"do_resize", false},
                                           {"do_rescale", false},
                                           {"do_normalize", false},
                                           {"do_pad", false}});
  EXPECT_FALSE(plain.size.has_value());
  EXPECT_EQ(plain.scale, 1.0);
  EXPECT_EQ(plain.std[0], 1.0);
}

TEST(ImageProcessor, ConfigErrorsNameTheField) {
  EXPECT_EQ(ErrorOf(json::array()),
            "p.json: expected an object, found an array of 0");
  for (const json& bad :
       {json("a"), json(0), json(65536), json(json::array({1})), json(1.5)}) {
    EXPECT_EQ(ErrorOf({{"size", bad}}).rfind("p.json: size: expected", 0), 0u);
    const json height = {{"height", bad}, {"width", 5}};
    EXPECT_EQ(
        ErrorOf({{"size", height}}).rfind("p.json: size: height: expected", 0),
        0u);
    EXPECT_EQ(ErrorOf({{"size", {{"shortest_edge", bad}}}})
                  .rfind("p.json: size: shortest_edge: expected", 0),
              0u);
    EXPECT_EQ(ErrorOf({{"do_center_crop", true}, {"crop_size", bad}})
                  .rfind("p.json: crop_size: expected", 0),
              0u);
    EXPECT_EQ(ErrorOf({{"image_mean", bad}}).rfind("p.json: image_mean: ", 0),
              0u);
  }
  EXPECT_EQ(ErrorOf({{"size", {{"longest_edge", 5}}}}),
            "p.json: size: height: missing");
  EXPECT_EQ(ErrorOf({{"do_center_crop", true}}), "p.json: crop_size: missing");
  EXPECT_EQ(ErrorOf({{"resample", 1}}),
            "p.json: resample: expected 2 (bilinear) or 3 (bicubic), found 1");
  EXPECT_EQ(ErrorOf({{"do_flip_channel_order", true}}),
            "p.json: do_flip_channel_order: expected false, found true");
  EXPECT_EQ(ErrorOf({{"crop_pct", 0.9}}),
            "p.json: crop_pct: expected none, found 0.9");
  for (const double bad : {0.0, -1.0, 1e-300, 1e300}) {
    EXPECT_EQ(ErrorOf({{"image_std", {1.0, bad, 1.0}}})
                  .rfind("p.json: image_std: expected a number from 1e-06", 0),
              0u);
    EXPECT_EQ(
        ErrorOf({{"rescale_factor", bad}})
            .rfind("p.json: rescale_factor: expected a number from 1e-06", 0),
        0u);
  }
}

// The step of `config` that makes the size.
std::pair<size_t, size_t> SizeOf(const json& fields, size_t height,
                                 size_t width) {
  const Image image{height, width, std::vector<uint8_t>(height * width * 3)};
  const auto found = ProcessImage(Read(fields), image);
  EXPECT_TRUE(found.ok()) << found.status();
  if (!found.ok()) return {0, 0};
  EXPECT_EQ(found->values.size(), 3 * found->height * found->width);
  return {found->height, found->width};
}

TEST(ImageProcessor, Sizes) {
  using Pair = std::pair<size_t, size_t>;
  const json edge = {{"size", {{"shortest_edge", 10}}}};
  EXPECT_EQ(SizeOf(edge, 20, 20), Pair(10, 10));
  EXPECT_EQ(SizeOf(edge, 7, 12), Pair(10, 17));   // 17.1
  EXPECT_EQ(SizeOf(edge, 50, 29), Pair(17, 10));  // 17.2
  EXPECT_EQ(SizeOf({{"size", {{"shortest_edge", 10}}},
                    {"do_center_crop", true},
                    {"crop_size", {{"height", 8}, {"width", 12}}}},
                   7, 12),
            Pair(8, 12));
  EXPECT_EQ(SizeOf({{"size", 5}}, 7, 12), Pair(5, 5));
  EXPECT_EQ(SizeOf({{"do_resize", false}}, 7, 12), Pair(7, 12));
}

TEST(ImageProcessor, StepsComeInTheirOrder) {
  // A row 0, 255 becomes 0, 64, 191, 255; its middle is scaled and normalized,
  // and so are the zeros around it.
  const json fields = {{"size", {{"height", 1}, {"width", 4}}},
                       {"do_center_crop", true},
                       {"crop_size", {{"height", 3}, {"width", 2}}},
                       {"rescale_factor", 0.5},
                       {"image_mean", {1, 2, 3}},
                       {"image_std", {1, 2, 4}}};
  const Image image{1, 2, {0, 0, 0, 255, 255, 255}};
  const auto found = ProcessImage(Read(fields), image);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->values,
            (std::vector<float>{-1, -1, 31, 94.5f, -1, -1,       //
                                -1, -1, 15, 46.75f, -1, -1,      //
                                -0.75f, -0.75f, 7.25f, 23.125f,  //
                                -0.75f, -0.75f}));
}

TEST(ImageProcessor, BadImages) {
  const ImageProcessorConfig config = Read({{"size", 4}});
  EXPECT_FALSE(ProcessImage(config, Image{}).ok());
  EXPECT_FALSE(ProcessImage(config, Image{2, 2, {1, 2, 3}}).ok());
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity(), -2e6f}) {
    const auto status =
        ProcessImage(config, FloatImage{1, 1, {0, bad, 0}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().rfind("image: value 1: expected a number", 0),
              0u);
  }
  // A line whose longer side would be too long.
  const ImageProcessorConfig edge = Read({{"size", {{"shortest_edge", 224}}}});
  const Image line{1, 60000, std::vector<uint8_t>(180000)};
  EXPECT_EQ(ProcessImage(edge, line).status().code(),
            absl::StatusCode::kResourceExhausted);
  const Image wrong{~size_t{0}, ~size_t{0} - 1, {}};
  EXPECT_EQ(ProcessImage(edge, wrong).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lanewise
