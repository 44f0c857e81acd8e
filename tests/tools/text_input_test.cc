// Texts out of arguments, files and pipes.
#include "tools/text_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

using Texts = std::vector<std::string>;

absl::StatusOr<Texts> Read(const std::string& in, TextInput input) {
  const std::string path = TestFolder("text_input") + "/in";
  WriteFile(path, in);
  Invocation call;
  call.io.in = open(path.c_str(), O_RDONLY);
  EXPECT_GE(call.io.in, 0);
  auto texts = ReadTexts(call, input);
  close(call.io.in);
  if (input.file == "FILE") {
    input.file = path;
    return ReadTexts(call, input);
  }
  return texts;
}

TEST(TextInput, ArgumentsThenTheFileThenThePipe) {
  EXPECT_EQ(*Read("x\ny\n", {{"a", "b\nc"}, {}, false}), (Texts{"a", "b\nc"}));
  EXPECT_EQ(*Read("x\ny\n", {}), (Texts{"x", "y"}));
  EXPECT_EQ(*Read("x\ny\n", {{}, "FILE", false}), (Texts{"x", "y"}));
  EXPECT_EQ(*Read("x\ny\n", {{}, "-", false}), (Texts{"x", "y"}));
}

TEST(TextInput, LinesKeepTheirNumbers) {
  EXPECT_EQ(*Read("x\n\ny", {}), (Texts{"x", "", "y"}));
  EXPECT_EQ(*Read("\nx\n", {}), (Texts{"", "x"}));
  EXPECT_EQ(*Read("x\r\n\r\ny\r\n", {}), (Texts{"x", "", "y"}));
  EXPECT_EQ(*Read("x\n\n", {}), (Texts{"x", ""}));
}

TEST(TextInput, AWholeFileIsOneText) {
  EXPECT_EQ(*Read("x\n\ny\n", {{}, {}, true}), (Texts{"x\n\ny"}));
}

TEST(TextInput, EmptyInputIsAnError) {
  for (const std::string in : {"", "\n"}) {
    const auto texts = Read(in, {});
    ASSERT_FALSE(texts.ok());
    EXPECT_NE(texts.status().message().find("the input is empty"),
              std::string::npos);
  }
  EXPECT_FALSE(Read("x", {{}, "/none", false}).ok());
}

TEST(TextInput, ContradictionsAreUsageErrors) {
  EXPECT_TRUE(Check({{"a"}, {}, false}, true).ok());
  EXPECT_TRUE(Check({{}, "f", true}, true).ok());
  EXPECT_TRUE(Check({{}, {}, true}, false).ok());
  EXPECT_FALSE(Check({{}, {}, false}, true).ok());
  EXPECT_FALSE(Check({{"a"}, "f", false}, false).ok());
  EXPECT_FALSE(Check({{"a"}, {}, true}, false).ok());
}

}  // namespace
}  // namespace lanewise
