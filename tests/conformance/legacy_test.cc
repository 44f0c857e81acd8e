// Models with the older style of config.json, which most published folders
// have, give the reference's outputs too.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "golden_root.h"
#include "gtest/gtest.h"
#include "model/format/text_file.h"
#include "simd/context.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/model_runner.h"

namespace lanewise {
namespace {

void AddFolders(const std::string& parent, int depth,
                std::vector<std::string>* folders) {
  const auto names = ListFolder(parent);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = parent + "/" + name;
    if (LegacyFolder::Exists(path)) folders->push_back(path);
    if (depth > 1) AddFolders(path, depth - 1, folders);
  }
}

// The models in the tree that have such a file, or where LANEWISE_GOLDEN names
// the whole suite all of its models.
std::vector<std::string> Cases() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  std::vector<std::string> folders;
  AddFolders(golden.empty() ? "tests/data/models" : golden + "/models", 2,
             &folders);
  return folders;
}

class LegacyTest : public testing::TestWithParam<std::string> {};

TEST_P(LegacyTest, BothStylesGiveTheReferencesOutputs) {
  const auto context = Context::Create({});
  ASSERT_TRUE(context.ok()) << context.status();
  const auto report = RunModelCase(GetParam(), **context);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed()) << report->Failures();
  const auto legacy = std::count_if(
      report->comparisons.begin(), report->comparisons.end(),
      [](const Comparison& c) { return absl::StartsWith(c.run, "legacy "); });
  EXPECT_GT(legacy, 0);
  EXPECT_EQ(static_cast<size_t>(legacy) * 2, report->comparisons.size());
}

INSTANTIATE_TEST_SUITE_P(Models, LegacyTest, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<std::string>& param) {
                           std::string name = param.param.substr(
                               param.param.find("models/") + 7);
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c)))
                               c = '_';
                           }
                           return name;
                         });

// A suite without cases tests nothing.
TEST(LegacyCases, ThereAreSome) { EXPECT_GE(Cases().size(), 5u); }

// Nothing is left behind, and what is not there is an error.
TEST(LegacyFolderTest, IsRemoved) {
  std::string path;
  {
    const auto folder = LegacyFolder::Create("tests/data/models/llama");
    ASSERT_TRUE(folder.ok()) << folder.status();
    path = folder->path();
    EXPECT_TRUE(FileExists(path + "/model.safetensors"));
    const auto legacy = ReadTextFile(path + "/config.json");
    ASSERT_TRUE(legacy.ok()) << legacy.status();
    EXPECT_EQ(*legacy,
              *ReadTextFile("tests/data/models/llama/config.legacy.json"));
  }
  EXPECT_FALSE(FileExists(path));
  EXPECT_FALSE(LegacyFolder::Create("tests/data/models/none").ok());
}

}  // namespace
}  // namespace lanewise
