// Reading what the suite's files say.
#include "tests/conformance/case_folder.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/run_params.h"

namespace lanewise {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

CaseFolder Llama() {
  auto folder = CaseFolder::Open("tests/data/models/llama");
  EXPECT_TRUE(folder.ok()) << folder.status();
  return *std::move(folder);
}

const json& RunOf(const CaseFolder& folder, const std::string& name) {
  for (const json& run : folder.runs()) {
    if (run["name"] == name) return run;
  }
  ADD_FAILURE() << "no run " << name;
  return folder.runs()[0];
}

TEST(CaseFolder, RowsAreWithoutPaddingOnEitherSide) {
  const CaseFolder folder = Llama();
  for (const char* name : {"right", "left"}) {
    SCOPED_TRACE(name);
    const json& inputs = RunOf(folder, name)["inputs"];
    const auto rows = folder.Rows(inputs);
    ASSERT_TRUE(rows.ok()) << rows.status();
    const auto ids = folder.Array<int32_t>(inputs, "input_ids");
    const auto mask = folder.Array<int32_t>(inputs, "attention_mask");
    ASSERT_TRUE(ids.ok() && mask.ok());
    bool padded = false;
    for (size_t row = 0; row < rows->ids.size(); ++row) {
      size_t real = 0;
      for (const int32_t bit : mask->Row(row)) real += bit == 1;
      ASSERT_EQ(rows->ids[row].size(), real);
      const size_t first = rows->first[row];
      const auto expected = ids->Row(row).subspan(first, real);
      EXPECT_EQ(rows->ids[row], Ids(expected.begin(), expected.end()));
      EXPECT_EQ(first, name[0] == 'l' ? rows->columns - real : 0);
      padded |= real < rows->columns;
    }
    EXPECT_TRUE(padded);
  }
}

TEST(CaseFolder, RealPositionsArePacked) {
  const CaseArray<float> values{{2, 3, 2},
                                {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}};
  TokenRows rows;
  rows.ids = {{7}, {7, 7}};
  rows.first = {2, 0};
  rows.columns = 3;
  const auto packed = CaseFolder::RealPositions(values, rows);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(*packed, (std::vector<float>{3, 3, 4, 4, 5, 5}));
  rows.columns = 4;
  EXPECT_FALSE(CaseFolder::RealPositions(values, rows).ok());
  rows.ids.emplace_back();
  EXPECT_FALSE(CaseFolder::RealPositions(values, rows).ok());
}

TEST(CaseFolder, ArraysThatAreNotThereAreErrors) {
  const CaseFolder folder = Llama();
  const json& run = RunOf(folder, "single");
  const auto absent = folder.Array<float>(run["outputs"], "no_field");
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(absent.status().message(), "no_field"));
  const auto integers = folder.Array<float>(run["inputs"], "input_ids");
  EXPECT_EQ(integers.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(CaseFolder::Open("tests/data/models/none").ok());
}

TEST(CaseFolder, RunsMustHaveTheirFields) {
  const char* temporary = std::getenv("TEST_TMPDIR");
  ASSERT_NE(temporary, nullptr);
  const std::string folder = std::string(temporary) + "/runs";
  std::filesystem::create_directories(folder);
  const auto open = [&](const std::string& runs) {
    std::ofstream(folder + "/case.json") << "{\"runs\": " << runs << "}";
    return CaseFolder::Open(folder).status();
  };
  const std::string run =
      R"({"name": "a", "kind": "forward", "inputs": {}, "outputs": {}})";
  EXPECT_TRUE(open("[" + run + "]").ok());
  EXPECT_FALSE(open("3").ok());
  EXPECT_FALSE(open("[3]").ok());
  EXPECT_FALSE(open(R"([{"name": 1, "kind": "forward"}])").ok());
  EXPECT_FALSE(
      open(R"([{"name": "a", "kind": "forward", "inputs": {}}])").ok());
  const absl::Status status = open(
      R"([{"name": "a", "kind": "b", "inputs": {"x": 1}, "outputs": {}}])");
  EXPECT_TRUE(absl::StrContains(status.message(), "a: inputs: x")) << status;
}

TEST(RunParams, AllKeysAreKnownOrErrors) {
  const auto params = ReadParams({{"num_beams", 3},
                                  {"early_stopping", "never"},
                                  {"length_penalty", 0.6},
                                  {"eos_token_id", {4, 5}},
                                  {"max_new_tokens", 9},
                                  {"repetition_penalty", 1.5},
                                  {"forced_eos_token_id", 2},
                                  {"bad_words_ids", {{1, 2}, {3}}},
                                  {"forced_bos_token_id", nullptr},
                                  {"do_sample", false}});
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(params->beams.num_beams, 3);
  EXPECT_EQ(params->beams.early_stopping, EarlyStopping::kNever);
  EXPECT_EQ(params->beams.length_penalty, 0.6);
  EXPECT_EQ(params->eos_ids, Ids({4, 5}));
  EXPECT_TRUE(params->IsEnd(5));
  EXPECT_FALSE(params->IsEnd(2));
  EXPECT_EQ(params->max_new_tokens, 9u);
  EXPECT_EQ(params->processors.repetition_penalty, 1.5);
  EXPECT_EQ(params->processors.forced_last_id, 2);
  EXPECT_FALSE(params->processors.forced_first_id.has_value());
  EXPECT_EQ(params->processors.bad_words,
            (std::vector<Ids>{Ids{1, 2}, Ids{3}}));
  EXPECT_EQ(ReadParams({{"eos_token_id", 7}})->eos_ids, Ids({7}));

  const auto unknown = ReadParams({{"no_such_key", 1}});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(unknown.status().message(), "no_such_key"));
  for (const json& wrong :
       {json{{"num_beams", "three"}}, json{{"eos_token_id", "x"}},
        json{{"early_stopping", "always"}}, json{{"length_penalty", "x"}},
        json{{"bad_words_ids", {{"x"}}}}, json{{"max_new_tokens", -1}}}) {
    EXPECT_FALSE(ReadParams(wrong).ok()) << wrong;
  }
}

TEST(RunParams, BeamsAreMoreThanOne) {
  EXPECT_FALSE(HasBeams({{"name", "a"}}));
  EXPECT_FALSE(HasBeams({{"params", {{"num_beams", 1}}}}));
  EXPECT_TRUE(HasBeams({{"params", {{"num_beams", 2}}}}));
  EXPECT_FALSE(HasBeams({{"params", "generation_config.json"}}));
}

}  // namespace
}  // namespace lanewise
