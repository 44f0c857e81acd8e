// PPM files made byte by byte: what is read, and what is refused.
#include "model/features/ppm.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "model/format/mapped_file.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using absl::StatusCode;

absl::StatusOr<Image> Read(const std::string& bytes) {
  return ReadPpm(MappedFile::FromBytes("a.ppm", Bytes(bytes)));
}

void ExpectError(const std::string& bytes, StatusCode code,
                 const std::string& part) {
  Refusal refusal;
  refusal.code = code;
  refusal.parts = {"a.ppm: ", part};
  const TempDir dir;
  const std::string path = dir.Write("a.ppm", bytes);
  ExpectRefused([&] { return ReadPpm(path).status(); }, refusal);
}

TEST(Ppm, ReadsPixels) {
  for (const std::string header :
       {"P6 2 1 255\n", "P6\n2 1\n255\n", "P6\n# by hand 7\n2\t#\n1 #x\n255 ",
        "P6\r\n2\v1\f255\r"}) {
    const auto image = Read(header + "abc\xff\n ");
    ASSERT_TRUE(image.ok()) << image.status();
    EXPECT_EQ(image->width, 2u);
    EXPECT_EQ(image->height, 1u);
    EXPECT_EQ(image->pixels, Bytes("abc\xff\n "));
  }
  // One space ends the header, pixels may look like another or a comment.
  const auto image = Read("P6 1 2 255\n\n#9P6 more");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->height, 2u);
  EXPECT_EQ(image->pixels, Bytes("\n#9P6 "));
}

TEST(PpmBad, NotSuchAFile) {
  const auto code = StatusCode::kInvalidArgument;
  ExpectError("", code, "expected a binary PPM file");
  ExpectError("P", code, "found \"P\"");
  ExpectError("P3 1 1 255\n1 2 3", code, "found \"P3 1 1 255");
  ExpectError("\x89PNG\r\n", code, "expected a binary PPM file");
  ExpectError("P6 x", code, "width: expected a number up to 1000000000");
  ExpectError("P6 -2 2 255\n", code, "width: expected a number");
  ExpectError("P6 2 ", code, "height: expected a number");
  ExpectError("P6 2 2 # 255\n", code, "maximum: expected a number");
  ExpectError("P6 0 2 255\n", code, "expected at least one pixel");
  ExpectError("P6 99999999999999999999999 2 255\n", code, "width: expected");
  ExpectError("P6 #" + std::string(70000, 'x'), code, "width: expected");
}

TEST(PpmBad, OtherMaximum) {
  for (const std::string maximum : {"0", "1", "254", "256", "65535"}) {
    ExpectError("P6 1 1 " + maximum + "\n......", StatusCode::kUnimplemented,
                "maximum: expected 255, found " + maximum);
  }
}

// The size is checked before anything is allocated for it.
TEST(PpmBad, Sizes) {
  ExpectError("P6 65536 1 255\n", StatusCode::kResourceExhausted,
              "found 65536 x 1");
  ExpectError("P6 60000 60000 255\n", StatusCode::kResourceExhausted,
              "found 60000 x 60000");
  ExpectError("P6 1000000000 1000000000 255\n", StatusCode::kResourceExhausted,
              "found 1000000000 x 1000000000");
  ExpectError("P6 10000 10000 255\n", StatusCode::kDataLoss,
              "expected 300000000 bytes of pixels, found 0");
}

TEST(PpmBad, CutAnywhere) {
  const std::string bytes = "P6\n2 2\n255\n............";
  ASSERT_TRUE(Read(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // Cut within 255, the maximum is another.
    StatusCode code = StatusCode::kDataLoss;
    if (size < 10) code = StatusCode::kUnimplemented;
    if (size < 8) code = StatusCode::kInvalidArgument;
    ExpectError(bytes.substr(0, size), code, "");
  }
}

TEST(PpmBad, AnyByteChanged) {
  const std::string bytes = "P6\n2 2\n255\n............";
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(value);
      const auto image = Read(changed);
      if (image.ok()) {
        EXPECT_EQ(image->pixels.size(), 3 * image->width * image->height);
        EXPECT_LE(image->pixels.size(), 12u);
      } else {
        EXPECT_EQ(image.status().message().rfind("a.ppm: ", 0), 0u);
      }
    }
  }
}

TEST(PpmBad, NoSuchFile) {
  EXPECT_EQ(ReadPpm("/nowhere/a.ppm").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lanewise
