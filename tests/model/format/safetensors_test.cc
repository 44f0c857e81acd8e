#include "model/format/safetensors.h"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;

// One entry of a header, without the braces around all.
std::string Entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, const std::string& offsets) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype,
                      "\",\"shape\":", shape, ",\"data_offsets\":", offsets,
                      "}");
}

std::string Data(size_t bytes) {
  std::string data(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i);
  return data;
}

void ExpectBad(const std::string& bytes, Code code,
               std::vector<std::string> parts,
               const SafetensorsOptions& options = {}) {
  TempDir folder;
  const std::string path = folder.Write("bad.safetensors", bytes);
  parts.push_back("bad.safetensors");
  ExpectRefused([&] { return SafetensorsFile::Open(path, options).status(); },
                {code, parts});
  ExpectRefused(
      [&] {
        return SafetensorsFile::FromBytes("bad.safetensors", Bytes(bytes),
                                          options)
            .status();
      },
      {code, parts});
}

// A file of these entries and `data` bytes.
void ExpectBadHeader(const std::string& entries, size_t data, Code code,
                     std::vector<std::string> parts) {
  ExpectBad(Safetensors("{" + entries + "}", Data(data)), code,
            std::move(parts));
}

TEST(Safetensors, Small) {
  const std::string header = "{" + Entry("b", "F32", "[2,1]", "[3,11]") + "," +
                             Entry("a", "U8", "[3]", "[0,3]") +
                             R"(,"__metadata__":{"format":"pt"},)" +
                             Entry("scalar", "BF16", "[]", "[11,13]") + "}  ";
  const auto file =
      SafetensorsFile::FromBytes("a", Bytes(Safetensors(header, Data(13))));
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->tensors()[0].name, "a");  // in the order of the data
  const Tensor* b = file->Find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, DType::kF32);
  EXPECT_EQ(b->shape, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(b->data.size(), 8u);
  EXPECT_EQ(b->data[0], 3);
  EXPECT_EQ(file->Find("scalar")->elements(), 1u);
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_EQ(file->Find("__metadata__"), nullptr);
}

TEST(Safetensors, EveryType) {
  for (const auto& [name, bytes] :
       std::vector<std::pair<std::string, int>>{{"F64", 8},
                                                {"F32", 4},
                                                {"F16", 2},
                                                {"BF16", 2},
                                                {"I64", 8},
                                                {"U64", 8},
                                                {"I32", 4},
                                                {"U32", 4},
                                                {"I16", 2},
                                                {"U16", 2},
                                                {"I8", 1},
                                                {"U8", 1},
                                                {"BOOL", 1},
                                                {"F8_E4M3", 1}}) {
    const std::string header =
        "{" + Entry("w", name, "[3]", absl::StrCat("[0,", 3 * bytes, "]")) +
        "}";
    const auto file = SafetensorsFile::FromBytes(
        "a", Bytes(Safetensors(header, Data(3 * bytes))));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(BytesOf(file->tensors()[0].type, 3),
              static_cast<size_t>(3 * bytes));
  }
}

TEST(Safetensors, L17EmptyTensors) {
  const std::string header = "{" + Entry("e", "F32", "[0,4]", "[0,0]") + "," +
                             Entry("w", "F32", "[1]", "[0,4]") + "," +
                             Entry("z", "F32", "[7,0]", "[4,4]") + "}";
  const auto file =
      SafetensorsFile::FromBytes("a", Bytes(Safetensors(header, Data(4))));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors().size(), 3u);
  EXPECT_TRUE(file->Find("e")->data.empty());
  EXPECT_EQ(file->Find("e")->elements(), 0u);
}

TEST(Safetensors, NoTensors) {
  const auto file =
      SafetensorsFile::FromBytes("a", Bytes(Safetensors("{}", "")));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Safetensors, UnsupportedTypeIsListedApart) {
  const std::string header = "{" + Entry("q", "F8_E5M2", "[4]", "[0,4]") + "," +
                             Entry("w", "F32", "[1]", "[4,8]") + "}";
  const auto file = SafetensorsFile::FromBytes(
      "a.safetensors", Bytes(Safetensors(header, Data(8))));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NE(file->Find("w"), nullptr);
  EXPECT_EQ(file->Find("q"), nullptr);
  const auto required = file->store().Require("q", "a.safetensors");
  EXPECT_EQ(required.status().message(),
            "a.safetensors: tensor q: type F8_E5M2 is not supported");
}

TEST(Safetensors, L7CutAfterOpening) {
  TempDir folder;
  const std::string header =
      "{" + Entry("w", "U8", "[100000]", "[0,100000]") + "}";
  const std::string path =
      folder.Write("cut.safetensors", Safetensors(header, Data(100000)));
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(truncate(path.c_str(), 5000), 0);
  std::vector<uint8_t> out(100000);
  const absl::Status status =
      file->store().Read(file->tensors()[0], 0, absl::MakeSpan(out));
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_NE(status.message().find("cut.safetensors: truncated"),
            absl::string_view::npos);
}

