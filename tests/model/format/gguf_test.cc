#include "model/format/gguf.h"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/format/limits.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;

// The file on disk is refused, and so is the same from memory.
void ExpectBad(const std::string& bytes, Code code,
               std::vector<std::string> parts) {
  TempDir folder;
  const std::string path = folder.Write("bad.gguf", bytes);
  parts.push_back("bad.gguf");
  ExpectRefused([&] { return Gguf::Open(path).status(); }, {code, parts});
  ExpectRefused(
      [&] { return Gguf::FromBytes("bad.gguf", Bytes(bytes)).status(); },
      {code, parts});
}

void ExpectBad(const GgufBuilder& builder, Code code,
               std::vector<std::string> parts) {
  ExpectBad(builder.Build(), code, std::move(parts));
}

GgufBuilder OneTensor(GgufTensorInfo info, size_t data = 64) {
  GgufBuilder builder;
  builder.Tensor(std::move(info)).Data(data);
  return builder;
}

std::string ArrayOf(uint32_t type, uint64_t count, const std::string& body) {
  return Little<uint32_t>(type) + Little(count) + body;
}

TEST(Gguf, Small) {
  for (uint32_t version : {2, 3}) {
    GgufBuilder builder = SmallGguf();
    builder.version = version;
    const auto gguf = Gguf::FromBytes("a.gguf", Bytes(builder.Build()));
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    EXPECT_EQ(*gguf->metadata().GetString("general.architecture"), "llama");
    EXPECT_EQ(*gguf->metadata().GetUint("llama.block_count", 9), 1u);
    EXPECT_EQ(**gguf->metadata().GetStrings("tokens"),
              (std::vector<std::string>{"ab", ""}));
    EXPECT_EQ(*gguf->metadata().GetFloats("scores"),
              (std::vector<double>{0.5, -1}));
    ASSERT_EQ(gguf->store().tensors().size(), 2u);
    const Tensor* a = gguf->store().Find("a.weight");
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->shape, (std::vector<uint64_t>{2, 4}));
    EXPECT_EQ(a->data.size(), 32u);
    EXPECT_EQ(a->data[5], 5);
    const Tensor* b = gguf->store().Find("b.weight");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(b->type, DType::kQ8_0);
    EXPECT_EQ(b->data.size(), 34u);
    EXPECT_EQ(b->data[0], 32);
  }
}

TEST(Gguf, VocabularyWithoutTensorsOrPadding) {
  GgufBuilder builder;
  builder.Uint("x", 1);
  const auto gguf = Gguf::FromBytes("a.gguf", Bytes(builder.Header()));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_TRUE(gguf->store().tensors().empty());
}

TEST(Gguf, AlignmentFromMetadata) {
  for (uint32_t alignment : {1, 8, 64, 4096}) {
    GgufBuilder builder;
    builder.alignment = alignment;
    builder.Uint("general.alignment", alignment);
    builder.Tensor({"w", {3}, kGgmlI8, alignment}).Data(alignment + 3);
    const auto gguf = Gguf::FromBytes("a.gguf", Bytes(builder.Build()));
    ASSERT_TRUE(gguf.ok()) << gguf.status();
    EXPECT_EQ(gguf->store().tensors()[0].data[0],
              static_cast<uint8_t>(alignment));
  }
}

TEST(Gguf, ScalarsAndEmptyTensors) {
  GgufBuilder builder;
  builder.Tensor({"scalar", {}, kGgmlF32, 0});
  builder.Tensor({"empty", {0, 7}, kGgmlF32, 0});
  builder.Tensor({"empty.quantized", {32, 0}, kGgmlQ8_0, 0});
  builder.Data(4);
  const auto gguf = Gguf::FromBytes("a.gguf", Bytes(builder.Build()));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_EQ(gguf->store().Find("scalar")->elements(), 1u);
  EXPECT_EQ(gguf->store().Find("empty")->elements(), 0u);
  EXPECT_TRUE(gguf->store().Find("empty.quantized")->data.empty());
}

