// GGUF vocabularies in the tree, and the whole outside suite where there is one
// (@goldens: an absent folder is an empty group).
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "golden_root.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

constexpr char kInTree[] = "tests/data/gguf";

std::string GoldenRoot() { return kGoldenRoot; }

std::vector<std::string> Folders(const std::string& parent) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(parent, error)) {
    if (entry.is_directory()) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

void Report(const std::string& name, const GoldenCounts& counts) {
  const auto show = [](const LineCount& count) {
    return absl::StrFormat("%d/%d", count.equal, count.cases);
  };
  std::cout << absl::StrFormat(
                   "%-24s encode %8s pairs %5s decode %8s bytes %6s", name,
                   show(counts.encode), show(counts.pairs), show(counts.decode),
                   show(counts.bytes))
            << std::endl;
  SCOPED_TRACE(name);
  ExpectEqual(counts);
  EXPECT_GT(counts.encode.cases, 0u) << name;
}

TEST(Conformance, TokenizerJson) {
  if (GoldenRoot().empty()) return;
  for (const std::string& folder : Folders(GoldenRoot() + "/tokenizers")) {
    const std::string name = std::filesystem::path(folder).filename();
    const auto tokenizer = Tokenizer::FromJson(
        ReadTestFile(folder + "/tokenizer.json"), "tokenizer.json");
    if (!tokenizer.ok()) {
      ADD_FAILURE() << name << ": " << tokenizer.status();
      continue;
    }
    Report(name, CompareGoldens(**tokenizer, folder));
  }
}

TEST(Conformance, GgufVocabularies) {
  if (GoldenRoot().empty()) return;
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(GoldenRoot() + "/vocab", error)) {
    if (entry.path().extension() == ".gguf") {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  EXPECT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const absl::StatusOr<LineCount> count = CompareVocabulary(path);
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->equal, count->cases) << count->differences;
    EXPECT_GT(count->cases, 30u);
    std::cout << absl::StrFormat(
                     "%-32s encode %d/%d",
                     std::filesystem::path(path).filename().string(),
                     count->equal, count->cases)
              << std::endl;
  }
}

TEST(Conformance, GgufModels) {
  const std::string root =
      GoldenRoot().empty() ? kInTree : GoldenRoot() + "/gguf";
  size_t models = 0;
  for (const std::string& folder : Folders(root)) {
    const std::string list = folder + "/tokenize.jsonl";
    if (!std::filesystem::exists(list)) continue;
    const auto checkpoint = Checkpoint::Open(folder + "/model.gguf");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto tokenizer = Tokenizer::Load(**checkpoint);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    GoldenCounts counts;
    counts.encode =
        CompareEncodeFile(**tokenizer, list, /*decoded_is_plain=*/true);
    Report(std::filesystem::path(folder).filename(), counts);
    ++models;
  }
  EXPECT_GE(models, 9u);
}

}  // namespace
}  // namespace lanewise
