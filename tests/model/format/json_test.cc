#include "model/format/json.h"

#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;
using Code = absl::StatusCode;

void ExpectBad(const absl::Status& status, Code code,
               absl::string_view message) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_NE(status.message().find(message), absl::string_view::npos)
      << "expected \"" << message << "\" in: " << status.message();
}

json Parsed(absl::string_view text) {
  auto value = ParseJson(text, "test");
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : json();
}

// The library's own document builder is the reference.
TEST(Json, EqualsTheLibrary) {
  for (const char* text :
       {"null", "true", "-5", "18446744073709551615", "1.5e3", "\"a\\u00e9\"",
        "[]", "{}", "[1,[2,[3,{}]],{\"a\":[{\"b\":null}]}]",
        "{\"a\":{\"b\":{\"c\":[1,2]}},\"d\":[[],[[]]],\"e\":false}",
        "\xef\xbb\xbf {\"bom\": 1}", "{\"k\":1,\"k\":[2]}",
        "123456789012345678901234567890"}) {
    EXPECT_EQ(Parsed(text), json::parse(text)) << text;
  }
}

TEST(Json, NotJson) {
  for (const char* text :
       {"", " ", "{", "[1,]", "{\"a\" 1}", "nul", "01", "\"\xff\"", "1 2",
        "{\"a\":1e999}", "NaN", "\"\\ud800\"", "'a'", "[1"}) {
    ExpectBad(ParseJson(text, "c.json").status(), Code::kInvalidArgument,
              "c.json: byte ");
  }
  ExpectBad(ParseJson("{\n \"a\": tru }", "c.json").status(),
            Code::kInvalidArgument, "line 2, column 10");
}

TEST(Json, DepthIsLimited) {
  const std::string deep(kMaxJsonDepth, '[');
  const std::string close(kMaxJsonDepth, ']');
  EXPECT_TRUE(ParseJson(deep + close, "c.json").ok());
  ExpectBad(ParseJson("[" + deep + close + "]", "c.json").status(),
            Code::kResourceExhausted, "c.json: expected JSON nested at most");
  std::string objects;
  for (int i = 0; i < 1000000; ++i) objects += "{\"a\":";
  ExpectBad(ParseJson(objects, "c.json").status(), Code::kResourceExhausted,
            "nested at most 256 deep");
}

TEST(Json, SizeIsLimited) {
  JsonLimits limits;
  limits.max_bytes = 4;
  EXPECT_TRUE(ParseJson("[12]", "c.json", limits).ok());
  ExpectBad(ParseJson("[123]", "c.json", limits).status(),
            Code::kResourceExhausted, "at most 4 bytes of JSON, found 5");
  limits = {};
  limits.max_values = 3;
  EXPECT_TRUE(ParseJson("[1,2]", "c.json", limits).ok());
  ExpectBad(ParseJson("[1,2,3]", "c.json", limits).status(),
            Code::kResourceExhausted, "at most 3 JSON values");
}

TEST(Json, DuplicateKeys) {
  JsonLimits limits;
  limits.unique_keys = true;
  ExpectBad(ParseJson("{\"a\":{\"k\":1,\"k\":2}}", "c.json", limits).status(),
            Code::kInvalidArgument, "c.json: k: expected unique keys");
  EXPECT_TRUE(ParseJson("[{\"k\":1},{\"k\":1}]", "c.json", limits).ok());
}

