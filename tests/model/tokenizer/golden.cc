#include "tests/model/tokenizer/golden.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lanewise {

void ExpectEqual(const GoldenCounts& counts) {
  for (const LineCount* count :
       {&counts.encode, &counts.pairs, &counts.decode, &counts.bytes}) {
    EXPECT_EQ(count->equal, count->cases) << count->differences;
  }
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    ADD_FAILURE() << "cannot read " << path;
    return "";
  }
  return std::string(std::istreambuf_iterator<char>(file),
                     std::istreambuf_iterator<char>());
}

std::string TestDataPath(const std::string& path) {
  return absl::StrCat("tests/data/tokenizer/", path);
}

std::unique_ptr<Tokenizer> LoadTestTokenizer(const std::string& name) {
  auto tokenizer = Tokenizer::FromJson(
      ReadTestFile(TestDataPath(name + "/tokenizer.json")), "tokenizer.json");
  if (!tokenizer.ok()) {
    ADD_FAILURE() << name << ": " << tokenizer.status();
    return nullptr;
  }
  return *std::move(tokenizer);
}

}  // namespace lanewise