TEST(Gguf, GapsBetweenTensorsAreFine) {
  GgufBuilder builder;
  builder.Tensor({"late", {4}, kGgmlF32, 96});
  builder.Tensor({"early", {4}, kGgmlF32, 0});
  builder.Data(200);
  const auto gguf = Gguf::FromBytes("a.gguf", Bytes(builder.Build()));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_EQ(gguf->store().tensors()[0].name, "late");
}

TEST(Gguf, UnsupportedTypeIsListedApart) {
  GgufBuilder builder;
  builder.Tensor({"iq", {256}, kGgmlIQ1_S, 0});
  builder.Tensor({"ok", {4}, kGgmlF32, 64}).Data(80);
  const auto gguf = Gguf::FromBytes("a.gguf", Bytes(builder.Build()));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_NE(gguf->store().Find("ok"), nullptr);
  EXPECT_EQ(gguf->store().Find("iq"), nullptr);
  EXPECT_EQ(gguf->store().Require("iq", "a.gguf").status().message(),
            "a.gguf: tensor iq: type IQ1_S is not supported");
}

TEST(Gguf, L31MissingTensorIsNamed) {
  const auto gguf = Gguf::FromBytes("a.gguf", Bytes(SmallGguf().Build()));
  ASSERT_TRUE(gguf.ok());
  const auto missing = gguf->store().Require("token_embd.weight", "a.gguf");
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_EQ(missing.status().message(),
            "a.gguf: tensor token_embd.weight: missing");
}

TEST(Gguf, L34MoreThan31BitsOfRows) {
  constexpr uint64_t kRows = (uint64_t{1} << 31) + 1;
  GgufBuilder builder;
  builder.Tensor({"w", {1, kRows}, kGgmlI8, 0});
  TempDir folder;
  const std::string header = builder.Build();
  const std::string path = folder.Write("sparse.gguf", header);
  ASSERT_EQ(truncate(path.c_str(), header.size() + kRows), 0);
  const auto gguf = Gguf::Open(path);
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  const Tensor& tensor = gguf->store().tensors()[0];
  EXPECT_EQ(tensor.shape, (std::vector<uint64_t>{kRows, 1}));
  EXPECT_EQ(tensor.elements(), kRows);
  uint8_t last = 1;
  EXPECT_TRUE(
      gguf->store().Read(tensor, kRows - 1, absl::MakeSpan(&last, 1)).ok());
  EXPECT_EQ(last, 0);
  EXPECT_EQ(gguf->store().Read(tensor, kRows, absl::MakeSpan(&last, 1)).code(),
            Code::kOutOfRange);
  ASSERT_EQ(truncate(path.c_str(), header.size() + kRows - 1), 0);
  EXPECT_EQ(
      gguf->store().Read(tensor, kRows - 1, absl::MakeSpan(&last, 1)).code(),
      Code::kDataLoss);
}

TEST(Gguf, L7CutAfterOpening) {
  TempDir folder;
  GgufBuilder builder;
  builder.Tensor({"w", {1 << 20}, kGgmlI8, 0}).Data(1 << 20);
  const std::string path = folder.Write("cut.gguf", builder.Build());
  const auto gguf = Gguf::Open(path);
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  ASSERT_EQ(truncate(path.c_str(), 8192), 0);
  const Tensor& tensor = gguf->store().tensors()[0];
  std::vector<uint8_t> out(tensor.data.size());
  const absl::Status status =
      gguf->store().Read(tensor, 0, absl::MakeSpan(out));
  EXPECT_EQ(status.code(), Code::kDataLoss);
  for (const char* part : {"cut.gguf", "truncated", "8192", "tensor w"}) {
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  }
}

// ---- The head of the file.

TEST(GgufBad, Empty) {
  ExpectBad("", Code::kDataLoss, {"magic", "truncated", "found 0"});
}

TEST(GgufBad, Magic) {
  GgufBuilder builder;
  builder.magic = "GGUX";
  ExpectBad(builder, Code::kInvalidArgument,
            {"magic", "expected \"GGUF\"", "found \"GGUX\""});
  builder.magic = "tjgg";
  ExpectBad(builder, Code::kUnimplemented, {"magic", "before GGUF"});
  ExpectBad("version https://git-lfs.github.com/spec/v1\n",
            Code::kInvalidArgument, {"magic", "Git LFS pointer"});
}

