// Decoder-only models against the reference's outputs, with f32 activations
// and cache, on every target.
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
#include "tests/conformance/decoder_runner.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

bool IsDecoder(const fs::path& folder) {
  const auto opened = CaseFolder::Open(folder.string());
  return opened.ok() &&
         opened->json().value("family", "decoder") != "encoder" &&
         opened->json().value("family", "decoder") != "encoder-decoder";
}

// The cases in the tree, and where LANEWISE_GOLDEN names the whole suite all of
// its decoders and GGUF models.
std::vector<std::string> Cases() {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& root) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(root, error)) {
      if (fs::exists(entry.path() / "golden.safetensors") &&
          entry.path().filename() != "types" && IsDecoder(entry.path())) {
        folders.push_back(entry.path().string());
      }
    }
  };
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  add(golden.empty() ? "tests/data/models" : golden + "/models/decoder");
  add(golden.empty() ? "tests/data/gguf" : golden + "/gguf");
  std::sort(folders.begin(), folders.end());
  return folders;
}

class DecoderTest : public testing::TestWithParam<std::string> {};

TEST_P(DecoderTest, EqualsReference) {
  for (const Target& target : Target::Available()) {
    SCOPED_TRACE(std::string(target.name()));
    Context::Options options;
    options.target = target;
    auto context = Context::Create(options);
    ASSERT_TRUE(context.ok());
    const auto report = RunDecoderCase(
        GetParam(), **context, {"forward", "perplexity", "generate", "text"});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->comparisons.empty());
    EXPECT_TRUE(report->passed()) << report->Failures();
    std::printf("%s on %s: %zu comparisons, %zu runs skipped\n",
                report->name.c_str(), std::string(target.name()).c_str(),
                report->comparisons.size(), report->skipped.size());
  }
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

INSTANTIATE_TEST_SUITE_P(Models, DecoderTest, testing::ValuesIn(Cases()),
                         TestName);

// A suite without cases tests nothing.
TEST(DecoderCases, ThereAreSome) { EXPECT_GE(Cases().size(), 20u); }

}  // namespace
}  // namespace lanewise
