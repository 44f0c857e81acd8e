#include "tools/flags.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace lanewise {
namespace {

enum class Colour { kRed, kBlue };

class FlagsTest : public testing::Test {
 protected:
  FlagsTest() {
    flags_.Section("Numbers");
    flags_.Add({"count", "N", "how many"}, &count_, 0, 100);
    flags_.Add({"temperature", "T", "how hot"}, &temperature_);
    flags_.Add({"seed", "N", "where to start"}, &seed_);
    flags_.Section("Words");
    flags_.Add({"max_name", "TEXT", "a name"}, &name_);
    flags_.Add({"prompt", "TEXT", "may be absent"}, &prompt_);
    flags_.Add({"stop", "TEXT", "several"}, &stop_);
    flags_.Add({"raw", "", "yes or no"}, &raw_);
    flags_.Add({"colour", "red|blue", "which"}, &colour_,
               {{"red", Colour::kRed}, {"blue", Colour::kBlue}});
  }

  absl::Status Parse(const std::vector<std::string>& arguments) {
    return flags_.Parse(arguments, &positional_);
  }

  std::string Error(const std::vector<std::string>& arguments) {
    const absl::Status status = Parse(arguments);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  FlagSet flags_;
  size_t count_ = 7;
  double temperature_ = 1;
  std::optional<uint64_t> seed_;
  std::string name_;
  std::optional<std::string> prompt_;
  std::vector<std::string> stop_;
  bool raw_ = false;
  Colour colour_ = Colour::kRed;
  std::vector<std::string> positional_;
};

TEST_F(FlagsTest, TakesValuesAfterEqualsAndAsNextArgument) {
  ASSERT_TRUE(Parse({"--count=3", "--temperature", "0.5", "--seed",
                     "18446744073709551615", "--colour=blue"})
                  .ok());
  EXPECT_EQ(count_, 3u);
  EXPECT_EQ(temperature_, 0.5);
  EXPECT_EQ(seed_, 18446744073709551615u);
  EXPECT_EQ(colour_, Colour::kBlue);
}

TEST_F(FlagsTest, DashesInNamesAreUnderscores) {
  ASSERT_TRUE(Parse({"--max-name", "a-b"}).ok());
  EXPECT_EQ(name_, "a-b");
  ASSERT_TRUE(Parse({"--max_name=x=y"}).ok());
  EXPECT_EQ(name_, "x=y");
}

TEST_F(FlagsTest, ListsCollectAndOthersTakeTheLast) {
  ASSERT_TRUE(
      Parse({"--stop", "a", "--stop=b,c", "--count", "1", "--count", "2"})
          .ok());
  EXPECT_EQ(stop_, (std::vector<std::string>{"a", "b,c"}));
  EXPECT_EQ(count_, 2u);
}

TEST_F(FlagsTest, AValueMayLookLikeAFlagOrBeEmpty) {
  ASSERT_TRUE(Parse({"--prompt", "--raw"}).ok());
  EXPECT_EQ(prompt_, "--raw");
  EXPECT_FALSE(raw_);
  ASSERT_TRUE(Parse({"--prompt="}).ok());
  EXPECT_EQ(prompt_, "");
}

TEST_F(FlagsTest, BoolsStandAlone) {
  ASSERT_TRUE(Parse({"--raw", "text"}).ok());
  EXPECT_TRUE(raw_);
  EXPECT_EQ(positional_, std::vector<std::string>{"text"});
  ASSERT_TRUE(Parse({"--raw=false"}).ok());
  EXPECT_FALSE(raw_);
  EXPECT_EQ(Error({"--raw="}), "--raw: expected true or false, found '='");
  EXPECT_EQ(Error({"--raw=maybe"}),
            "--raw: expected true or false, found 'maybe'");
}

TEST_F(FlagsTest, DashesEndTheFlags) {
  ASSERT_TRUE(Parse({"a", "--", "--count", "-", "--"}).ok());
  EXPECT_EQ(positional_, (std::vector<std::string>{"a", "--count", "-", "--"}));
  EXPECT_EQ(count_, 7u);
}

TEST_F(FlagsTest, ErrorsNameFlagExpectedAndFound) {
  EXPECT_EQ(Error({"--count", "101"}),
            "--count: expected a whole number from 0 to 100, found '101'");
  EXPECT_EQ(Error({"--count", "-1"}),
            "--count: expected a whole number from 0 to 100, found '-1'");
  EXPECT_EQ(Error({"--count", "99999999999999999999"}),
            "--count: expected a whole number from 0 to 100, found "
            "'99999999999999999999'");
  EXPECT_EQ(Error({"--seed", "-1"}),
            "--seed: expected a whole number from 0 to 2^64-1, found '-1'");
  EXPECT_EQ(Error({"--colour", "green"}),
            "--colour: expected one of red, blue, found 'green'");
  EXPECT_EQ(Error({"--prompt"}), "--prompt needs a value: --prompt TEXT");
  for (const char* value : {"nan", "inf", "-inf", "1e999", "", "1x", "0,5"}) {
    EXPECT_EQ(
        Error({"--temperature", value}),
        "--temperature: expected a number, found '" + std::string(value) + "'");
  }
}

TEST_F(FlagsTest, UnknownFlagsGetTheNearestName) {
  EXPECT_EQ(Error({"--temprature", "1"}),
            "unknown flag --temprature; did you mean --temperature?");
  EXPECT_EQ(Error({"--xyzzy=5"}), "unknown flag --xyzzy");
  EXPECT_EQ(Error({"-p"}), "unknown flag -p");
  EXPECT_EQ(Error({"-raw"}), "unknown flag -raw; did you mean --raw?");
}

TEST_F(FlagsTest, ControlCharactersInArgumentsAreEscaped) {
  EXPECT_EQ(Error({"--count", "\x1b[2J\n"}),
            "--count: expected a whole number from 0 to 100, found "
            "'\\u{1b}[2J\\n'");
  EXPECT_EQ(Error({"--\x1b[2J"}), "unknown flag --\\u{1b}[2J");
  const std::string message = Error({"--" + std::string(1 << 20, 'x')});
  EXPECT_LT(message.size(), 200u);
}

TEST_F(FlagsTest, HelpStopsParsing) {
  ASSERT_TRUE(Parse({"--help", "--nonsense"}).ok());
  EXPECT_TRUE(flags_.help_requested());
}

TEST_F(FlagsTest, HelpNamesEveryFlagWithin80Columns) {
  const std::string help = flags_.Help();
  for (absl::string_view name : flags_.names()) {
    EXPECT_TRUE(absl::StrContains(help, absl::StrCat("--", name))) << name;
  }
  EXPECT_TRUE(absl::StrContains(help, "\nNumbers:\n"));
  for (absl::string_view line : absl::StrSplit(help, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

}  // namespace
}  // namespace lanewise
