#include "model/format/metadata.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;
constexpr uint64_t kBig = uint64_t{1} << 63;

Metadata EveryType() {
  Metadata metadata("m.gguf");
  metadata.Insert("bool", true);
  metadata.Insert("int", int64_t{7});
  metadata.Insert("minus", int64_t{-7});
  metadata.Insert("big", kBig);
  metadata.Insert("float", 0.5);
  metadata.Insert("string", std::string("text"));
  metadata.Insert("bools", std::vector<bool>{true});
  metadata.Insert("ints", std::vector<int64_t>{1, -2});
  metadata.Insert("bigs", std::vector<uint64_t>{kBig});
  metadata.Insert("floats", std::vector<double>{1.5});
  metadata.Insert("strings", std::vector<std::string>{"a", ""});
  return metadata;
}

TEST(Metadata, KeysOfTheArchitecture) {
  Metadata metadata("m.gguf");
  EXPECT_EQ(metadata.ArchitectureKey("block_count"), "");
  metadata.Insert("general.architecture", std::string("t5"));
  EXPECT_EQ(metadata.ArchitectureKey("block_count"), "t5.block_count");
  Metadata other("m.gguf");
  other.Insert("general.architecture", uint64_t{5});
  EXPECT_EQ(other.ArchitectureKey("block_count"), "");
  EXPECT_FALSE(other.Has(other.ArchitectureKey("block_count")));
}

TEST(Metadata, Keys) {
  Metadata metadata = EveryType();
  EXPECT_EQ(metadata.keys().size(), 11u);
  EXPECT_EQ(metadata.keys()[1], "int");
  EXPECT_TRUE(metadata.Has("int"));
  EXPECT_FALSE(metadata.Has("nope"));
  EXPECT_FALSE(metadata.Insert("int", false));
  EXPECT_EQ(*metadata.GetInt("int"), 7);
  EXPECT_EQ(metadata.keys().size(), 11u);
}

TEST(Metadata, Values) {
  const Metadata metadata = EveryType();
  EXPECT_TRUE(*metadata.GetBool("bool"));
  EXPECT_EQ(*metadata.GetInt("minus"), -7);
  EXPECT_EQ(*metadata.GetUint("int", 7), 7u);
  EXPECT_EQ(*metadata.GetUint("big", kBig), kBig);
  EXPECT_EQ(*metadata.GetFloat("float"), 0.5);
  EXPECT_EQ(*metadata.GetFloat("minus"), -7.0);
  EXPECT_EQ(*metadata.GetFloat("big"), 9223372036854775808.0);
  EXPECT_EQ(*metadata.GetString("string"), "text");
  EXPECT_EQ((*metadata.GetStrings("strings"))->size(), 2u);
  EXPECT_EQ(*metadata.GetInts("ints"), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(*metadata.GetFloats("floats"), std::vector<double>{1.5});
  EXPECT_EQ(*metadata.GetFloats("ints"), (std::vector<double>{1, -2}));
  EXPECT_EQ(*metadata.GetFloats("bigs"), std::vector<double>{double{kBig}});
}

// Every getter with a value of every type: right, or an error that names file,
// key and what was found; never anything else.
TEST(Metadata, L4EveryKeyWithEveryWrongType) {
  const Metadata metadata = EveryType();
  const auto expect = [&](const absl::Status& status, const std::string& key,
                          const std::string& allowed) {
    const bool ok = absl::StrCat(" ", allowed, " ").find(" " + key + " ") !=
                    std::string::npos;
    if (ok) {
      EXPECT_TRUE(status.ok()) << status;
      return;
    }
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << key;
    EXPECT_EQ(status.message().find("m.gguf: " + key + ": expected "), 0u)
        << status;
    EXPECT_NE(status.message().find(", found "), absl::string_view::npos);
  };
  for (const std::string& key : metadata.keys()) {
    expect(metadata.GetBool(key).status(), key, "bool");
    expect(metadata.GetInt(key).status(), key, "int minus");
    expect(metadata.GetUint(key, ~uint64_t{0}).status(), key, "int big");
    expect(metadata.GetFloat(key).status(), key, "int minus big float");
    expect(metadata.GetString(key).status(), key, "string");
    expect(metadata.GetStrings(key).status(), key, "strings");
    expect(metadata.GetInts(key).status(), key, "ints");
    expect(metadata.GetFloats(key).status(), key, "ints bigs floats");
    expect(metadata.GetBoolOr(key, false).status(), key, "bool");
    expect(metadata.GetUintOr(key, ~uint64_t{0}, 1).status(), key, "int big");
    expect(metadata.GetFloatOr(key, 1).status(), key, "int minus big float");
  }
}

TEST(Metadata, Messages) {
  const Metadata metadata = EveryType();
  EXPECT_EQ(metadata.GetUint("int", 6).status().message(),
            "m.gguf: int: expected an integer from 0 to 6, found 7");
  EXPECT_EQ(metadata.GetUint("minus", 6).status().message(),
            "m.gguf: minus: expected an integer from 0 to 6, found -7");
  EXPECT_EQ(metadata.GetBool("string").status().message(),
            "m.gguf: string: expected a bool, found \"text\"");
  EXPECT_EQ(metadata.GetString("strings").status().message(),
            "m.gguf: strings: expected a string, found an array of 2 strings");
  EXPECT_EQ(metadata.GetUint("big", kBig - 1).status().code(),
            Code::kInvalidArgument);
}

TEST(Metadata, Absent) {
  const Metadata metadata("m.gguf");
  EXPECT_EQ(metadata.GetInt("k").status().message(), "m.gguf: k: missing");
  for (const absl::Status& status :
       {metadata.GetBool("k").status(), metadata.GetInt("k").status(),
        metadata.GetUint("k", 1).status(), metadata.GetFloat("k").status(),
        metadata.GetString("k").status(), metadata.GetStrings("k").status(),
        metadata.GetInts("k").status(), metadata.GetFloats("k").status()}) {
    EXPECT_EQ(status.code(), Code::kNotFound);
  }
  EXPECT_TRUE(*metadata.GetBoolOr("k", true));
  EXPECT_EQ(*metadata.GetUintOr("k", 1, 9), 9u);
  EXPECT_EQ(*metadata.GetFloatOr("k", 1e-5), 1e-5);
}

}  // namespace
}  // namespace lanewise
