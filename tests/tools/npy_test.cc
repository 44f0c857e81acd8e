#include "tools/npy.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

// The fields of the format, read back as its specification says.
TEST(Npy, HeaderHasItsLengthAndAlignment) {
  const std::string file = NpyHeader({2, 3});
  ASSERT_GE(file.size(), 10u);
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t length = static_cast<uint8_t>(file[8]) |
                        size_t{static_cast<uint8_t>(file[9])} << 8;
  ASSERT_EQ(file.size(), 10 + length);
  EXPECT_EQ(file.size() % 64, 0u);
  EXPECT_EQ(file.back(), '\n');
  EXPECT_EQ(file.substr(10, file.find('}') - 9),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
}

TEST(Npy, AnyNumberOfAxes) {
  EXPECT_NE(NpyHeader({5}).find("(5,)"), std::string::npos);
  EXPECT_NE(NpyHeader({0, 4}).find("(0, 4)"), std::string::npos);
  EXPECT_NE(NpyHeader({1, 2, 3, 4}).find("(1, 2, 3, 4)"), std::string::npos);
  // Lengths around a multiple of 64.
  for (size_t axis = 1, i = 0; i < 60; ++i) {
    EXPECT_EQ(NpyHeader(std::vector<size_t>(i, axis)).size() % 64, 0u) << i;
  }
}

TEST(Npy, ValuesAreLittleEndian) {
  EXPECT_EQ(NpyValues({1.0f, -2.5f}),
            std::string("\x00\x00\x80\x3f\x00\x00\x20\xc0", 8));
  EXPECT_EQ(NpyValues({}), "");
}

}  // namespace
}  // namespace lanewise
