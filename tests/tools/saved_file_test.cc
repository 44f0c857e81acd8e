#include "tools/saved_file.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

std::string Contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class SavedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  size_t Files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_;
};

TEST_F(SavedFileTest, ReplacesAndLeavesNothingElse) {
  const std::string path = folder_ / "a.npy";
  ASSERT_TRUE(SaveFile(path, "first").ok());
  EXPECT_EQ(Contents(path), "first");
  ASSERT_TRUE(SaveFile(path, std::string("sec\0ond", 7)).ok());
  EXPECT_EQ(Contents(path), std::string("sec\0ond", 7));
  EXPECT_EQ(Files(), 1u);
}

TEST_F(SavedFileTest, ErrorsNameThePath) {
  const std::string missing = folder_ / "none" / "a.npy";
  const absl::Status status = SaveFile(missing, "x");
  EXPECT_FALSE(status.ok());
  EXPECT_NE(std::string(status.message()).find(missing), std::string::npos);
  EXPECT_NE(std::string(SaveFile(folder_, "x").message()).find("a directory"),
            std::string::npos);
  EXPECT_NE(std::string(SaveFile("/dev/null", "x").message()).find("a device"),
            std::string::npos);
  EXPECT_FALSE(SaveFile("", "x").ok());
  EXPECT_EQ(Files(), 0u);
}

// The fields of the format, read back as its specification says.
TEST(NpyTest, HeaderAndValues) {
  const std::vector<float> values = {1.0f, -2.5f, 0.0f, 3e38f, 1e-40f, 7.0f};
  const std::string file = NpyFile({2, 3}, values);
  ASSERT_GE(file.size(), 10u);
  EXPECT_EQ(file.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t length = static_cast<uint8_t>(file[8]) |
                        size_t{static_cast<uint8_t>(file[9])} << 8;
  EXPECT_EQ((10 + length) % 64, 0u);
  const std::string dictionary = file.substr(10, length);
  EXPECT_EQ(dictionary.back(), '\n');
  EXPECT_EQ(dictionary.substr(0, dictionary.find('}') + 1),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
  ASSERT_EQ(file.size(), 10 + length + values.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(file.data() + 10 + length, values.data(),
                        values.size() * sizeof(float)),
            0);
}

TEST(NpyTest, OneAxisHasAComma) {
  EXPECT_NE(NpyHeader({5}).find("(5,)"), std::string::npos);
  EXPECT_NE(NpyHeader({0, 4}).find("(0, 4)"), std::string::npos);
  EXPECT_EQ(NpyFile({0}, {}), NpyHeader({0}));
}

}  // namespace
}  // namespace lanewise