TEST(Json, GetUint) {
  const json object = Parsed(
      R"({"n":768,"zero":0,"minus":-1,"float":4.0,"half":0.5,"text":"abc",
          "null":null,"big":18446744073709551615,"huge":1e300,"list":[1]})");
  EXPECT_EQ(*GetUint(object, "c.json", "n", 1000), 768u);
  EXPECT_EQ(*GetUint(object, "c.json", "float", 1000), 4u);
  EXPECT_EQ(*GetUint(object, "c.json", "zero", 1000, 0), 0u);
  EXPECT_EQ(*GetUint(object, "c.json", "big", ~uint64_t{0}), ~uint64_t{0});
  ExpectBad(
      GetUint(object, "config.json", "text", 9).status(),
      Code::kInvalidArgument,
      "config.json: text: expected an integer from 1 to 9, found \"abc\"");
  ExpectBad(GetUint(object, "c.json", "n", 767).status(),
            Code::kInvalidArgument, "from 1 to 767, found 768");
  ExpectBad(GetUint(object, "c.json", "zero", 9).status(),
            Code::kInvalidArgument, "found 0");
  for (const char* key : {"minus", "half", "huge", "list", "big"}) {
    ExpectBad(GetUint(object, "c.json", key, 1000).status(),
              Code::kInvalidArgument, absl::StrCat("c.json: ", key, ": "));
  }
  for (const char* key : {"null", "absent"}) {
    ExpectBad(GetUint(object, "c.json", key, 9).status(), Code::kNotFound,
              absl::StrCat("c.json: ", key, ": missing"));
    EXPECT_EQ(*GetUintOr(object, "c.json", key, 9, 5), 5u);
  }
  EXPECT_EQ(*GetUintOr(object, "c.json", "zero", 9, 5), 0u);
  EXPECT_FALSE(GetUintOr(object, "c.json", "text", 9, 5).ok());
  EXPECT_FALSE(GetUintOr(object, "c.json", "n", 9, 5).ok());
  ExpectBad(GetUint(json::array(), "c.json", "n", 9).status(),
            Code::kInvalidArgument, "c.json: expected an object");
}

TEST(Json, GetInt) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const json object = Parsed(
      R"({"min":-9223372036854775808,"max":9223372036854775807,
          "over":9223372036854775808,"n":-3,"t":true})");
  EXPECT_EQ(*GetInt(object, "c", "min", kMin, kMax), kMin);
  EXPECT_EQ(*GetInt(object, "c", "max", kMin, kMax), kMax);
  EXPECT_EQ(*GetInt(object, "c", "n", -3, 3), -3);
  ExpectBad(GetInt(object, "c", "n", -2, 3).status(), Code::kInvalidArgument,
            "c: n: expected an integer from -2 to 3, found -3");
  EXPECT_FALSE(GetInt(object, "c", "over", kMin, kMax).ok());
  EXPECT_FALSE(GetInt(object, "c", "t", kMin, kMax).ok());
}

TEST(Json, GetFloat) {
  const json object = Parsed(R"({"f":1e-6,"i":10000,"m":-2,"t":"1"})");
  EXPECT_EQ(*GetFloat(object, "c", "f"), 1e-6);
  EXPECT_EQ(*GetFloat(object, "c", "i"), 10000.0);
  EXPECT_EQ(*GetFloat(object, "c", "m"), -2.0);
  ExpectBad(GetFloat(object, "c", "t").status(), Code::kInvalidArgument,
            "c: t: expected a number, found \"1\"");
  EXPECT_EQ(*GetFloatOr(object, "c", "absent", 0.5), 0.5);
  EXPECT_FALSE(GetFloatOr(object, "c", "t", 0.5).ok());
}

TEST(Json, GetStringAndBool) {
  const json object = Parsed(R"({"s":"gelu","b":true,"n":null,"i":1})");
  EXPECT_EQ(*GetString(object, "c", "s"), "gelu");
  EXPECT_EQ(*GetStringOr(object, "c", "n", "silu"), "silu");
  ExpectBad(GetString(object, "c", "i").status(), Code::kInvalidArgument,
            "c: i: expected a string, found 1");
  EXPECT_FALSE(GetStringOr(object, "c", "b", "x").ok());
  EXPECT_TRUE(*GetBool(object, "c", "b"));
  EXPECT_TRUE(*GetBoolOr(object, "c", "n", true));
  ExpectBad(GetBoolOr(object, "c", "i", true).status(), Code::kInvalidArgument,
            "c: i: expected true or false, found 1");
}

TEST(Json, GetObjectAndArray) {
  const json object = Parsed(R"({"o":{"x":1},"a":[1,2]})");
  EXPECT_EQ((**GetObject(object, "c", "o"))["x"], 1);
  EXPECT_EQ((*GetArray(object, "c", "a"))->size(), 2u);
  ExpectBad(GetObject(object, "c", "a").status(), Code::kInvalidArgument,
            "c: a: expected an object, found an array of 2");
  ExpectBad(GetArray(object, "c", "o").status(), Code::kInvalidArgument,
            "c: o: expected an array, found an object of 1 keys");
}

TEST(Json, TextOfFilesIsEscapedInMessages) {
  json object;
  object["k"] = "line\n\x01" + std::string(1000, 'x');
  const absl::Status status = GetBool(object, "c", "k").status();
  EXPECT_LT(status.message().size(), 120u);
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

}  // namespace
}  // namespace lanewise
