// The program `embed`: its formats hold the same numbers, and its bad inputs.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/tools/subprocess.h"
#include "tests/tools/test_model.h"

namespace lanewise {
namespace {

constexpr char kProgram[] = "tools/embed_no_model";
constexpr char kBert[] = "tests/data/models/bert_mlm";
constexpr size_t kWidth = 48;

RunResult Invoke(std::vector<std::string> arguments,
                 const std::string& in = "") {
  arguments.insert(arguments.begin(), {"--model", kBert});
  RunOptions options;
  options.in = in;
  return RunProgram(kProgram, arguments, options);
}

std::vector<float> Numbers(absl::string_view line, char between) {
  std::vector<float> numbers;
  for (absl::string_view word : absl::StrSplit(line, between)) {
    float value = 0;
    EXPECT_TRUE(absl::SimpleAtof(word, &value)) << word;
    numbers.push_back(value);
  }
  return numbers;
}

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

// The floats behind the header of an array in NumPy's format.
std::vector<float> Array(const std::string& bytes, const std::string& shape) {
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const size_t size = static_cast<unsigned char>(bytes[8]) +
                      256u * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ((10 + size) % 64, 0u);
  EXPECT_EQ(bytes[9 + size], '\n');
  const std::string header = bytes.substr(10, size);
  EXPECT_TRUE(absl::StrContains(header, "'descr': '<f4'")) << header;
  EXPECT_TRUE(absl::StrContains(header, "'shape': " + shape)) << header;
  std::vector<float> values((bytes.size() - 10 - size) / 4);
  std::memcpy(values.data(), bytes.data() + 10 + size, values.size() * 4);
  return values;
}

TEST(Embed, AllFormatsHoldTheSameNumbers) {
  const std::string in = "The quick brown fox\n\nIt's 42, isn't it?\n";
  const RunResult text = Invoke({}, in);
  ASSERT_EQ(text.exit_code, 0) << text.err;
  const std::vector<std::string> lines = Lines(text.out);
  ASSERT_EQ(lines.size(), 3u);
  const std::string file = TestFolder("embed") + "/texts";
  WriteFile(file, in);
  const std::vector<std::string> json =
      Lines(Invoke({"--format", "jsonl", "--file", file}).out);
  ASSERT_EQ(json.size(), 3u);
  const std::vector<float> array =
      Array(Invoke({"--format=npy"}, in).out, "(3, 48)");
  ASSERT_EQ(array.size(), 3 * kWidth);
  const std::vector<std::string> texts = {"The quick brown fox", "",
                                          "It's 42, isn't it?"};
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<float> numbers = Numbers(lines[i], ' ');
    ASSERT_EQ(numbers.size(), kWidth);
    const nlohmann::json object = Json(json[i]);
    EXPECT_EQ(object["text"], texts[i]);
    EXPECT_EQ(object["embedding"].get<std::vector<float>>(), numbers);
    EXPECT_EQ(std::vector<float>(array.begin() + i * kWidth,
                                 array.begin() + (i + 1) * kWidth),
              numbers);
    EXPECT_EQ(Invoke({"--", texts[i]}).out, lines[i] + "\n");
  }
  EXPECT_EQ(Json(json[0])["tokens"], 6);
  EXPECT_TRUE(absl::StrContains(text.err, "do not say how its rows"))
      << text.err;
  EXPECT_EQ(Invoke({"--pooling", "mean"}, in).err, "");
}

TEST(Embed, SimilarityIsTheCosineOfTheVectors) {
  const std::vector<std::string> texts = {"The fox", "a fox\tjumps", "42"};
  std::vector<std::vector<float>> vectors;
  for (const std::string& text : texts) {
    vectors.push_back(
        Numbers(Lines(Invoke({"--normalize=yes", "--", text}).out)[0], ' '));
  }
  std::vector<std::string> arguments = {"--similarity"};
  arguments.insert(arguments.end(), texts.begin(), texts.end());
  const std::vector<std::string> lines = Lines(Invoke(arguments).out);
  arguments.push_back("--format=jsonl");
  const std::vector<std::string> json = Lines(Invoke(arguments).out);
  ASSERT_EQ(lines.size(), 3u);
  ASSERT_EQ(json.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const std::vector<std::string> cells = absl::StrSplit(lines[i], '\t');
    ASSERT_EQ(cells.size(), 4u);
    EXPECT_EQ(cells[3], i == 1 ? "a fox\\tjumps" : texts[i]);
    const auto cosines = Json(json[i])["cosines"].get<std::vector<double>>();
    for (size_t j = 0; j < 3; ++j) {
      double dot = 0;
      for (size_t c = 0; c < kWidth; ++c) {
        dot += double{vectors[i][c]} * vectors[j][c];
      }
      double shown = 0;
      EXPECT_TRUE(absl::SimpleAtod(cells[j], &shown));
      EXPECT_NEAR(shown, dot, 2e-6);
      EXPECT_NEAR(cosines[j], dot, 1e-6);
    }
  }
}

TEST(Embed, AFileAppearsOnceItIsWhole) {
  const std::string folder = TestFolder("out");
  const std::string out = folder + "/vectors.npy";
  WriteFile(out, "before");
  std::filesystem::create_symlink(out, folder + "/link");
  const RunResult refused = Invoke(
      {"--format=npy", "--no_truncate", "--out", out, "--prompt_name=x", "a"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(
      Invoke({"--format=npy", "--out", folder + "/none/x", "a"}).exit_code, 1);
  EXPECT_EQ(ReadFile(out), "before");
  const RunResult done =
      Invoke({"--format=npy", "--out", folder + "/link", "a", "b"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(Array(ReadFile(out), "(2, 48)").size(), 2 * kWidth);
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "/link"));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files += entry.exists();
  }
  EXPECT_EQ(files, 2u);
  EXPECT_EQ(Invoke({"--out", "/dev/full", "a"}).exit_code, 1);
}

TEST(Embed, A17CutTextsAreToldOnce) {
  std::string line = "fox";
  for (int i = 0; i < 100; ++i) line += " fox";
  const RunResult cut =
      Invoke({"--pooling=mean"}, line + "\na\n" + line + "\n");
  EXPECT_EQ(cut.exit_code, 0);
  EXPECT_EQ(Lines(cut.err).size(), 1u) << cut.err;
  EXPECT_TRUE(absl::StrContains(cut.err, "2 of 3 texts had more than 80 "))
      << cut.err;
  const RunResult refused = Invoke({"--no_truncate"}, "a\n" + line);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(absl::StrContains(refused.err, "text 1: expected at most 80"))
      << refused.err;
  const RunResult whole = Invoke({"--whole"}, "a\nb\n");
  EXPECT_EQ(Lines(whole.out).size(), 1u);
}

TEST(Embed, OptionsReachTheEngine) {
  const RunResult cut =
      Invoke({"--dimensions=5", "--normalize=yes", "--pooling=first", "fox"});
  const std::vector<float> vector = Numbers(Lines(cut.out)[0], ' ');
  ASSERT_EQ(vector.size(), 5u);
  double squares = 0;
  for (const float value : vector) squares += double{value} * value;
  EXPECT_NEAR(squares, 1.0, 1e-6);
  EXPECT_EQ(Invoke({"--prompt", "find: ", "fox"}).out,
            Invoke({"find: fox"}).out);
  EXPECT_EQ(Invoke({"--batch_tokens=1", "--threads=2", "fox"}).out,
            Invoke({"fox"}).out);
  EXPECT_TRUE(absl::StrContains(Invoke({"--stats", "fox"}).err, "tokens/s"));
}

TEST(Embed, ErrorsAreOneLine) {
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string word;
  } cases[] = {
      {{"--file", "x", "a"}, 2, "both texts and --file"},
      {{"--whole", "a"}, 2, "--whole is for --file"},
      {{"--prompt=a", "--prompt_name=b", "c"}, 2, "--prompt_name"},
      {{"--pooling=median", "a"}, 2, "weighted_mean"},
      {{"--dimensions=49", "a"}, 1, "at most 48"},
      {{"--prompt_name=query", "a"}, 1, "have no prompts"},
      {{"--target=Z80", "a"}, 2, "--target"},
      {{"--file", "/none"}, 1, "/none: No such file"},
      {{"--out", "/none/x", "a"}, 1, "/none/x: cannot write"},
      {{}, 1, "the input is empty"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(absl::StrJoin(test.arguments, " "));
    ExpectErrorLine(Invoke(test.arguments), "embed", test.exit_code,
                    {test.word});
  }
}

TEST(Embed, HelpTeachesByExample) {
  const RunResult result = Invoke({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* word :
       {"embed --similarity \"A cat", "--pooling", "--normalize",
        "--dimensions", "--prompt_name", "--no_truncate", "--format", "--out",
        "--file", "all-MiniLM-L6-v2"}) {
    EXPECT_TRUE(absl::StrContains(result.out, word)) << word;
  }
}

}  // namespace
}  // namespace lanewise
