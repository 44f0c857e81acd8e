// Single operations against values computed in double, on every target: all
// topics in the tree, and where LANEWISE_GOLDEN names the whole suite all of
// its topics.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "golden_root.h"
#include "gtest/gtest.h"
#include "tests/conformance/kernels/kernel_checks.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

std::string Folder() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  const std::string golden = named != nullptr ? named : kGoldenRoot;
  return golden.empty() ? "tests/data/kernels" : golden + "/kernels";
}

std::vector<std::string> Topics() {
  std::vector<std::string> topics;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(Folder(), error)) {
    if (entry.path().extension() == ".json") {
      topics.push_back(entry.path().stem().string());
    }
  }
  std::sort(topics.begin(), topics.end());
  return topics;
}

class KernelTest : public testing::TestWithParam<std::string> {};

TEST_P(KernelTest, EqualsReference) {
  ForEachTarget([](const Target& target) {
    const auto report =
        RunKernelTopic(Folder(), GetParam(), *MakeContext(target));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(report->passed()) << report->Failures();
    EXPECT_GT(report->comparisons.size(), 0u);
  });
}

INSTANTIATE_TEST_SUITE_P(Topics, KernelTest, testing::ValuesIn(Topics()),
                         [](const auto& test) { return test.param; });

struct Covered {
  const char* topic;
  size_t cases;
  const char* note;
};

// Nothing falls out unnoticed: how many cases of each topic are compared, and
// which are not.
TEST(KernelTopics, CoverWhatTheLibraryHas) {
  const std::vector<Covered> expected = {
      {"attention", 72, ""},
      {"audio", 4, ""},
      {"ffn", 39,
       "no such operation here: act_erf, act_exp, act_softplus, act_mish"},
      {"image", 5, ""},
      {"linear", 19, ""},
      {"moe", 3, ""},
      {"norm", 98, ""},
      {"pooling", 5, ""},
      {"position", 49,
       "no such operation here: alibi_mpt_4, alibi_mpt_6, alibi_mpt_12"},
      {"sampling", 29, ""},
      {"softmax", 17, ""},
  };
  for (const Covered& covered : expected) {
    SCOPED_TRACE(covered.topic);
    const auto report =
        RunKernelTopic(Folder(), covered.topic, *MakeContext(Target::Best()));
    ASSERT_TRUE(report.ok()) << report.status();
    std::set<std::string> cases;
    for (const Comparison& c : report->comparisons) cases.insert(c.run);
    EXPECT_EQ(cases.size(), covered.cases);
    EXPECT_EQ(report->note, covered.note);
  }
}

TEST(KernelTopics, M17MeansAreOverTheTokensThatAreThere) {
  ForEachTarget([](const Target& target) {
    const auto report =
        RunKernelTopic(Folder(), "pooling", *MakeContext(target));
    ASSERT_TRUE(report.ok()) << report.status();
    size_t means = 0;
    for (const Comparison& c : report->comparisons) {
      if (c.run != "mean") continue;
      EXPECT_EQ(c.failure, "") << c.output;
      ++means;
    }
    EXPECT_EQ(means, 2u);  // as it is, and scaled to length one
  });
}

TEST(KernelTopics, WhatIsDamagedFails) {
  const nlohmann::json one = {{"name", "case"}};
  const auto topic = KernelTopic::Open("tests/data/kernels/softmax");
  ASSERT_TRUE(topic.ok()) << topic.status();
  const auto context = MakeContext(Target::Best());
  using Check = bool (*)(const KernelCase&, const Context&, CaseReport*);
  for (const Check check :
       {CheckAttention, CheckLinear, CheckNorm, CheckRouting, CheckSoftmax}) {
    CaseReport report;  // the case names no arrays at all
    EXPECT_TRUE(check(KernelCase(*topic, one), *context, &report));
    EXPECT_FALSE(report.passed());
  }
  EXPECT_FALSE(RunKernelTopic("tests/data", "no topic", *context).ok());
  EXPECT_FALSE(KernelTopic::Open("tests/data/kernels/no topic").ok());
}

TEST(CompareElements, SeesNansAndTheElementThatIsWorst) {
  const auto compare = [](std::vector<float> found, double allowed) {
    CaseReport report;
    CompareElements(
        {"case", "y"}, found, {1, 2, 3}, [&](size_t) { return allowed; },
        &report);
    return report.comparisons[0];
  };
  EXPECT_EQ(compare({1, 2, 3}, 0).failure, "");
  EXPECT_EQ(compare({1, 2.5f, 3}, 0.5).failure, "");
  EXPECT_EQ(compare({1, 2.5f, 3}, 0.5).error, 1);
  EXPECT_EQ(compare({1, 2.5f, 4}, 0.25).failure,
            "element 2: expected 3, found 4, allowed 0.25");
  EXPECT_NE(compare({1, 2.5f, 3}, 0).failure, "");
  EXPECT_NE(compare({NAN, 2, 3}, 1e9).failure, "");
  EXPECT_NE(compare({1, 2, NAN}, 1e9).failure, "");
  EXPECT_NE(compare({1, 2}, 1).failure, "");
}

}  // namespace
}  // namespace lanewise
