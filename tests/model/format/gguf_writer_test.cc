#include "model/format/gguf_writer.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;
using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

size_t FilesIn(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

// All of a checkpoint to `path`; bytes in pieces of `piece`.
absl::Status Copy(const Checkpoint& from, const std::string& path,
                  size_t piece) {
  std::vector<GgufTensor> tensors;
  for (const Tensor& tensor : from.tensors()) {
    tensors.push_back({tensor.name, tensor.type, tensor.shape});
  }
  auto writer = GgufWriter::Create(path, from.metadata(), std::move(tensors));
  if (!writer.ok()) return writer.status();
  for (const Tensor& tensor : from.tensors()) {
    for (size_t i = 0; i < tensor.data.size(); i += piece) {
      const absl::Status status =
          (*writer)->Append(tensor.data.subspan(i, piece));
      if (!status.ok()) return status;
    }
  }
  return (*writer)->Finish();
}

std::unique_ptr<Checkpoint> MustOpen(const std::string& path) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : nullptr;
}

// Files of the reference writer come back byte by byte.
TEST(GgufWriter, CopiesOfReferenceFilesHaveTheSameBytes) {
  const TempDir dir;
  const std::string out = dir.path() + "/copy.gguf";
  for (const char* name :
       {"llama_f32", "llama_q4_k_m", "llama_q8_0", "arch_gpt2"}) {
    const std::string path =
        std::string("tests/data/gguf/") + name + "/model.gguf";
    const auto checkpoint = MustOpen(path);
    ASSERT_NE(checkpoint, nullptr);
    const absl::Status copied = Copy(*checkpoint, out, 1000);
    ASSERT_TRUE(copied.ok()) << copied;
    EXPECT_TRUE(ReadFile(path) == ReadFile(out)) << name;
  }
  EXPECT_EQ(FilesIn(dir.path()), 1u);
}

TEST(GgufWriter, EveryMetadataTypeComesBack) {
  const TempDir dir;
  const std::string out = dir.path() + "/types.gguf";
  const auto from = MustOpen("tests/data/gguf/types/types.gguf");
  ASSERT_NE(from, nullptr);
  const absl::Status copied = Copy(*from, out, 77);
  ASSERT_TRUE(copied.ok()) << copied;
  const auto back = MustOpen(out);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->metadata().keys(), from->metadata().keys());
  for (const std::string& key : from->metadata().keys()) {
    EXPECT_EQ(*back->metadata().Find(key), *from->metadata().Find(key)) << key;
    EXPECT_EQ(back->metadata().TypeOf(key), from->metadata().TypeOf(key))
        << key;
  }
  ASSERT_EQ(back->tensors().size(), from->tensors().size());
  for (size_t i = 0; i < from->tensors().size(); ++i) {
    EXPECT_EQ(back->tensors()[i].name, from->tensors()[i].name);
    EXPECT_EQ(back->tensors()[i].type, from->tensors()[i].type);
    EXPECT_EQ(back->tensors()[i].shape, from->tensors()[i].shape);
    EXPECT_TRUE(back->tensors()[i].data == from->tensors()[i].data);
  }
}

TEST(GgufWriter, BytesAsTheSpecificationSays) {
  const TempDir dir;
  const std::string out = dir.path() + "/small.gguf";
  Metadata metadata;
  metadata.Insert("general.architecture", std::string("llama"));
  metadata.Insert("llama.block_count", int64_t{1}, MetadataType::kUint32);
  metadata.Insert("tokens", std::vector<std::string>{"ab", ""});
  metadata.Insert("scores", std::vector<double>{0.5, -1.0},
                  MetadataType::kFloat32);
  auto writer = GgufWriter::Create(
      out, metadata,
      {{"a.weight", DType::kF32, {2, 4}}, {"b.weight", DType::kQ8_0, {1, 32}}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  GgufBuilder expected = SmallGguf();
  const std::vector<uint8_t> data = Bytes(expected.data);
  ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(data).subspan(0, 5)).ok());
  ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(data).subspan(5, 27)).ok());
  ASSERT_TRUE((*writer)->Append(absl::MakeConstSpan(data).subspan(32)).ok());
  EXPECT_FALSE(std::filesystem::exists(out));
  ASSERT_TRUE((*writer)->Finish().ok());
  expected.data.resize(96, '\0');
  EXPECT_EQ(ReadFile(out), expected.Build());
  EXPECT_EQ((*writer)->file_bytes(), expected.Build().size());
  struct stat info;
  ASSERT_EQ(stat(out.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0600, 0600u);
}

