// Resizing against the reference's image library (tests/data/images). Of floats
// against recorded values: //tests/conformance/kernels.
#include "model/features/image.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

using nlohmann::json;

std::vector<uint8_t> FromHex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(
        static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(Resize, BytesEqualTheReferenceLibrarys) {
  std::ifstream file("tests/data/images/resize.json");
  const json cases = json::parse(file)["cases"];
  ASSERT_EQ(cases.size(), 18u);
  for (const json& c : cases) {
    const Image image{c["height"], c["width"], FromHex(c["pixels"])};
    const bool cubic = c["filter"] == "bicubic";
    const auto found =
        Resize(image, c["to_height"], c["to_width"],
               {cubic ? ResizeFilter::kBicubic : ResizeFilter::kBilinear});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->height, c["to_height"]);
    EXPECT_EQ(found->width, c["to_width"]);
    EXPECT_EQ(found->pixels, FromHex(c["resized"]))
        << c["filter"] << " " << image.height << " x " << image.width << " to "
        << found->height << " x " << found->width;
  }
}

Image Random(size_t height, size_t width, uint64_t seed) {
  TestRandom random(seed);
  Image image{height, width, {}};
  for (size_t i = 0; i < height * width * kImageChannels; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(random.Bits() >> 56));
  }
  return image;
}

TEST(Resize, TheSameSizeIsTheSameImage) {
  const Image image = Random(5, 7, 1);
  for (const auto filter : {ResizeFilter::kBilinear, ResizeFilter::kBicubic}) {
    const auto same = Resize(image, 5, 7, {filter});
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(same->pixels, image.pixels);
  }
}

TEST(Resize, PlainColoursStay) {
  for (const uint8_t value : {0, 1, 128, 255}) {
    Image image{6, 10, std::vector<uint8_t>(180, value)};
    FloatImage floats{6, 10, std::vector<float>(180, value)};
    for (const auto filter :
         {ResizeFilter::kBilinear, ResizeFilter::kBicubic}) {
      for (const size_t size : {1, 3, 17, 200}) {
        const auto bytes = Resize(image, size, 2 * size, {filter});
        ASSERT_TRUE(bytes.ok());
        for (const uint8_t pixel : bytes->pixels) ASSERT_EQ(pixel, value);
        const auto numbers = Resize(floats, size, 2 * size, {filter});
        ASSERT_TRUE(numbers.ok());
        for (const float pixel : numbers->pixels) {
          ASSERT_NEAR(pixel, value, 1e-4);
        }
      }
    }
  }
}

// Bytes are floats rounded twice.
TEST(Resize, BytesAreNearFloats) {
  Image image = Random(40, 33, 2);
  // So that no bicubic line goes below 0 or above 255.
  for (uint8_t& pixel : image.pixels) pixel = 64 + pixel / 2;
  const FloatImage floats{
      40, 33, std::vector<float>(image.pixels.begin(), image.pixels.end())};
  for (const auto filter : {ResizeFilter::kBilinear, ResizeFilter::kBicubic}) {
    for (const size_t size : {9, 33, 71}) {
      const auto bytes = Resize(image, size, size, {filter});
      const auto numbers = Resize(floats, size, size, {filter});
      ASSERT_TRUE(bytes.ok() && numbers.ok());
      for (size_t i = 0; i < bytes->pixels.size(); ++i) {
        ASSERT_NEAR(bytes->pixels[i], numbers->pixels[i], 1.3f) << i;
      }
    }
  }
}

TEST(Resize, SizesAreChecked) {
  const Image image = Random(2, 3, 3);
  using absl::StatusCode;
  EXPECT_EQ(Resize(image, 0, 3, {}).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Resize(image, 65536, 3, {}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Resize(image, ~size_t{0}, ~size_t{0}, {}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Resize(image, 60000, 60000, {}).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_EQ(Resize(Image{}, 2, 2, {}).status().code(),
            StatusCode::kInvalidArgument);
  const Image lacking{2, 3, std::vector<uint8_t>(17)};
  EXPECT_EQ(Resize(lacking, 2, 2, {}).status().message(),
            "image: expected 18 values, found 17");
  EXPECT_FALSE(CenterCrop(lacking, 2, 2).ok());
  EXPECT_FALSE(CenterCrop(image, 2, 0).ok());
  // The output is small, but what lies between is not.
  const Image tall{65535, 1, std::vector<uint8_t>(3 * 65535)};
  EXPECT_EQ(Resize(tall, 1, 60000, {}).status().code(),
            StatusCode::kResourceExhausted);
}

// Pixels 1, 2, … in all three channels.
Image Numbered(size_t height, size_t width) {
  Image image{height, width, {}};
  for (size_t i = 0; i < height * width; ++i) {
    image.pixels.insert(image.pixels.end(), 3, static_cast<uint8_t>(i + 1));
  }
  return image;
}

void ExpectCrop(const Image& image, size_t height, size_t width,
                const std::vector<int>& expected) {
  const auto crop = CenterCrop(image, height, width);
  ASSERT_TRUE(crop.ok()) << crop.status();
  EXPECT_EQ(crop->height, height);
  EXPECT_EQ(crop->width, width);
  ASSERT_EQ(crop->pixels.size(), 3 * expected.size());
  for (size_t i = 0; i < crop->pixels.size(); ++i) {
    EXPECT_EQ(crop->pixels[i], expected[i / 3]) << i;
  }
}

TEST(CenterCrop, WithinAndBeyondTheImage) {
  const Image image = Numbered(3, 4);
  ExpectCrop(image, 3, 4, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  ExpectCrop(image, 1, 2, {6, 7});
  ExpectCrop(image, 2, 3, {1, 2, 3, 5, 6, 7});
  // As the reference: of an odd rest, what is before the image is larger.
  ExpectCrop(image, 4, 1, {0, 2, 6, 10});
  ExpectCrop(Numbered(1, 1), 2, 4, {0, 0, 0, 0, 0, 0, 1, 0});
}

}  // namespace
}  // namespace lanewise
