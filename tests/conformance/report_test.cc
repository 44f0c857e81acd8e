// The program `report` over small suites: its rows, files and exit codes.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/tools/subprocess.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string ReadFile(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

RunResult Invoke(const std::vector<std::string>& arguments,
                 const RunOptions& options = {}) {
  return RunProgram("tests/conformance/report_no_model", arguments, options);
}

// The line of a case, "" when there is none.
std::string Row(const RunResult& result, const std::string& name) {
  for (const absl::string_view line : absl::StrSplit(result.out, '\n')) {
    if (absl::StartsWith(line, name + " ")) return std::string(line);
  }
  return "";
}

std::string LastLine(const RunResult& result) {
  const std::vector<std::string> lines =
      absl::StrSplit(result.out, '\n', absl::SkipEmpty());
  return lines.empty() ? "" : lines.back();
}

// By their contents: in runfiles files are links.
void CopyFolder(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    WriteFile(to / entry.path().filename(), ReadFile(entry.path()));
  }
}

// Another first value of one tensor of a safetensors file.
void DamageTensor(const fs::path& path, const std::string& tensor) {
  std::string bytes = ReadFile(path);
  ASSERT_GT(bytes.size(), 8u) << path;
  uint64_t header = 0;
  for (int i = 7; i >= 0; --i) {
    header = header << 8 | static_cast<unsigned char>(bytes[i]);
  }
  const json names = json::parse(bytes.substr(8, header), nullptr, false);
  ASSERT_TRUE(names.contains(tensor)) << path;
  const size_t first = names[tensor]["data_offsets"][0];
  char& exponent = bytes[8 + header + first + 3];
  exponent = static_cast<char>(exponent ^ 0x01);
  WriteFile(path, bytes);
}

void Replace(const fs::path& path, const std::string& from,
             const std::string& to) {
  std::string text = ReadFile(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << path << " " << from;
  text.replace(at, from.size(), to);
  WriteFile(path, text);
}

// A folder of the test's own.
fs::path MakeRoot() {
  const char* temporary = std::getenv("TEST_TMPDIR");
  EXPECT_NE(temporary, nullptr);
  const fs::path root =
      fs::path(temporary == nullptr ? "." : temporary) /
      testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::create_directories(root);
  return root;
}

// A suite with copies of one model: as it is, with damaged expected values,
// and of an architecture that there is none of.
class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = MakeRoot();
    Copy("whole");
    Copy("damaged");
    Copy("unheard_of");
    DamageTensor(Model("damaged") / "golden.safetensors", "single.logits");
    const fs::path config = Model("unheard_of") / "config.json";
    json edited = json::parse(ReadFile(config), nullptr, false);
    edited["model_type"] = "unheard_of";
    WriteFile(config, edited.dump());
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(root_, error);
  }

  fs::path Model(const std::string& name) const {
    return root_ / "models" / "decoder" / name;
  }

  void Copy(const std::string& name) {
    CopyFolder("tests/data/models/gpt2_hubstyle", Model(name));
  }

  fs::path root_;
};

TEST_F(ReportTest, ShowsEveryCaseAndFailsWhenOneFails) {
  const RunResult result = Invoke({"--suite", root_.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(absl::StartsWith(result.out, "case "));
  const std::string whole = Row(result, "models/decoder/whole");
  EXPECT_TRUE(absl::StrContains(whole, " GPT2LMHeadModel ")) << whole;
  EXPECT_TRUE(absl::StrContains(whole, " F32 ")) << whole;
  EXPECT_TRUE(absl::EndsWith(whole, "  PASS")) << whole;
  const std::string damaged = Row(result, "models/decoder/damaged");
  EXPECT_TRUE(absl::StrContains(
      damaged, "FAIL: 2 comparisons fail: single: logits: error "))
      << damaged;
  const std::string unheard = Row(result, "models/decoder/unheard_of");
  EXPECT_TRUE(absl::StrContains(
      unheard, "FAIL: config.json: model_type: architecture 'unheard_of' is"))
      << unheard;
  EXPECT_EQ(LastLine(result), "1 of 3 cases pass");
  // Aligned: the results of all rows begin in one column.
  EXPECT_EQ(whole.find("PASS"), damaged.find("FAIL"));
  EXPECT_EQ(whole.find("PASS"), unheard.find("FAIL"));
}

TEST_F(ReportTest, WritesJson) {
  const fs::path path = root_ / "report.json";
  EXPECT_EQ(
      Invoke({"--suite", root_.string(), "--json", path.string()}).exit_code,
      1);
  const json report = json::parse(ReadFile(path), nullptr, false);
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["passed"], 1);
  EXPECT_EQ(report["total"], 3);
  EXPECT_EQ(report["not_run"], 0);
  EXPECT_EQ(report["suite"], root_.string());
  ASSERT_EQ(report["cases"].size(), 3u);
  const json& damaged = report["cases"][0];
  EXPECT_EQ(damaged["case"], "models/decoder/damaged");
  EXPECT_EQ(damaged["result"], "FAIL");
  size_t failed = 0, outputs = 0;
  for (const json& comparison : damaged["comparisons"]) {
    failed += comparison["passed"] == false;
    EXPECT_EQ(comparison["passed"] == false, comparison.contains("failure"));
    outputs += comparison["outputs"].get<size_t>();
  }
  EXPECT_EQ(failed, 2u);  // one tensor, with either config.json
  EXPECT_EQ(damaged["outputs"], outputs);
  const json& whole = report["cases"][2];
  EXPECT_EQ(whole["case"], "models/decoder/whole");
  EXPECT_EQ(whole["result"], "PASS");
  EXPECT_EQ(whole["outputs"], outputs);
  EXPECT_GT(whole["largest_error"], 0.0);
  EXPECT_LT(whole["largest_error"], 1e-4);
  // Nothing but the report and the suite is left behind.
  size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(root_)) {
    entries += !entry.path().empty();
  }
  EXPECT_EQ(entries, 2u);
}

