// Models in several safetensors files.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "model/format/safetensors.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;

constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kFirst[] = "model-00001-of-00002.safetensors";
constexpr char kSecond[] = "model-00002-of-00002.safetensors";

// A file of tensors of one byte each.
std::string Shard(const std::vector<std::string>& names) {
  std::vector<std::string> entries;
  for (size_t i = 0; i < names.size(); ++i) {
    entries.push_back(absl::StrCat("\"", names[i],
                                   R"(":{"dtype":"U8","shape":[1],)",
                                   "\"data_offsets\":[", i, ",", i + 1, "]}"));
  }
  return Safetensors("{" + absl::StrJoin(entries, ",") + "}",
                     std::string(names.size(), 'x'));
}

std::string Index(const std::map<std::string, std::string>& map) {
  std::vector<std::string> entries;
  for (const auto& [name, shard] : map) {
    entries.push_back(absl::StrCat("\"", name, "\":\"", shard, "\""));
  }
  return R"({"metadata":{"total_size":3},"weight_map":{)" +
         absl::StrJoin(entries, ",") + "}}";
}

// Two shards with tensors a, b and c.
class SafetensorsIndex : public testing::Test {
 protected:
  SafetensorsIndex() {
    folder_.Write(kFirst, Shard({"a", "b"}));
    folder_.Write(kSecond, Shard({"c"}));
    Write({{"a", kFirst}, {"b", kFirst}, {"c", kSecond}});
  }
  void Write(const std::map<std::string, std::string>& map) {
    path_ = folder_.Write(kIndex, Index(map));
  }
  void ExpectBad(Code code, std::vector<std::string> parts) {
    parts.push_back(kIndex);
    ExpectRefused([&] { return OpenSafetensorsIndex(path_).status(); },
                  {code, std::move(parts)});
  }

  TempDir folder_;
  std::string path_;
};

TEST_F(SafetensorsIndex, Good) {
  const auto store = OpenSafetensorsIndex(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(store->tensors().size(), 3u);
  EXPECT_EQ(store->Find("c")->file, folder_.path() + "/" + kSecond);
  EXPECT_EQ(store->Find("c")->data[0], 'x');
}

TEST_F(SafetensorsIndex, TotalSizeIsOptional) {
  path_ = folder_.Write(
      kIndex, absl::StrCat(R"({"weight_map":{"a":")", kFirst, R"(","b":")",
                           kFirst, R"(","c":")", kSecond, R"("}})"));
  EXPECT_TRUE(OpenSafetensorsIndex(path_).ok());
}

TEST_F(SafetensorsIndex, L25OddShardNames) {
  constexpr char kOdd[] = "model.safetensors-00001-of-00002.safetensors";
  folder_.Write(kOdd, Shard({"a", "b"}));
  folder_.Write("Δ rest.bin", Shard({"c"}));
  Write({{"a", kOdd}, {"b", kOdd}, {"c", "Δ rest.bin"}});
  const auto store = OpenSafetensorsIndex(path_);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(store->tensors().size(), 3u);
}

TEST_F(SafetensorsIndex, L22MissingShards) {
  Write({{"a", kFirst},
         {"b", "lost-1.safetensors"},
         {"c", "lost-2.safetensors"}});
  ExpectBad(Code::kNotFound, {"weight_map", "missing", "lost-1.safetensors",
                              "lost-2.safetensors"});
}

TEST_F(SafetensorsIndex, L23StaleIndex) {
  Write({{"a", "old-1.safetensors"}, {"b", "old-1.safetensors"}});
  ExpectBad(Code::kNotFound, {"weight_map", "missing: old-1.safetensors",
                              "beside it lie", kFirst, "stale"});
}

TEST_F(SafetensorsIndex, L26MapLacksTensors) {
  Write({{"a", kFirst}, {"c", kSecond}});
  ExpectBad(Code::kInvalidArgument, {"weight_map", "lacks tensors", ": b"});
}

TEST_F(SafetensorsIndex, L26ShardLacksTensors) {
  Write({{"a", kFirst}, {"b", kFirst}, {"c", kSecond}, {"d", kSecond}});
  ExpectBad(Code::kInvalidArgument,
            {"weight_map", "files lack", absl::StrCat("d in ", kSecond)});
}

TEST_F(SafetensorsIndex, TensorInAnotherShard) {
  Write({{"a", kFirst}, {"b", kSecond}, {"c", kSecond}});
  ExpectBad(Code::kInvalidArgument, {"tensor b", "expected it in", kFirst});
}

TEST_F(SafetensorsIndex, L8DuplicateAcrossShards) {
  folder_.Write(kSecond, Shard({"c", "a"}));
  ExpectRefused(
      [&] { return OpenSafetensorsIndex(path_).status(); },
      {Code::kInvalidArgument, {kSecond, "tensor a", "unique names", kFirst}});
}

TEST_F(SafetensorsIndex, PathsInShardNames) {
  for (const char* shard :
       {"../x.safetensors", "/etc/passwd", "sub/x.safetensors", "..", ".", "",
        "a\\\\b", "x\\u0000y"}) {
    Write({{"a", shard}});
    ExpectBad(Code::kInvalidArgument,
              {"weight_map: a", "expected the name of a file"});
  }
}

TEST_F(SafetensorsIndex, WrongTypes) {
  path_ = folder_.Write(kIndex, "[]");
  ExpectBad(Code::kInvalidArgument, {"expected an object"});
  path_ = folder_.Write(kIndex, "{}");
  ExpectBad(Code::kNotFound, {"weight_map: missing"});
  path_ = folder_.Write(kIndex, R"({"weight_map":[]})");
  ExpectBad(Code::kInvalidArgument, {"weight_map: expected an object"});
  path_ = folder_.Write(kIndex, R"({"weight_map":{}})");
  ExpectBad(Code::kInvalidArgument, {"weight_map", "at least one tensor"});
  path_ = folder_.Write(kIndex, R"({"weight_map":{"a":1}})");
  ExpectBad(Code::kInvalidArgument, {"weight_map: a: expected a string"});
  path_ = folder_.Write(kIndex, R"({"weight_map":{"a":)");
  ExpectBad(Code::kInvalidArgument, {"not valid JSON"});
  path_ = folder_.Write(kIndex, "");
  ExpectBad(Code::kInvalidArgument, {"not valid JSON"});
}

TEST_F(SafetensorsIndex, BadShardIsNamed) {
  folder_.Write(kSecond, Safetensors("{}", "", 100));
  ExpectRefused([&] { return OpenSafetensorsIndex(path_).status(); },
                {Code::kDataLoss, {kSecond, "header length", "truncated"}});
}

}  // namespace
}  // namespace lanewise
