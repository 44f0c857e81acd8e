// A real speech model against the reference's outputs for the same weights.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"
#include "tests/conformance/real_runner.h"

namespace lanewise {
namespace {

TEST(WhisperTinyEn, EqualsReference) {
  const char* config = std::getenv("LANEWISE_MODEL");
  ASSERT_NE(config, nullptr);
  const std::string path = config;
  const auto context = Context::Create({});
  ASSERT_TRUE(context.ok()) << context.status();
  const auto report = RunRealCase("tests/data/real/whisper_tiny_en",
                                  path.substr(0, path.rfind('/')), **context);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed()) << report->Failures();
  size_t of_encoder = 0, greedy = 0;
  for (const Comparison& c : report->comparisons) {
    of_encoder += c.run == "encoder";
    greedy += c.run == "greedy";
    std::printf("%s, %s: error %.2e of %.2e\n", c.run.c_str(), c.output.c_str(),
                c.error, c.tolerance);
  }
  EXPECT_EQ(of_encoder, 7u);
  EXPECT_EQ(greedy, 3u);
}

}  // namespace
}  // namespace lanewise
