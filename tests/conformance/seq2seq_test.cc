// Encoder-decoders against the reference's outputs, with f32 activations and
// caches, on every target.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "golden_root.h"
#include "gtest/gtest.h"
#include "simd/context.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/seq2seq_runner.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

// The encoder-decoders in the tree, or where LANEWISE_GOLDEN names the whole
// suite all of them.
std::vector<std::string> Cases() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(
           golden.empty() ? "tests/data/models"
                          : golden + "/models/encoder-decoder",
           error)) {
    const auto folder = CaseFolder::Open(entry.path().string());
    if (folder.ok() &&
        folder->json().value("family", "") == "encoder-decoder") {
      folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

class Seq2SeqTest : public testing::TestWithParam<std::string> {};

TEST_P(Seq2SeqTest, EqualsReference) {
  for (const Target& target : Target::Available()) {
    SCOPED_TRACE(std::string(target.name()));
    Context::Options options;
    options.target = target;
    auto context = Context::Create(options);
    ASSERT_TRUE(context.ok());
    const auto report = RunSeq2SeqCase(GetParam(), **context);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->comparisons.empty());
    EXPECT_TRUE(report->passed()) << report->Failures();
    std::printf("%s on %s: %zu comparisons, largest error %.2g\n",
                report->name.c_str(), std::string(target.name()).c_str(),
                report->comparisons.size(), report->LargestError());
  }
}

// The other style of config.json gives the same.
TEST_P(Seq2SeqTest, LegacyConfigurationToo) {
  if (!LegacyFolder::Exists(GetParam())) return;
  const auto legacy = LegacyFolder::Create(GetParam());
  ASSERT_TRUE(legacy.ok()) << legacy.status();
  auto context = Context::Create({});
  ASSERT_TRUE(context.ok());
  const auto report = RunSeq2SeqCase(legacy->path(), **context);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->comparisons.empty());
  EXPECT_TRUE(report->passed()) << report->Failures();
}

std::string TestName(const testing::TestParamInfo<std::string>& param) {
  const fs::path path = param.param;
  std::string name =
      path.parent_path().filename().string() + "_" + path.filename().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Seq2SeqTest, testing::ValuesIn(Cases()),
                         TestName);

// A suite without cases tests nothing.
TEST(Seq2SeqCases, ThereAreSome) { EXPECT_GE(Cases().size(), 1u); }

}  // namespace
}  // namespace lanewise
