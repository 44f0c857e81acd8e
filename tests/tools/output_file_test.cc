// Files that appear once they are whole.
#include "tools/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

size_t FilesIn(const std::string& folder) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files += entry.path().empty() ? 0 : 1;
  }
  return files;
}

TEST(OutputFile, IsThereOnceItIsFinished) {
  const std::string folder = TestFolder("finished");
  const std::string path = folder + "/out";
  auto file = OutputFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write("one ").ok());
  ASSERT_TRUE((*file)->Write("").ok());
  ASSERT_TRUE((*file)->Write(std::string("t\0wo", 4)).ok());
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE((*file)->Finish().ok());
  EXPECT_EQ(ReadFile(path), std::string("one t\0wo", 8));
  file->reset();
  EXPECT_EQ(FilesIn(folder), 1u);
}

TEST(OutputFile, WithoutFinishWhatWasThereStays) {
  const std::string folder = TestFolder("dropped");
  WriteFile(folder + "/out", "before");
  for (const std::string name : {"/out", "/new"}) {
    auto file = OutputFile::Create(folder + name);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->Write("half").ok());
  }
  EXPECT_EQ(ReadFile(folder + "/out"), "before");
  EXPECT_EQ(FilesIn(folder), 1u);
}

TEST(OutputFile, TwoAtOnceDoNotMeet) {
  const std::string path = TestFolder("two") + "/out";
  auto first = OutputFile::Create(path), second = OutputFile::Create(path);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_TRUE((*first)->Write("first").ok());
  ASSERT_TRUE((*second)->Write("second").ok());
  ASSERT_TRUE((*first)->Finish().ok());
  EXPECT_EQ(ReadFile(path), "first");
  ASSERT_TRUE((*second)->Finish().ok());
  EXPECT_EQ(ReadFile(path), "second");
}

TEST(OutputFile, LinksStayLinks) {
  const std::string folder = TestFolder("links");
  WriteFile(folder + "/real", "before");
  fs::create_symlink("real", folder + "/link");
  auto file = OutputFile::Create(folder + "/link");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write("after").ok());
  ASSERT_TRUE((*file)->Finish().ok());
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_EQ(ReadFile(folder + "/real"), "after");
}

TEST(OutputFile, DevicesAndPipesAreWrittenToAndStay) {
  auto null = OutputFile::Create("/dev/null");
  ASSERT_TRUE(null.ok()) << null.status();
  ASSERT_TRUE((*null)->Write("gone").ok());
  ASSERT_TRUE((*null)->Finish().ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));

  const std::string pipe = TestFolder("pipe") + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  auto file = OutputFile::Create(pipe);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Write("through").ok());
  ASSERT_TRUE((*file)->Finish().ok());
  char text[16] = {};
  EXPECT_EQ(read(reader, text, sizeof(text)), 7);
  EXPECT_EQ(std::string(text), "through");
  close(reader);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFile, ErrorsNameTheFile) {
  const std::string folder = TestFolder("errors");
  for (const std::string& path :
       {folder, folder + "/none/out", std::string(), std::string("a\0b", 3)}) {
    const auto file = OutputFile::Create(path);
    ASSERT_FALSE(file.ok()) << path;
    const std::string message(file.status().message());
    if (path.size() > 3) {
      EXPECT_EQ(message.rfind(path + ": cannot write", 0), 0u) << message;
    } else {
      EXPECT_NE(message.find("expected the path of a file"), std::string::npos);
    }
  }
  auto full = OutputFile::Create("/dev/full");
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_FALSE((*full)->Write("x").ok());
  EXPECT_EQ(FilesIn(folder), 0u);
}

}  // namespace
}  // namespace lanewise
