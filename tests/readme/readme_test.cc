// What README.md says is what the project does.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lanewise {
namespace {

using testing::HasSubstr;

std::string Read(const std::string& path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Standard output of a command; its exit code must be 0.
std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string output;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    output.append(buffer, n);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

TEST(Readme, ShowsTheEmbeddingExampleAsItIsBuilt) {
  const std::string example = Read("tests/readme/embed.cc");
  ASSERT_FALSE(example.empty());
  EXPECT_THAT(Read("README.md"), HasSubstr("```cpp\n" + example + "```"));
}

TEST(Readme, EmbeddingExampleRuns) {
  // The reference's greedy continuation begins so; see case.json.
  EXPECT_THAT(OutputOf("tests/readme/embed tests/data/models/llama"),
              HasSubstr("ret o8T"));
}

TEST(Readme, NamesTheTwoCommands) {
  const std::string readme = Read("README.md");
  EXPECT_THAT(readme, HasSubstr("./bazelw run //tools:generate -- --prompt"));
  EXPECT_THAT(readme, HasSubstr("./bazelw test //..."));
}

}  // namespace
}  // namespace lanewise