TEST(GgufBad, L32BigEndian) {
  GgufBuilder builder;
  builder.version = 0x03000000;
  ExpectBad(builder, Code::kUnimplemented, {"version", "big-endian file"});
  builder.version = 0x02000000;
  ExpectBad(builder, Code::kUnimplemented, {"version", "big-endian file"});
  builder.magic = "FUGG";
  ExpectBad(builder, Code::kUnimplemented, {"magic", "big-endian file"});
}

TEST(GgufBad, Version) {
  for (uint32_t version : {0u, 1u, 4u, ~0u}) {
    GgufBuilder builder;
    builder.version = version;
    ExpectBad(builder, Code::kUnimplemented,
              {"version", absl::StrCat("expected 2 or 3, found ", version)});
  }
}

TEST(GgufBad, L20Counts) {
  for (uint64_t count : {uint64_t{100}, uint64_t{1} << 32, ~uint64_t{0}}) {
    const std::string expected = absl::StrCat("expected ", count, " entries");
    GgufBuilder builder = OneTensor({});
    builder.tensor_count = count;
    ExpectBad(builder, Code::kDataLoss, {"tensor count: truncated", expected});
    builder = OneTensor({});
    builder.pair_count = count;
    ExpectBad(builder, Code::kDataLoss,
              {"metadata count: truncated", expected});
  }
}

TEST(GgufBad, MoreThanTheLimits) {
  GgufBuilder builder;
  builder.pair_count = kMaxGgufKeys + 1;
  builder.data.resize((kMaxGgufKeys + 1) * 14);
  ExpectBad(builder, Code::kResourceExhausted,
            {"metadata count", "expected at most 65536, found 65537"});
}

// ---- Metadata.

