// B8: nothing in the library ends its host: no call that aborts, exits or
// throws is in its sources, and nothing depends on assert (B7).
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

// `code` with comments and the contents of literals replaced by spaces.
std::string Bare(const std::string& code) {
  std::string out = code;
  char quote = 0;
  bool comment = false;
  for (size_t i = 0; i < out.size(); ++i) {
    const char c = out[i];
    if (comment) {
      comment = c != '\n';
    } else if (quote != 0) {
      if (c == '\\') out[i++] = ' ';
      if (c == quote || c == '\n') quote = 0;  // raw literals have no escapes
    } else if (c == '/' && i + 1 < out.size() && out[i + 1] == '/') {
      comment = true;
    } else if (c == '"' || (c == '\'' &&
                            (i == 0 || !std::isalnum(static_cast<unsigned char>(
                                           out[i - 1]))))) {
      quote = c;
      continue;
    } else {
      continue;
    }
    if (c != '\n' && i < out.size()) out[i] = ' ';
  }
  return out;
}

// What ends or throws: by itself, or where a value is not what is expected.
const char kForbidden[] =
    R"(\b(abort|exit|_exit|quick_exit|_Exit|terminate|throw|assert|)"
    R"(HWY_ABORT|HWY_ASSERT|HWY_DASSERT|stoi|stol|stoll|stoul|stoull|stof|stod)\b|)"
    R"(\bD?P?Q?CHECK(_[A-Z]+)?\s*\(|\bABSL_D?CHECK|\bLOG\s*\(|\.at\(|>at\()";

TEST(SourceFaults, B7B8NothingAbortsExitsOrThrows) {
  const std::regex forbidden(kForbidden);
  size_t files = 0;
  for (const char* folder : {"model", "runtime", "simd"}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".cc" && extension != ".h") continue;
      std::ifstream stream(entry.path());
      const std::string code =
          Bare(std::string(std::istreambuf_iterator<char>(stream), {}));
      std::smatch match;
      EXPECT_FALSE(std::regex_search(code, match, forbidden))
          << entry.path() << ": " << match.str();
      ++files;
    }
  }
  EXPECT_GE(files, 200u);
}

// The search finds what it is for.
TEST(SourceFaults, B8TheSearchFindsWhatItIsFor) {
  const std::regex forbidden(kForbidden);
  for (const char* code :
       {"  std::abort();", "if (x) exit(1);", "throw 1;", "CHECK(x > 0);",
        "ABSL_CHECK_EQ(a, b);", "v.at(3)", "p->at(3)", "std::stoi(text)",
        "HWY_ASSERT(n);", "assert(n);", "f(\"a\\\"\"); abort();",
        "c == '\"' ? exit(1) : 0"}) {
    EXPECT_TRUE(std::regex_search(Bare(code), forbidden)) << code;
  }
  for (const char* code :
       {"// never abort()", "Fail(\"exit early\");", "static_assert(a == b);",
        "format(x)", "exit_code = 1;", "c = '\\''; d = \"abort\";",
        "x = 10'000; // throw"}) {
    EXPECT_FALSE(std::regex_search(Bare(code), forbidden)) << code;
  }
}

}  // namespace
}  // namespace lanewise
