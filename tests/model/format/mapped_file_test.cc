#include "model/format/mapped_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "model/format/byte_reader.h"
#include "model/format/text_file.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;

TEST(MappedFile, BytesAndReadAt) {
  TempDir folder;
  const std::string path = folder.Write("f", "hello");
  auto opened = MappedFile::Open(path);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const MappedFile moved = *std::move(opened);
  const MappedFile buffer = MappedFile::FromBytes(path, Bytes("hello"));
  for (const MappedFile* file : {&moved, &buffer}) {
    ASSERT_EQ(file->size(), 5u);
    EXPECT_EQ(file->bytes()[4], 'o');
    uint8_t two[2];
    ASSERT_TRUE(file->ReadAt(3, absl::MakeSpan(two)).ok());
    EXPECT_EQ(two[0], 'l');
    for (uint64_t offset : {uint64_t{4}, uint64_t{5}, uint64_t{1} << 62,
                            ~uint64_t{0} - 1, ~uint64_t{0}}) {
      const absl::Status status = file->ReadAt(offset, absl::MakeSpan(two));
      EXPECT_EQ(status.code(), Code::kDataLoss) << offset;
      EXPECT_EQ(status.message().find(path + ": truncated"), 0u) << status;
    }
  }
}

TEST(MappedFile, EmptyFile) {
  TempDir folder;
  const auto file = MappedFile::Open(folder.Write("f", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->size(), 0u);
  EXPECT_TRUE(file->ReadAt(0, {}).ok());
  file->DontNeed(file->bytes());
}

TEST(MappedFile, NotARegularFile) {
  TempDir folder;
  ExpectRefused([&] { return MappedFile::Open(folder.path()).status(); },
                {Code::kInvalidArgument, {folder.path(), "found a directory"}});
  const std::string fifo = folder.path() + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ExpectRefused([&] { return MappedFile::Open(fifo).status(); },
                {Code::kInvalidArgument, {fifo, "found a FIFO"}});
  ExpectRefused(
      [&] { return MappedFile::Open(folder.path() + "/no").status(); },
      {Code::kNotFound, {"/no", "No such file or directory"}});
}

TEST(MappedFile, Unreadable) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  TempDir folder;
  const std::string path = folder.Write("f", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  ExpectRefused([&] { return MappedFile::Open(path).status(); },
                {Code::kPermissionDenied, {path, "Permission denied"}});
}

TEST(MappedFile, L7CutAfterOpening) {
  TempDir folder;
  const std::string path = folder.Write("f", std::string(20000, 'x'));
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(truncate(path.c_str(), 10000), 0);
  std::vector<uint8_t> out(20000);
  EXPECT_TRUE(file->ReadAt(0, absl::MakeSpan(out).first(10000)).ok());
  const absl::Status status = file->ReadAt(0, absl::MakeSpan(out));
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_NE(status.message().find("found the end at 10000"),
            absl::string_view::npos)
      << status;
}

TEST(MappedFile, DontNeedKeepsTheBytes) {
  TempDir folder;
  const std::string path = folder.Write("f", std::string(50000, 'x'));
  const auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (const auto& [begin, size] : std::vector<std::pair<size_t, size_t>>{
           {0, 50000}, {1, 49999}, {4095, 2}, {4096, 4096}, {50000, 0}}) {
    file->DontNeed(file->bytes().subspan(begin, size));
  }
  for (uint8_t byte : file->bytes()) ASSERT_EQ(byte, 'x');
}

TEST(ByteReader, AcrossWindows) {
  std::vector<uint8_t> bytes(200000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 7 + i / 256);
  const MappedFile file = MappedFile::FromBytes("f", bytes);
  ByteReader reader(&file);
  uint8_t first;
  ASSERT_TRUE(reader.ReadBytes(absl::MakeSpan(&first, 1)).ok());
  for (size_t at = 1; at + 8 <= bytes.size(); at += 8) {
    const auto value = reader.Read<uint64_t>();
    ASSERT_TRUE(value.ok());
    uint64_t expected = 0;
    for (int i = 7; i >= 0; --i) expected = expected << 8 | bytes[at + i];
    ASSERT_EQ(*value, expected) << at;
  }
  EXPECT_EQ(reader.remaining(), 7u);
  EXPECT_EQ(reader.Read<uint64_t>().status().code(), Code::kDataLoss);
  EXPECT_EQ(reader.remaining(), 7u);
}

TEST(ByteReader, Values) {
  const std::string text = Little<int8_t>(-2) + Little<int16_t>(-300) +
                           Little<int32_t>(-70000) + Little<float>(0.1f) +
                           Little<double>(-0.1) + Text("abc");
  const MappedFile file = MappedFile::FromBytes("f", Bytes(text));
  ByteReader reader(&file);
  EXPECT_EQ(*reader.Read<int8_t>(), -2);
  EXPECT_EQ(*reader.Read<int16_t>(), -300);
  EXPECT_EQ(*reader.Read<int32_t>(), -70000);
  EXPECT_EQ(*reader.Read<float>(), 0.1f);
  EXPECT_EQ(*reader.Read<double>(), -0.1);
  EXPECT_EQ(*reader.ReadString(3), "abc");
  EXPECT_EQ(reader.position(), text.size());
}

TEST(TextFile, ListFolder) {
  TempDir folder;
  folder.Write("b", "");
  folder.Write("a", "text");
  EXPECT_EQ(*ListFolder(folder.path()), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(*ReadTextFile(folder.path() + "/a"), "text");
  EXPECT_EQ(ListFolder(folder.path() + "/no").status().code(), Code::kNotFound);
}

TEST(TextFile, SizeIsLimited) {
  TempDir folder;
  const std::string path = folder.Write("huge.json", "");
  ASSERT_EQ(truncate(path.c_str(), int64_t{1} << 33), 0);
  ExpectRefused([&] { return ReadTextFile(path).status(); },
                {Code::kResourceExhausted,
                 {path, "at most 134217728 bytes", "8589934592"}});
}

}  // namespace
}  // namespace lanewise