TEST(GgufBad, L20KeyLength) {
  for (uint64_t length : {uint64_t{1} << 16, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    GgufBuilder builder;
    builder.pairs = {Little(length) + "abc"};
    ExpectBad(builder, Code::kDataLoss,
              {"metadata key", "truncated", absl::StrCat(length)});
  }
  GgufBuilder builder;
  builder.Uint(std::string(kMaxGgufKeyBytes + 1, 'k'), 1);
  ExpectBad(builder, Code::kInvalidArgument,
            {"metadata key", "at most 65535", "found 65536"});
}

TEST(GgufBad, EmptyKey) {
  ExpectBad(GgufBuilder().Uint("", 1), Code::kInvalidArgument,
            {"metadata key", "expected a name"});
}

TEST(GgufBad, DuplicateKey) {
  ExpectBad(GgufBuilder().Uint("dup", 1).Uint("dup", 2), Code::kInvalidArgument,
            {"dup", "expected unique keys"});
}

TEST(GgufBad, ValueType) {
  ExpectBad(GgufBuilder().Pair("key", 13, Little<uint64_t>(0)),
            Code::kInvalidArgument, {"key", "unknown value type 13"});
  ExpectBad(GgufBuilder().Pair("key", kGgufBool, Little<uint8_t>(2)),
            Code::kInvalidArgument, {"key", "expected a bool", "found 2"});
}

TEST(GgufBad, L20StringLength) {
  for (uint64_t length : {uint64_t{1} << 20, uint64_t{1} << 40, ~uint64_t{0}}) {
    ExpectBad(GgufBuilder().Pair("key", kGgufString, Little(length) + "x"),
              Code::kDataLoss, {"key", "truncated", absl::StrCat(length)});
  }
}

TEST(GgufBad, L20ArrayLength) {
  for (uint32_t type : {kGgufU8, kGgufBool, kGgufI16, kGgufF32, kGgufString,
                        kGgufU64, kGgufF64}) {
    for (uint64_t count :
         {uint64_t{1000}, uint64_t{1} << 32, uint64_t{1} << 61, ~uint64_t{0}}) {
      ExpectBad(GgufBuilder().Pair("key", kGgufArray, ArrayOf(type, count, "")),
                Code::kDataLoss,
                {"key", "truncated", absl::StrCat("array of ", count)});
    }
  }
}

TEST(GgufBad, ArrayTypes) {
  ExpectBad(GgufBuilder().Pair("key", kGgufArray, ArrayOf(kGgufArray, 1, "")),
            Code::kUnimplemented, {"key", "array of arrays"});
  ExpectBad(GgufBuilder().Pair("key", kGgufArray, ArrayOf(99, 0, "")),
            Code::kInvalidArgument, {"key", "unknown type 99"});
  ExpectBad(GgufBuilder().Pair("key", kGgufArray,
                               ArrayOf(kGgufBool, 1, Little<uint8_t>(7))),
            Code::kInvalidArgument, {"key", "found 7"});
  ExpectBad(
      GgufBuilder().Pair("key", kGgufArray,
                         ArrayOf(kGgufString, 1, Little(~uint64_t{0}) + "x")),
      Code::kDataLoss, {"key", "truncated", "expected a string"});
}

TEST(GgufBad, L4AlignmentOfAnotherType) {
  ExpectBad(GgufBuilder().Pair("general.alignment", kGgufString, Text("32")),
            Code::kInvalidArgument,
            {"general.alignment", "uint32", "found type 8"});
  ExpectBad(
      GgufBuilder().Pair("general.alignment", kGgufI32, Little<int32_t>(32)),
      Code::kInvalidArgument, {"general.alignment", "found type 5"});
  ExpectBad(GgufBuilder().Pair("general.alignment", kGgufArray,
                               ArrayOf(kGgufU32, 1, Little<uint32_t>(32))),
            Code::kInvalidArgument, {"general.alignment", "found type 9"});
}

TEST(GgufBad, L5AlignmentNotUsable) {
  for (uint32_t alignment : {0u, 3u, 48u, 1u << 21, 1u << 31, ~0u}) {
    ExpectBad(GgufBuilder().Uint("general.alignment", alignment),
              Code::kInvalidArgument,
              {"general.alignment", "expected a power of two",
               absl::StrCat("found ", alignment)});
  }
}

// ---- Tensors.

TEST(GgufBad, L1OverflowingDims) {
  constexpr uint64_t kHuge = ~uint64_t{0} >> 1;
  for (const std::vector<uint64_t>& dims : std::vector<std::vector<uint64_t>>{
           {kHuge, 2, 1, 1},
           {uint64_t{1} << 32, uint64_t{1} << 32},
           {uint64_t{1} << 63, 2},
           {~uint64_t{0}},
           {kHuge, 0},
           {0, uint64_t{1} << 40, uint64_t{1} << 40},
           {65536, 65536, 65536, 65536}}) {
    ExpectBad(OneTensor({"w", dims, kGgmlI8, 0}), Code::kInvalidArgument,
              {"tensor w", "elements", "found shape"});
  }
}

TEST(GgufBad, L2StrideThatWraps) {
  constexpr uint64_t kWide = (uint64_t{1} << 42) + 1;
  ExpectBad(OneTensor({"w", {4, kWide}, kGgmlF32, 0}), Code::kDataLoss,
            {"tensor w", "truncated", absl::StrCat(kWide * 16)});
  ExpectBad(OneTensor({"w", {kWide, uint64_t{1} << 20}, kGgmlF32, 0}),
            Code::kInvalidArgument, {"tensor w", "found shape"});
}

TEST(GgufBad, DimCount) {
  for (uint32_t count : {5u, 1u << 31, ~0u}) {
    GgufTensorInfo info;
    info.dim_count = count;
    ExpectBad(
        OneTensor(info), Code::kInvalidArgument,
        {"tensor w", absl::StrCat("at most 4 dimensions, found ", count)});
  }
}

TEST(GgufBad, TensorName) {
  GgufTensorInfo info;
  info.name = "";
  ExpectBad(OneTensor(info), Code::kInvalidArgument,
            {"tensor name", "expected a name"});
  info.name = std::string(kMaxTensorNameBytes + 1, 'n');
  ExpectBad(OneTensor(info), Code::kInvalidArgument,
            {"tensor name", "at most 4096", "found 4097"});
  info.name = "two\nlines\x01";
  info.offset = 32;
  ExpectBad(OneTensor(info, 32), Code::kDataLoss,
            {"tensor two\\nlines\\x01", "truncated"});
}

TEST(GgufBad, L8DuplicateName) {
  GgufBuilder builder = OneTensor({});
  builder.Tensor({"w", {4}, kGgmlF32, 32});
  ExpectBad(builder, Code::kInvalidArgument, {"tensor w", "unique names"});
  builder.tensors[1].offset = 0;
  ExpectBad(builder, Code::kInvalidArgument, {"tensor w", "unique names"});
  builder.tensors[0].type = kGgmlIQ1_S;
  builder.tensors[0].dims = {256};
  ExpectBad(builder, Code::kInvalidArgument, {"tensor w", "unique names"});
}

TEST(GgufBad, L10OffsetOutOfRange) {
  for (uint64_t offset : {uint64_t{64}, uint64_t{1} << 40, uint64_t{1} << 63,
                          ~uint64_t{0} - 31}) {
    ExpectBad(OneTensor({"w", {4}, kGgmlF32, offset}), Code::kDataLoss,
              {"tensor w", "truncated", absl::StrCat("at offset ", offset)});
  }
  ExpectBad(OneTensor({"w", {4}, kGgmlF32, ~uint64_t{0} - 7}),
            Code::kInvalidArgument, {"tensor w", "multiple of the alignment"});
  ExpectBad(OneTensor({"w", {17}, kGgmlF32, 0}), Code::kDataLoss,
            {"tensor w", "expected 68 bytes", "found 64"});
}

TEST(GgufBad, OffsetNotAligned) {
  ExpectBad(OneTensor({"w", {4}, kGgmlF32, 16}), Code::kInvalidArgument,
            {"tensor w", "multiple of the alignment 32, found 16"});
}

TEST(GgufBad, L14Overlap) {
  GgufBuilder builder = OneTensor({"a", {12}, kGgmlF32, 0});
  builder.Tensor({"b", {4}, kGgmlF32, 32});
  ExpectBad(builder, Code::kInvalidArgument,
            {"tensor b", "overlap with tensor a"});
  builder.tensors[1].offset = 0;
  ExpectBad(builder, Code::kInvalidArgument, {"tensor", "overlap"});
}

TEST(GgufBad, L19RowIsNotWholeBlocks) {
  ExpectBad(OneTensor({"w", {32, 8}, kGgmlQ4_K, 0}, 4096),
            Code::kInvalidArgument,
            {"tensor w", "multiple of 256", "Q4_K", "rows of 32"});
  ExpectBad(OneTensor({"w", {16, 2}, kGgmlQ8_0, 0}, 4096),
            Code::kInvalidArgument, {"tensor w", "Q8_0", "rows of 16"});
  ExpectBad(OneTensor({"w", {}, kGgmlQ8_0, 0}, 4096), Code::kInvalidArgument,
            {"tensor w", "Q8_0", "rows of 1"});
  ExpectBad(OneTensor({"w", {32}, kGgmlIQ1_S, 0}, 4096), Code::kInvalidArgument,
            {"tensor w", "IQ1_S", "rows of 32"});
}

TEST(GgufBad, TensorType) {
  ExpectBad(OneTensor({"w", {32}, 77, 0}), Code::kUnimplemented,
            {"tensor w", "unknown type 77"});
  ExpectBad(OneTensor({"w", {32}, ~0u, 0}), Code::kUnimplemented,
            {"tensor w", "unknown type 4294967295"});
  ExpectBad(OneTensor({"w", {32}, 4, 0}), Code::kUnimplemented,
            {"tensor w", "Q4_2", "removed"});
  ExpectBad(OneTensor({"w", {32}, 31, 0}), Code::kUnimplemented,
            {"tensor w", "Q4_0_4_4", "not supported"});
}

TEST(GgufBad, TruncatedAnywhere) {
  const std::string file = SmallGguf().Build();
  for (size_t size = 0; size < file.size(); ++size) {
    const auto gguf = Gguf::FromBytes("cut.gguf", Bytes(file.substr(0, size)));
    ASSERT_EQ(gguf.status().code(), Code::kDataLoss) << size;
    EXPECT_NE(gguf.status().message().find("truncated"),
              absl::string_view::npos);
  }
}

}  // namespace
}  // namespace lanewise
