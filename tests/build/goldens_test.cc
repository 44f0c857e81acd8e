// @goldens works with and without LANEWISE_GOLDEN (third_party/goldens).
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "golden_root.h"
#include "gtest/gtest.h"

namespace lanewise {
namespace {

TEST(Goldens, MarkerFileAndHeaderAgree) {
  const char* srcdir = std::getenv("TEST_SRCDIR");
  const char* path = std::getenv("GOLDEN_ROOT_FILE");
  ASSERT_NE(srcdir, nullptr);
  ASSERT_NE(path, nullptr);
  std::ifstream file(std::string(srcdir) + "/" + path);
  ASSERT_TRUE(file) << path;
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  EXPECT_EQ(text, kGoldenRoot);
}

TEST(Goldens, FilesAreReadableThroughTheRoot) {
  const std::string root = kGoldenRoot;
  if (root.empty()) GTEST_SKIP() << "LANEWISE_GOLDEN names no folder";
  EXPECT_EQ(root[0], '/');
  EXPECT_TRUE(std::ifstream(root + "/README.md").good()) << root;
}

}  // namespace
}  // namespace lanewise
