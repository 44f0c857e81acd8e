// The program `inspect` on both kinds of files, unknown and hostile ones.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

RunResult Invoke(std::vector<std::string> arguments) {
  return RunProgram("tools/inspect", arguments);
}

void ExpectWords(const RunResult& result,
                 const std::vector<std::string>& words) {
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const std::string& word : words) {
    EXPECT_TRUE(absl::StrContains(result.out, word)) << word << "\n"
                                                     << result.out;
  }
}

TEST(Inspect, ShowsAGgufFile) {
  ExpectWords(Invoke({kLlamaGguf}),
              {"kind: GGUF", "architecture: llama", "runs here: yes",
               "  llama.block_count = 2\n", "metadata: 23", "tensors: 20",
               "... 300 values", "token_embd.weight", "[300, 64]", "10800",
               "parameters: 80960", "Q4_0       15 tensors"});
}

TEST(Inspect, ShowsAFolder) {
  ExpectWords(Invoke({kLlama}),
              {"kind: safetensors", "architecture: llama", "parameters: 124944",
               "files: config.json, generation_config.json, tokenizer.json",
               "  num_hidden_layers = 3\n", "model.embed_tokens.weight",
               "[560, 48]", "tensors: 30"});
}

TEST(Inspect, ShowsTheSpecAlone) {
  const RunResult result = Invoke({"--spec", kLlamaGguf});
  ExpectWords(result, {"family: llama\n", "vocabulary: 300\n"});
  EXPECT_FALSE(absl::StrContains(result.out, "tensors"));
}

TEST(Inspect, PrintsJson) {
  const RunResult result = Invoke({"--json", kLlamaGguf});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = Json(result.out);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["kind"], "GGUF");
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["supported"], true);
  EXPECT_EQ(json["parameters"], 80960);
  EXPECT_EQ(json["metadata"]["llama.block_count"], 2);
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["length"], 300);
  ASSERT_EQ(json["tensors"].size(), 20u);
  EXPECT_EQ(json["tensors"][0]["name"], "token_embd.weight");
  EXPECT_EQ(json["tensors"][0]["shape"], Json("[300, 64]"));
  EXPECT_EQ(json["tensors"][0]["bytes"], 10800);
  EXPECT_EQ(json["types"]["F32"]["tensors"], 5);
  EXPECT_EQ(Json(Invoke({"--json", kLlama}).out)["metadata"]["vocab_size"],
            560);
}

TEST(Inspect, ListsWhatThisLibraryCannotUse) {
  ExpectWords(
      Invoke({"tests/data/gguf/types/types.gguf"}),
      {"runs here: no: ", "iq2_xxs.0", "IQ2_XXS (not supported)",
       "test.u64 = 9223372036854775813", "test.i8 = -100", "mxfp4.constant"});
  const nlohmann::json json =
      Json(Invoke({"--json", "tests/data/gguf/types/types.gguf"}).out);
  EXPECT_EQ(json["supported"], false);
  EXPECT_FALSE(json["unsupported_tensors"].empty());
  EXPECT_EQ(json["metadata"]["test.u64"], 9223372036854775813u);
}

TEST(Inspect, ShowsUnknownArchitectures) {
  const std::string folder = TestFolder("unknown");
  std::string bytes = ReadFile(kLlamaGguf);
  const size_t at = bytes.find("llama", bytes.find("architecture"));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, 5, "zebra");
  WriteFile(folder + "/zebra.gguf", bytes);
  ExpectWords(Invoke({folder + "/zebra.gguf"}),
              {"architecture: zebra", "runs here: no: ", "tensors: 20"});
  const RunResult spec = Invoke({"--spec", folder + "/zebra.gguf"});
  EXPECT_EQ(spec.exit_code, 1);
  EXPECT_EQ(spec.out, "");
  EXPECT_TRUE(absl::StrContains(spec.err, "zebra")) << spec.err;
}

