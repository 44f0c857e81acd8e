#include "runtime/generation_options.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lanewise {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The message must name the field and what was found.
void ExpectRefused(const std::function<void(SamplingOptions&)>& change,
                   const std::string& field, const std::string& found) {
  SamplingOptions options;
  change(options);
  const absl::Status status = Validate(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
  EXPECT_TRUE(absl::StartsWith(status.message(), field + ": expected "))
      << status;
  EXPECT_TRUE(absl::EndsWith(status.message(), "found " + found)) << status;
}

TEST(GenerationOptions, DefaultsAreGreedyAndValid) {
  const SamplingOptions options;
  EXPECT_EQ(options.temperature, 0.0);
  EXPECT_FALSE(options.seed.has_value());
  EXPECT_TRUE(Validate(options).ok());
}

TEST(GenerationOptions, S2NumbersOutOfRange) {
  struct Field {
    const char* name;
    double SamplingOptions::*member;
    std::vector<double> good, bad;
  };
  const std::vector<Field> fields = {
      {"temperature",
       &SamplingOptions::temperature,
       {0, 1e-300, 0.7, 100},
       {-0.1}},
      {"top_p", &SamplingOptions::top_p, {0, 0.5, 1}, {-0.1, 1.1}},
      {"min_p", &SamplingOptions::min_p, {0, 0.5, 1}, {-0.1, 1.1}},
      {"typical_p", &SamplingOptions::typical_p, {0.1, 1}, {-0.1, 0, 1.1}},
      {"epsilon_cutoff", &SamplingOptions::epsilon_cutoff, {0, 0.9}, {-0.1, 1}},
      {"repetition_penalty",
       &SamplingOptions::repetition_penalty,
       {0.5, 1, 2},
       {-1, 0}},
      {"presence_penalty", &SamplingOptions::presence_penalty, {-2, 0, 2}, {}},
      {"frequency_penalty",
       &SamplingOptions::frequency_penalty,
       {-2, 0, 2},
       {}},
  };
  for (const Field& field : fields) {
    for (const double value : field.good) {
      SamplingOptions options;
      options.*field.member = value;
      EXPECT_TRUE(Validate(options).ok()) << field.name << " " << value;
    }
    const auto refused = [&](double value, const std::string& found) {
      ExpectRefused([&](SamplingOptions& o) { o.*field.member = value; },
                    field.name, found);
    };
    refused(kNaN, "nan");
    refused(kInfinity, "inf");
    refused(-kInfinity, "-inf");
    for (const double value : field.bad) refused(value, absl::StrCat(value));
  }
}

TEST(GenerationOptions, S2NegativeCounts) {
  ExpectRefused([](SamplingOptions& o) { o.top_k = -1; }, "top_k", "-1");
  ExpectRefused([](SamplingOptions& o) { o.no_repeat_ngram = -3; },
                "no_repeat_ngram", "-3");
  ExpectRefused([](SamplingOptions& o) { o.min_new_tokens = -2; },
                "min_new_tokens", "-2");
}

TEST(GenerationOptions, S2Ids) {
  ExpectRefused(
      [](SamplingOptions& o) {
        o.logit_bias = {{3, 1}, {-4, 1}};
      },
      "logit_bias[1].id", "-4");
  ExpectRefused(
      [](SamplingOptions& o) {
        o.logit_bias = {{3, kNaN}};
      },
      "logit_bias[0].bias", "nan");
  ExpectRefused(
      [](SamplingOptions& o) {
        o.logit_bias = {{3, -kInfinity}};
      },
      "logit_bias[0].bias", "-inf");
  ExpectRefused(
      [](SamplingOptions& o) {
        o.logit_bias = {{3, 1}, {4, 1}, {3, 2}};
      },
      "logit_bias", "3 twice");
  ExpectRefused(
      [](SamplingOptions& o) {
        o.suppressed_ids = {1, -1};
      },
      "suppressed_ids[1]", "-1");
  ExpectRefused([](SamplingOptions& o) { o.begin_suppressed_ids = {-7}; },
                "begin_suppressed_ids[0]", "-7");
  ExpectRefused(
      [](SamplingOptions& o) {
        o.bad_words = {{1}, {}};
      },
      "bad_words[1]", "none");
  ExpectRefused(
      [](SamplingOptions& o) {
        o.bad_words = {{1, -2}};
      },
      "bad_words[0][1]", "-2");
  ExpectRefused([](SamplingOptions& o) { o.forced_first_id = -1; },
                "forced_first_id", "-1");
  ExpectRefused([](SamplingOptions& o) { o.forced_last_id = -1; },
                "forced_last_id", "-1");
}

}  // namespace
}  // namespace lanewise