TEST(SafetensorsBad, HeaderLength) {
  ExpectBad("", Code::kDataLoss, {"header length", "truncated"});
  ExpectBad("1234567", Code::kDataLoss, {"header length", "found 7"});
  ExpectBad(Safetensors("{}", "", 3), Code::kDataLoss,
            {"header length", "expected a header of 3", "found 2"});
  ExpectBad(Safetensors("{}", "", 0), Code::kInvalidArgument,
            {"header", "expected a JSON object"});
}

TEST(SafetensorsBad, L13HeaderTooLarge) {
  for (uint64_t length :
       {uint64_t{126'000'000}, uint64_t{1} << 63, ~uint64_t{0}}) {
    ExpectBad(
        Safetensors("{}", "", length), Code::kResourceExhausted,
        {"header length", "at most 100000000", absl::StrCat("found ", length)});
  }
  // The limit can be set.
  SafetensorsOptions options;
  options.max_header_bytes = 16;
  const std::string header = "{" + Entry("w", "U8", "[1]", "[0,1]") + "}";
  ExpectBad(Safetensors(header, "x"), Code::kResourceExhausted,
            {"header length", "at most 16"}, options);
  options.max_header_bytes = 126'000'000;
  ExpectBad(Safetensors("{}", "", 126'000'000), Code::kDataLoss,
            {"header length", "truncated"}, options);
}

TEST(SafetensorsBad, GitLfsPointer) {
  ExpectBad("version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
            Code::kResourceExhausted, {"header length", "Git LFS pointer"});
}

TEST(SafetensorsBad, NotJson) {
  ExpectBad(Safetensors("[]", ""), Code::kInvalidArgument,
            {"header", "expected a JSON object"});
  ExpectBad(Safetensors("{\"a\":", ""), Code::kInvalidArgument,
            {"header", "not valid JSON"});
  ExpectBad(Safetensors("{} x", ""), Code::kInvalidArgument,
            {"header", "not valid JSON"});
  ExpectBad(Safetensors("{\"\xff\xfe\":1}", ""), Code::kInvalidArgument,
            {"header", "not valid JSON"});
}

TEST(SafetensorsBad, NestedTooDeep) {
  ExpectBad(Safetensors("{\"a\":" + std::string(100000, '['), ""),
            Code::kResourceExhausted, {"header", "nested at most 8"});
}

TEST(SafetensorsBad, L8DuplicateName) {
  ExpectBadHeader(
      Entry("w", "U8", "[4]", "[0,4]") + "," + Entry("w", "U8", "[4]", "[4,8]"),
      8, Code::kInvalidArgument, {"header: w", "unique keys"});
}

TEST(SafetensorsBad, FieldMissing) {
  ExpectBadHeader(R"("w":{"shape":[1],"data_offsets":[0,4]})", 4,
                  Code::kNotFound, {"tensor w", "dtype: missing"});
  ExpectBadHeader(R"("w":{"dtype":"F32","data_offsets":[0,4]})", 4,
                  Code::kNotFound, {"tensor w", "shape: missing"});
  ExpectBadHeader(R"("w":{"dtype":"F32","shape":[1]})", 4, Code::kNotFound,
                  {"tensor w", "data_offsets: missing"});
}

TEST(SafetensorsBad, FieldOfAnotherType) {
  ExpectBadHeader(R"("w":3)", 0, Code::kInvalidArgument,
                  {"tensor w", "expected an object, found 3"});
  ExpectBadHeader(R"("w":{"dtype":7,"shape":[1],"data_offsets":[0,4]})", 4,
                  Code::kInvalidArgument,
                  {"tensor w", "dtype: expected a string, found 7"});
  ExpectBadHeader(R"("w":{"dtype":"F32","shape":1,"data_offsets":[0,4]})", 4,
                  Code::kInvalidArgument,
                  {"tensor w", "shape: expected an array"});
  ExpectBadHeader(Entry("w", "F32", "[\"1\"]", "[0,4]"), 4,
                  Code::kInvalidArgument,
                  {"tensor w", "shape: expected an integer", "\"1\""});
  for (const char* dim :
       {"-1", "1.5", "1e30", "null", "18446744073709551616"}) {
    ExpectBadHeader(Entry("w", "F32", absl::StrCat("[", dim, "]"), "[0,4]"), 4,
                    Code::kInvalidArgument, {"tensor w", "shape: expected"});
  }
  ExpectBadHeader(R"("__metadata__":[])", 0, Code::kInvalidArgument,
                  {"__metadata__", "expected an object"});
  ExpectBadHeader(R"("__metadata__":{"k":1})", 0, Code::kInvalidArgument,
                  {"__metadata__: k", "expected a string, found 1"});
}