TEST_F(ReportTest, WritesMarkdown) {
  const fs::path path = root_ / "report.md";
  Invoke({"--suite", root_.string(), "--markdown", path.string()});
  const std::string text = ReadFile(path);
  EXPECT_TRUE(absl::StrContains(text, "1 of 3 cases pass"));
  EXPECT_TRUE(absl::StrContains(text, "| models/decoder/whole | GPT2LMHead"));
  EXPECT_TRUE(absl::StrContains(text, " | PASS |\n"));
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "|")) {
      const std::vector<std::string> cells = absl::StrSplit(line, " | ");
      EXPECT_EQ(cells.size(), 6u) << line;
    }
  }
}

TEST_F(ReportTest, SucceedsWhenAllCasesOfTheFilterPass) {
  const RunResult result =
      Invoke({"--suite", root_.string(), "--filter", "whole"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(LastLine(result), "1 of 1 cases pass");
  EXPECT_EQ(Row(result, "models/decoder/damaged"), "");
}

TEST_F(ReportTest, RunsOnTheTargetThatIsAskedFor) {
  const fs::path path = root_ / "report.json";
  const std::string unknown =
      Invoke({"--suite", root_.string(), "--target", "none"}).err;
  EXPECT_TRUE(absl::StrContains(unknown, "none")) << unknown;
  const RunResult result =
      Invoke({"--suite", root_.string(), "--filter", "whole", "--target",
              "sse2", "--json", path.string()});
  if (result.exit_code == 2) GTEST_SKIP() << result.err;  // no such CPU
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_EQ(json::parse(ReadFile(path), nullptr, false)["target"], "SSE2");
}

TEST_F(ReportTest, RelativePathsAreThoseOfTheCaller) {
  RunOptions options;
  options.environment = {{"BUILD_WORKING_DIRECTORY", root_.string()}};
  const RunResult result =
      Invoke({"--suite", ".", "--filter", "whole", "--json", "relative.json"},
             options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::exists(root_ / "relative.json"));
}

TEST_F(ReportTest, SaysBeforeTheWorkThatAFileCannotBeWritten) {
  const std::string path = (root_ / "no such folder" / "r.json").string();
  const RunResult result = Invoke({"--suite", root_.string(), "--json", path});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(absl::StrContains(result.err, path)) << result.err;
}

TEST_F(ReportTest, ADamagedCaseFileIsOneFailure) {
  WriteFile(Model("damaged") / "case.json", "{\"name\": 3, \"runs\": [");
  WriteFile(Model("unheard_of") / "case.json",
            "{\"family\": \"decoder\", \"runs\": [{\"name\": 1}]}");
  const RunResult result = Invoke({"--suite", root_.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(LastLine(result), "1 of 3 cases pass");
  EXPECT_TRUE(absl::StrContains(Row(result, "models/decoder/damaged"),
                                "FAIL: case.json: "))
      << result.out;
}

// What every kind of case is checked with can fail.
TEST(ReportKinds, DamagedExpectedValuesFail) {
  const fs::path root = MakeRoot();
  for (const char* folder : {"models/bert", "gguf/llama_q4_0",
                             "tokenizer/wordlevel", "kernels", "templates"}) {
    CopyFolder(fs::path("tests/data") / folder, root / folder);
  }
  const std::vector<std::string> arguments = {"--suite", root.string()};
  const RunResult before = Invoke(arguments);
  EXPECT_EQ(before.exit_code, 0) << before.out << before.err;

  DamageTensor(root / "models/bert/golden.safetensors", "one.pooler_output");
  DamageTensor(root / "gguf/llama_q4_0/golden.safetensors",
               "tensor.blk.0.attn_k.weight");
  Replace(root / "tokenizer/wordlevel/pairs.jsonl", "\"type_ids\":[",
          "\"type_ids\":[7,");
  DamageTensor(root / "kernels/softmax.safetensors", "normal_1.softmax");
  Replace(root / "templates/google-gemma-2-2b-it.jsonl", "\"rendered\": \"",
          "\"rendered\": \"x");
  const RunResult after = Invoke(arguments);
  EXPECT_EQ(after.exit_code, 1);
  const auto expect = [&](const std::string& name, const std::string& reason) {
    EXPECT_TRUE(absl::StrContains(Row(after, name), "FAIL: " + reason))
        << Row(after, name);
  };
  expect("models/bert", "2 comparisons fail: one: pooler_output: error ");
  expect("gguf/llama_q4_0", "file: tensors: 1 of ");
  expect("tokenizer/wordlevel", "tokenizer: pairs: 1 of ");
  expect("kernels/softmax", "normal_1: softmax: element 0: expected ");
  expect("templates/google-gemma-2-2b-it", "template: rendered: 1 of ");
  // Nothing else does.
  const std::vector<std::string> rows =
      absl::StrSplit(before.out, '\n', absl::SkipEmpty());
  EXPECT_EQ(LastLine(after), absl::StrCat(rows.size() - 2 - 5, " of ",
                                          rows.size() - 2, " cases pass"));
}

// A line, a case or a value of the wrong type is a failure, not the end of the
// program.
TEST(ReportKinds, WrongTypesFail) {
  const fs::path root = MakeRoot();
  const fs::path tokenizer = root / "tokenizer/wordlevel";
  CopyFolder("tests/data/tokenizer/wordlevel", tokenizer);
  WriteFile(tokenizer / "encode.jsonl",
            "{\"text\": 3, \"ids\": {\"a\": 1}}\n[]\nno JSON\n"
            "{\"text\": \"a\", \"ids\": [\"a\"], \"decoded\": null}\n");
  const fs::path types = root / "gguf/types";
  CopyFolder("tests/data/gguf/types", types);
  WriteFile(types / "case.json",
            "{\"name\": \"types\", \"tensors\": {\"f32.0\": 3, \"f16.0\": "
            "{\"type\": 1, \"shape\": \"x\"}}, \"runs\": []}");
  fs::create_directories(root / "kernels");
  WriteFile(root / "kernels/norm.json",
            "{\"cases\": [{\"name\": \"x\", \"inputs\": 3, \"params\": 4}]}");
  WriteFile(root / "kernels/norm.safetensors",
            ReadFile("tests/data/kernels/norm.safetensors"));
  const RunResult result = Invoke({"--suite", root.string()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(LastLine(result), "0 of 3 cases pass") << result.out;
  EXPECT_TRUE(absl::StrContains(Row(result, "tokenizer/wordlevel"),
                                "tokenizer: encode: 4 of 4 differ"))
      << result.out;
}

TEST(ReportUsage, WrongUsageIsExitCodeTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--suite", "no such folder"},
                                             {"--no-such-flag"},
                                             {"golden"},
                                             {"--filter", "no such case"},
                                             {"--models", "no such folder"},
                                             {"--threads", "-1"}}) {
    const RunResult result = Invoke(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments[0];
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(absl::StrContains(result.err, "--help")) << result.err;
  }
}

TEST(ReportUsage, HelpTeaches) {
  const RunResult result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word :
       {"--suite DIR", "--filter TEXT", "--models DIR", "--json FILE",
        "--markdown FILE", "--target NAME", "Exit codes"}) {
    EXPECT_TRUE(absl::StrContains(result.out, word)) << word;
  }
}

TEST(ReportUsage, RealModelsWithoutWeightsAreNotCounted) {
  const RunResult result = Invoke({"--filter", "smollm2_135m"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(absl::EndsWith(Row(result, "real/smollm2_135m_q4_1"),
                             "  not run: no weights"))
      << result.out;
  EXPECT_EQ(LastLine(result), "1 of 1 cases pass (1 not run)");
  // Nothing that ran is no success.
  EXPECT_EQ(Invoke({"--filter", "real/"}).exit_code, 1);
}

TEST(ReportUsage, RunsTheSuiteOfTheTree) {
  const RunResult result = Invoke({"--filter", "llama_q"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(absl::StrContains(Row(result, "gguf/llama_q4_k_m"), "PASS"))
      << result.out;
  size_t rows = 0;
  for (const absl::string_view line : absl::StrSplit(result.out, '\n')) {
    rows += absl::StartsWith(line, "gguf/llama_q");
  }
  EXPECT_GE(rows, 3u);
  EXPECT_EQ(LastLine(result), absl::StrCat(rows, " of ", rows, " cases pass"));
}

}  // namespace
}  // namespace lanewise