TEST(Inspect, EscapesTextOutOfTheFile) {
  const std::string folder = TestFolder("escapes");
  std::string bytes = ReadFile(kLlamaGguf);
  const size_t name = bytes.find("llama_q4_0");
  ASSERT_NE(name, std::string::npos);
  bytes.replace(name, 10, "\x1b[2J\x07\n\xc2\x9b\xff!");
  const size_t tensor = bytes.find("token_embd");
  bytes.replace(tensor, 5, "\x1b[31m");
  const size_t architecture = bytes.find("llama", bytes.find("architecture"));
  bytes.replace(architecture, 5, "\x1b]0;x");
  WriteFile(folder + "/m.gguf", bytes);
  for (const std::string flag : {"--spec=false", "--json", "--spec"}) {
    const RunResult result = Invoke({flag, folder + "/m.gguf"});
    for (const std::string* text : {&result.out, &result.err}) {
      EXPECT_FALSE(absl::StrContains(*text, "\x1b")) << flag;
      EXPECT_FALSE(absl::StrContains(*text, "\x07")) << flag;
      EXPECT_FALSE(absl::StrContains(*text, "\xff")) << flag;
    }
  }
  ExpectWords(Invoke({folder + "/m.gguf"}),
              {"\\u{1b}[2J\\u{7}\\n\\u{9b}\\xff", "\\u{1b}[31m_embd.weight"});
}

TEST(Inspect, ErrorsAreOneLine) {
  const std::string folder = TestFolder("errors");
  WriteFile(folder + "/cut.gguf", ReadFile(kLlamaGguf).substr(0, 1000));
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string word;
  } cases[] = {
      {{}, 2, "expected one file or folder, found 0"},
      {{"a", "b"}, 2, "found 2"},
      {{"--spec", "--json", kLlama}, 2, "both --spec and --json"},
      {{"--all", kLlama}, 2, "unknown flag --all"},
      {{"/none"}, 1, "/none: No such file"},
      {{folder + "/cut.gguf"}, 1, "cut.gguf"},
      {{TestFolder("empty")}, 1, "no model"},
  };
  for (const auto& test : cases) {
    ExpectErrorLine(Invoke(test.arguments), "inspect", test.exit_code,
                    {test.word});
  }
}

// Whatever the text spells, the page shows it and runs none of it.
TEST(Inspect, WritesAttentionMaps) {
  const std::string folder = TestFolder("attention");
  const std::string output = folder + "/map";
  const RunResult result =
      Invoke({"--attention", "<b>x</b></script><script>alert(1)</script>",
              "--layers", "1,0", "--heads", "2", "--output", output, kLlama});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string npy = ReadFile(output + ".npy");
  const std::string html = ReadFile(output + ".html");
  EXPECT_TRUE(absl::StrContains(npy, "'descr': '<f4'"));
  EXPECT_TRUE(absl::StrContains(npy, "'shape': (2, 1, ")) << npy.substr(0, 128);
  // Two layers in ascending order, one script for data and one of our own.
  EXPECT_TRUE(absl::StrContains(html, "\"layer\":0,\"heads\":[2]"));
  EXPECT_TRUE(absl::StrContains(html, "\"layer\":1,\"heads\":[2]"));
  EXPECT_TRUE(absl::StrContains(html, "prefers-color-scheme: dark"));
  EXPECT_FALSE(absl::StrContains(html, "<b>"));
  EXPECT_FALSE(absl::StrContains(html, "http"));
  size_t scripts = 0;
  for (size_t at = 0; (at = html.find("<script", at)) != html.npos; ++at) {
    ++scripts;
  }
  EXPECT_EQ(scripts, 2u);
}

TEST(Inspect, AttentionErrorsAreOneLine) {
  const std::string output = TestFolder("attention_errors") + "/map";
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* word;
  } cases[] = {
      {{"--attention", "a", "--layers", "9", kLlama}, 1, "--layers: expected"},
      {{"--attention", "a", "--heads", "x", kLlama}, 1, "--heads: expected"},
      {{"--attention", "a", "--json", kLlama}, 2, "give only one"},
      {{"--attention", "a", "--output", "/none/x", kLlama}, 1, "/none/x.npy"},
  };
  for (const auto& test : cases) {
    ExpectErrorLine(Invoke(test.arguments), "inspect", test.exit_code,
                    {test.word});
  }
}

TEST(Inspect, HelpTeachesByExample) {
  ExpectWords(Invoke({"--help"}), {"inspect model.gguf", "  --spec", "  --json",
                                   "  --attention TEXT"});
}

}  // namespace
}  // namespace lanewise