TEST(SafetensorsBad, NameAndDims) {
  ExpectBadHeader(Entry("", "U8", "[1]", "[0,1]"), 1, Code::kInvalidArgument,
                  {"expected a name"});
  ExpectBadHeader(Entry(std::string(5000, 'n'), "U8", "[1]", "[0,1]"), 1,
                  Code::kInvalidArgument, {"1 to 4096 bytes, found 5000"});
  ExpectBadHeader(Entry("w", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1,
                  Code::kInvalidArgument,
                  {"tensor w", "at most 8 dimensions, found 9"});
}

TEST(SafetensorsBad, L11ShapeBeyondTheData) {
  ExpectBadHeader(
      Entry("w", "F32", "[1000,1000]", "[0,4]"), 4, Code::kInvalidArgument,
      {"tensor w", "expected 4000000 bytes for F32 [1000, 1000]", "found 4"});
  ExpectBadHeader(Entry("w", "F32", "[1000,1000]", "[0,4000000]"), 4,
                  Code::kDataLoss,
                  {"tensor w", "truncated", "within the 4 bytes"});
  ExpectBadHeader(Entry("w", "F32", "[0]", "[0,4]"), 4, Code::kInvalidArgument,
                  {"tensor w", "expected 0 bytes"});
}

TEST(SafetensorsBad, L1OverflowingShape) {
  for (const char* shape :
       {"[4294967296,4294967296]", "[9223372036854775807,2]",
        "[18446744073709551615]", "[0,18446744073709551615]",
        "[65536,65536,65536,65536]", "[4611686018427387905]"}) {
    ExpectBadHeader(Entry("w", "F32", shape, "[0,4]"), 4,
                    Code::kInvalidArgument, {"tensor w", "found shape"});
  }
}

TEST(SafetensorsBad, L16Offsets) {
  ExpectBadHeader(Entry("w", "F32", "[1]", "[4,0]"), 4, Code::kInvalidArgument,
                  {"tensor w", "data_offsets [4, 0]", "begin <= end"});
  ExpectBadHeader(Entry("w", "F32", "[1]", "[0,8]"), 4, Code::kDataLoss,
                  {"tensor w", "data_offsets [0, 8]", "truncated"});
  ExpectBadHeader(
      Entry("w", "F32", "[1]", "[18446744073709551612,18446744073709551615]"),
      4, Code::kDataLoss, {"tensor w", "truncated"});
  ExpectBadHeader(Entry("w", "F32", "[1]", "[0,4,4]"), 4,
                  Code::kInvalidArgument,
                  {"tensor w", "data_offsets: expected 2 numbers, found 3"});
  ExpectBadHeader(Entry("w", "F32", "[1]", "[-4,0]"), 4, Code::kInvalidArgument,
                  {"tensor w", "data_offsets", "-4"});
}

TEST(SafetensorsBad, L14Overlap) {
  ExpectBadHeader(Entry("k_proj", "U8", "[4]", "[0,4]") + "," +
                      Entry("v_proj", "U8", "[4]", "[0,4]"),
                  4, Code::kInvalidArgument,
                  {"tensor v_proj", "overlap with tensor k_proj"});
  ExpectBadHeader(
      Entry("a", "U8", "[4]", "[0,4]") + "," + Entry("b", "U8", "[4]", "[2,6]"),
      6, Code::kInvalidArgument, {"tensor b", "overlap with tensor a [0, 4]"});
}

TEST(SafetensorsBad, L14Holes) {
  ExpectBadHeader(Entry("a", "U8", "[4]", "[0,4]") + "," +
                      Entry("b", "U8", "[4]", "[6,10]"),
                  10, Code::kInvalidArgument,
                  {"tensor b", "a hole of 2 bytes"});
  ExpectBadHeader(Entry("a", "U8", "[4]", "[1,5]"), 5, Code::kInvalidArgument,
                  {"tensor a", "a hole of 1 bytes"});
  ExpectBadHeader(Entry("a", "U8", "[4]", "[0,4]"), 5, Code::kInvalidArgument,
                  {"data", "expected 4 bytes", "found 5"});
  ExpectBadHeader("", 1, Code::kInvalidArgument, {"data", "expected 0 bytes"});
}

TEST(SafetensorsBad, TruncatedAnywhere) {
  const std::string file =
      Safetensors("{" + Entry("w", "F32", "[2]", "[0,8]") + "}", Data(8));
  for (size_t size = 0; size < file.size(); ++size) {
    const auto cut =
        SafetensorsFile::FromBytes("cut", Bytes(file.substr(0, size)));
    ASSERT_EQ(cut.status().code(), Code::kDataLoss) << size;
  }
}

}  // namespace
}  // namespace lanewise
