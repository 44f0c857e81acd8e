// GGUF models in several files.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/format/gguf.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;

GgufBuilder Shard(uint16_t no, uint16_t count, const std::string& tensor) {
  GgufBuilder builder;
  builder.Pair("split.no", kGgufU16, Little(no));
  builder.Pair("split.count", kGgufU16, Little(count));
  builder.Pair("split.tensors.count", kGgufI32, Little<int32_t>(count));
  builder.Tensor({tensor, {4}, kGgmlF32, 0}).Data(16);
  return builder;
}

std::string Name(int no, int count) {
  return absl::StrFormat("m-%05d-of-%05d.gguf", no, count);
}

// Three shards with tensors t0, t1, t2; returns the path of the first.
std::string WriteThree(const TempDir& folder) {
  for (int no = 0; no < 3; ++no) {
    folder.Write(Name(no + 1, 3), Shard(no, 3, absl::StrCat("t", no)).Build());
  }
  return folder.path() + "/" + Name(1, 3);
}

void ExpectBad(const std::string& path, Code code,
               std::vector<std::string> parts) {
  ExpectRefused([&] { return Gguf::Open(path).status(); },
                {code, std::move(parts)});
}

TEST(GgufSplit, OpensAllByTheFirst) {
  TempDir folder;
  const std::string path = WriteThree(folder);
  const auto gguf = Gguf::Open(path);
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  ASSERT_EQ(gguf->store().tensors().size(), 3u);
  for (int no = 0; no < 3; ++no) {
    const Tensor& tensor = gguf->store().tensors()[no];
    EXPECT_EQ(tensor.name, absl::StrCat("t", no));
    EXPECT_EQ(tensor.file, folder.path() + "/" + Name(no + 1, 3));
    std::vector<uint8_t> bytes(16);
    ASSERT_TRUE(gguf->store().Read(tensor, 0, absl::MakeSpan(bytes)).ok());
    EXPECT_EQ(absl::MakeConstSpan(bytes), tensor.data);
  }
  // The folder is one model, not three.
  const auto checkpoint = Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_NE((*checkpoint)->FindTensor("t2"), nullptr);
}

TEST(GgufSplit, OneOfOneNeedsNoPattern) {
  TempDir folder;
  const std::string path = folder.Write("a.gguf", Shard(0, 1, "t").Build());
  EXPECT_TRUE(Gguf::Open(path).ok());
}

TEST(GgufSplit, NotTheFirst) {
  TempDir folder;
  WriteThree(folder);
  ExpectBad(folder.path() + "/" + Name(2, 3), Code::kInvalidArgument,
            {Name(2, 3), "split.no", "found 1", "-00001-of-00003.gguf"});
}

TEST(GgufSplit, NameWithoutPattern) {
  TempDir folder;
  const std::string path = folder.Write("a.gguf", Shard(0, 3, "t").Build());
  ExpectBad(path, Code::kInvalidArgument,
            {"a.gguf", "split.count", "-00001-of-00003.gguf"});
}

TEST(GgufSplit, L22MissingShardsAreListed) {
  TempDir folder;
  const std::string path = folder.Write(Name(1, 4), Shard(0, 4, "t").Build());
  folder.Write(Name(3, 4), Shard(2, 4, "u").Build());
  ExpectBad(path, Code::kNotFound,
            {Name(1, 4), "split.count", "missing", Name(2, 4), Name(4, 4)});
}

TEST(GgufSplit, L8DuplicateAcrossShards) {
  TempDir folder;
  const std::string path = WriteThree(folder);
  folder.Write(Name(3, 3), Shard(2, 3, "t0").Build());
  ExpectBad(path, Code::kInvalidArgument,
            {Name(3, 3), "tensor t0", "unique names", Name(1, 3)});
}

TEST(GgufSplit, WrongNumberInAShard) {
  TempDir folder;
  const std::string path = WriteThree(folder);
  folder.Write(Name(2, 3), Shard(2, 3, "t1").Build());
  ExpectBad(path, Code::kInvalidArgument,
            {Name(2, 3), "split.no", "expected file 1 of 3, found 2 of 3"});
  folder.Write(Name(2, 3), Shard(1, 7, "t1").Build());
  ExpectBad(path, Code::kInvalidArgument,
            {Name(2, 3), "split.no", "found 1 of 7"});
}

TEST(GgufSplit, TensorsCount) {
  TempDir folder;
  const std::string path = WriteThree(folder);
  GgufBuilder two = Shard(2, 3, "t2");
  two.Tensor({"t3", {0}, kGgmlF32, 0});
  folder.Write(Name(3, 3), two.Build());
  ExpectBad(
      path, Code::kInvalidArgument,
      {Name(1, 3), "split.tensors.count", "expected 3 tensors", "found 4"});
}

TEST(GgufSplit, L4KeysOfAnotherType) {
  TempDir folder;
  for (const char* key : {"split.count", "split.no", "split.tensors.count"}) {
    ExpectBad(
        folder.Write("a.gguf",
                     GgufBuilder().Pair(key, kGgufString, Text("3")).Build()),
        Code::kInvalidArgument,
        {"a.gguf", key, "expected an integer", "found \"3\""});
    ExpectBad(
        folder.Write(
            "a.gguf",
            GgufBuilder().Pair(key, kGgufI32, Little<int32_t>(-1)).Build()),
        Code::kInvalidArgument, {"a.gguf", key, "found -1"});
  }
  ExpectBad(folder.Write("a.gguf", GgufBuilder()
                                       .Pair("split.count", kGgufU64,
                                             Little(~uint64_t{0}))
                                       .Build()),
            Code::kInvalidArgument, {"split.count", "from 0 to 1000"});
}

TEST(GgufSplit, BadShardIsNamed) {
  TempDir folder;
  const std::string path = WriteThree(folder);
  folder.Write(Name(3, 3), "GGUF");
  ExpectBad(path, Code::kDataLoss, {Name(3, 3), "version", "truncated"});
}

}  // namespace
}  // namespace lanewise
