// Every dependency is there under its label, with the include path that code of
// this project uses, and links. Run with MODULE.bazel and with WORKSPACE.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "hwy/base.h"
#include "hwy/targets.h"
#include "nlohmann/json.hpp"
#include "pcre2.h"
#include "utf8proc.h"

namespace lanewise {
namespace {

TEST(Dependencies, Abseil) {
  EXPECT_EQ(absl::InvalidArgumentError(absl::StrCat("a", 1)).message(), "a1");
}

TEST(Dependencies, HighwayIsRecentEnough) {
  EXPECT_GE(HWY_MAJOR * 100 + HWY_MINOR, 102);
  EXPECT_NE(hwy::SupportedTargets(), 0);
}

TEST(Dependencies, JsonParsesWithoutExceptions) {
  const auto json = nlohmann::json::parse("{\"a\": [1,", nullptr, false);
  EXPECT_TRUE(json.is_discarded());
}

TEST(Dependencies, Pcre2HasUnicode) {
  uint32_t unicode = 0;
  ASSERT_EQ(pcre2_config(PCRE2_CONFIG_UNICODE, &unicode), 0);
  EXPECT_EQ(unicode, 1u);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>("\\p{L}+"),
                                   PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                   &error, &offset, nullptr);
  ASSERT_NE(code, nullptr) << error;
  pcre2_match_data* data = pcre2_match_data_create_from_pattern(code, nullptr);
  EXPECT_EQ(pcre2_match(code, reinterpret_cast<PCRE2_SPTR>("1\xc3\xa9x"), 4, 0,
                        0, data, nullptr),
            1);
  EXPECT_EQ(pcre2_get_ovector_pointer(data)[0], 1u);
  EXPECT_EQ(pcre2_get_ovector_pointer(data)[1], 4u);
  pcre2_match_data_free(data);
  pcre2_code_free(code);
}

TEST(Dependencies, Utf8proc) {
  EXPECT_EQ(utf8proc_tolower(0xC9), 0xE9);  // É
  EXPECT_GE(std::stoi(utf8proc_unicode_version()), 15);
}

}  // namespace
}  // namespace lanewise