TEST(GgufWriter, AlignmentOfTheMetadataCounts) {
  const TempDir dir;
  const std::string out = dir.path() + "/aligned.gguf";
  Metadata metadata;
  metadata.Insert("general.alignment", int64_t{256}, MetadataType::kUint32);
  auto writer = GgufWriter::Create(out, metadata,
                                   {{"a", DType::kI8, {3}},
                                    {"empty", DType::kF32, {0, 4}},
                                    {"scalar", DType::kI8, {}}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append({1, 2, 3}).ok());
  ASSERT_TRUE((*writer)->Append({9}).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto back = MustOpen(out);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(std::filesystem::file_size(out), 256u * 3);
  EXPECT_EQ(back->FindTensor("a")->data[2], 3);
  EXPECT_EQ(back->FindTensor("scalar")->data[0], 9);
  EXPECT_EQ(back->FindTensor("empty")->elements(), 0u);
}

TEST(GgufWriter, WithoutFinishNothingIsLeft) {
  const TempDir dir;
  const std::string out = dir.Write("model.gguf", "what was here before");
  {
    auto writer = GgufWriter::Create(out, Metadata(), {{"a", DType::kI8, {3}}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_EQ(FilesIn(dir.path()), 2u);
    EXPECT_EQ((*writer)->Append({1, 2, 3, 4}).code(), Code::kOutOfRange);
    ASSERT_TRUE((*writer)->Append({1, 2}).ok());
    const absl::Status early = (*writer)->Finish();
    EXPECT_EQ(early.code(), Code::kFailedPrecondition);
    EXPECT_THAT(std::string(early.message()), HasSubstr("a: expected 3 bytes"));
  }
  EXPECT_EQ(FilesIn(dir.path()), 1u);
  EXPECT_EQ(ReadFile(out), "what was here before");
}

TEST(GgufWriter, FinishReplacesWhatWasThere) {
  const TempDir dir;
  const std::string out = dir.Write("model.gguf", "what was here before");
  auto writer = GgufWriter::Create(out, Metadata(), {});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_NE(MustOpen(out), nullptr);
  EXPECT_EQ(FilesIn(dir.path()), 1u);
}

// A limit on the size of files stands for a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    before_handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, before_handler_);
  }

 private:
  rlimit before_;
  void (*before_handler_)(int);
};

TEST(GgufWriter, FullDiskAtTheStart) {
  const TempDir dir;
  const FullDisk full(1000);
  const auto writer = GgufWriter::Create(dir.path() + "/m.gguf", Metadata(),
                                         {{"a", DType::kI8, {2000}}});
  ASSERT_FALSE(writer.ok());
  EXPECT_THAT(std::string(writer.status().message()),
              HasSubstr("/m.gguf: cannot write"));
  EXPECT_EQ(FilesIn(dir.path()), 0u);
}

TEST(GgufWriter, FullDiskInTheMiddle) {
  const TempDir dir;
  {
    auto writer = GgufWriter::Create(dir.path() + "/m.gguf", Metadata(),
                                     {{"a", DType::kI8, {20000}}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    const FullDisk full(10000);
    const std::vector<uint8_t> bytes(20000);
    const absl::Status status = (*writer)->Append(bytes);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("/m.gguf: cannot write 20064 bytes"));
  }
  EXPECT_EQ(FilesIn(dir.path()), 0u);
}

TEST(GgufWriter, PathsThatCannotBeWritten) {
  const TempDir dir;
  const std::string file = dir.Write("file", "");
  const struct {
    std::string path, message;
  } kCases[] = {
      {dir.path() + "/none/m.gguf", "cannot create the file"},
      {file + "/m.gguf", "cannot create the file"},
      {dir.path(), "found a directory"},
      {"/dev/full", "found a device or pipe"},
      {"", "expected the path of a file"},
      {std::string("a\0b", 3), "expected the path of a file"},
  };
  for (const auto& row : kCases) {
    const auto writer = GgufWriter::Create(row.path, Metadata(), {});
    ASSERT_FALSE(writer.ok()) << row.path;
    EXPECT_THAT(std::string(writer.status().message()), HasSubstr(row.message));
  }
  EXPECT_EQ(FilesIn(dir.path()), 1u);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

// Refused before a file is made.
TEST(GgufWriter, TensorsThatTheFormatForbids) {
  const TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  const struct {
    std::vector<GgufTensor> tensors;
    const char* message;
  } kCases[] = {
      {{{"a", DType::kI8, {1}}, {"a", DType::kI8, {1}}}, "tensor a: expected"},
      {{{"", DType::kI8, {1}}}, "expected a name"},
      {{{std::string(5000, 'n'), DType::kI8, {1}}}, "expected a name"},
      {{{"a", DType::kI8, {1, 1, 1, 1, 1}}}, "expected at most 4 dimensions"},
      {{{"a", DType::kQ4_K, {4, 32}}}, "rows of a multiple of 256"},
      {{{"a", DType::kF8E4M3, {32}}}, "F8_E4M3 does not exist"},
      {{{"a", DType::kI8, {uint64_t{1} << 40, uint64_t{1} << 40}}}, "tensor a"},
  };
  for (const auto& row : kCases) {
    const auto writer = GgufWriter::Create(path, Metadata(), row.tensors);
    ASSERT_FALSE(writer.ok()) << row.message;
    EXPECT_THAT(std::string(writer.status().message()), HasSubstr(row.message));
    EXPECT_THAT(std::string(writer.status().message()), HasSubstr(path));
  }
  EXPECT_EQ(FilesIn(dir.path()), 0u);
}

TEST(GgufWriter, MetadataThatItsTypeCannotHold) {
  const TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  const auto create = [&](const char* key, MetadataValue value,
                          MetadataType type) {
    Metadata metadata;
    metadata.Insert(key, std::move(value), type);
    return GgufWriter::Create(path, metadata, {}).status();
  };
  EXPECT_TRUE(create("k", int64_t{-128}, MetadataType::kInt8).ok());
  EXPECT_TRUE(create("k", int64_t{255}, MetadataType::kUint8).ok());
  EXPECT_TRUE(create("k", UINT64_MAX, MetadataType::kUint64).ok());
  for (const absl::Status& status :
       {create("k", int64_t{-129}, MetadataType::kInt8),
        create("k", int64_t{256}, MetadataType::kUint8),
        create("k", int64_t{-1}, MetadataType::kUint32),
        create("k", UINT64_MAX, MetadataType::kInt64),
        create("k", std::string("x"), MetadataType::kInt64),
        create("k", 1.5, MetadataType::kInt64),
        create("k", true, MetadataType::kString),
        create("k", std::vector<int64_t>{1, 70000}, MetadataType::kInt16)}) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("k: expected"));
  }
  for (const int64_t alignment : {0, 3, 1 << 21}) {
    EXPECT_FALSE(
        create("general.alignment", alignment, MetadataType::kUint32).ok());
  }
  EXPECT_FALSE(
      create("general.alignment", int64_t{32}, MetadataType::kInt32).ok());
}

}  // namespace
}  // namespace lanewise
