// The whole outside suite, where LANEWISE_GOLDEN names its folder.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

std::string GoldenRoot() {
  const char* root = std::getenv("LANEWISE_GOLDEN");
  return root == nullptr ? "" : root;
}

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
  const auto show = [](const GoldenCount& count) {
    return absl::StrFormat("%d/%d", count.equal, count.cases);
  };
  std::cout << absl::StrFormat(
                   "%-24s encode %8s pairs %5s decode %8s bytes %6s", name,
                   show(counts.encode), show(counts.pairs), show(counts.decode),
                   show(counts.bytes))
            << std::endl;
  for (const GoldenCount* count :
       {&counts.encode, &counts.pairs, &counts.decode, &counts.bytes}) {
    EXPECT_EQ(count->equal, count->cases) << name;
  }
  EXPECT_GT(counts.encode.cases, 0u) << name;
}

TEST(Conformance, TokenizerJson) {
  if (GoldenRoot().empty()) GTEST_SKIP() << "LANEWISE_GOLDEN is not set";
  const char* only = std::getenv("LANEWISE_GOLDEN_ONLY");
  for (const std::string& folder : Folders(GoldenRoot() + "/tokenizers")) {
    const std::string name = std::filesystem::path(folder).filename();
    if (only != nullptr && name != only) continue;
    const auto tokenizer = Tokenizer::FromJson(
        ReadTestFile(folder + "/tokenizer.json"), "tokenizer.json");
    if (!tokenizer.ok()) {
      ADD_FAILURE() << name << ": " << tokenizer.status();
      continue;
    }
    Report(name, CompareGoldens(**tokenizer, folder));
  }
}

}  // namespace
}  // namespace lanewise
