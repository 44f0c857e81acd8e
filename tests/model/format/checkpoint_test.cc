#include "model/format/checkpoint.h"

#include <sys/stat.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

using Code = absl::StatusCode;

const char kWeights[] =
    R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";

std::string OneByteFile() { return Safetensors(kWeights, "xy"); }

void ExpectBad(const std::string& path, Code code,
               std::vector<std::string> parts) {
  ExpectRefused([&] { return Checkpoint::Open(path).status(); },
                {code, std::move(parts)});
}

TEST(Checkpoint, GgufByContent) {
  TempDir folder;
  for (const char* name : {"model.gguf", "model.bin", "weights"}) {
    const std::string path = folder.Write(name, SmallGguf().Build());
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ((*checkpoint)->kind(), CheckpointKind::kGguf);
    EXPECT_EQ((*checkpoint)->path(), path);
    EXPECT_NE((*checkpoint)->FindTensor("a.weight"), nullptr);
    EXPECT_EQ((*checkpoint)->FindTensor("nope"), nullptr);
    EXPECT_EQ((*checkpoint)->ReadJson("config.json").status().code(),
              Code::kNotFound);
  }
}

TEST(Checkpoint, FromBytes) {
  const auto checkpoint =
      Checkpoint::FromBytes("memory", Bytes(SmallGguf().Build()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->path(), "memory");
  const Tensor* tensor = (*checkpoint)->FindTensor("a.weight");
  ASSERT_NE(tensor, nullptr);
  uint8_t byte = 0;
  ASSERT_TRUE((*checkpoint)->Read(*tensor, 5, absl::MakeSpan(&byte, 1)).ok());
  EXPECT_EQ(byte, 5);
  (*checkpoint)->Release(*tensor);
  EXPECT_EQ(tensor->data[5], 5);
  const auto bad = Checkpoint::FromBytes("memory", Bytes("GGUF"));
  EXPECT_EQ(bad.status().code(), Code::kDataLoss);
}

TEST(Checkpoint, FolderWithOneSafetensorsFile) {
  for (const char* name : {"model.safetensors", "odd name.safetensors"}) {
    TempDir folder;
    folder.Write("config.json", R"({"model_type":"x"})");
    folder.Write(name, OneByteFile());
    const auto checkpoint = Checkpoint::Open(folder.path() + "/");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ((*checkpoint)->kind(), CheckpointKind::kHuggingFace);
    EXPECT_EQ((*checkpoint)->FindTensor("w")->data[1], 'y');
    EXPECT_EQ((*(*checkpoint)->ReadJson("config.json"))["model_type"], "x");
  }
}

TEST(Checkpoint, ReadIsBounded) {
  TempDir folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", OneByteFile());
  const auto checkpoint = Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Tensor& tensor = *(*checkpoint)->FindTensor("w");
  uint8_t byte = 0;
  EXPECT_TRUE((*checkpoint)->Read(tensor, 1, absl::MakeSpan(&byte, 1)).ok());
  EXPECT_EQ(byte, 'y');
  for (uint64_t offset : {uint64_t{2}, ~uint64_t{0}}) {
    const absl::Status status =
        (*checkpoint)->Read(tensor, offset, absl::MakeSpan(&byte, 1));
    EXPECT_EQ(status.code(), Code::kOutOfRange);
    EXPECT_NE(status.message().find("tensor w"), absl::string_view::npos);
  }
  Tensor stranger = tensor;
  stranger.data = absl::MakeConstSpan(&byte, 1);
  EXPECT_EQ((*checkpoint)->Read(stranger, 0, absl::MakeSpan(&byte, 1)).code(),
            Code::kInvalidArgument);
}

TEST(Checkpoint, FilesOfAFolder) {
  TempDir folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", OneByteFile());
  folder.Write("chat_template.jinja", "{{ x }}");
  folder.Write("broken.json", "{\"a\": tru}");
  ASSERT_EQ(mkdir((folder.path() + "/1_Pooling").c_str(), 0700), 0);
  folder.Write("1_Pooling/config.json", R"({"n":1})");
  const auto checkpoint = Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(*(*checkpoint)->ReadText("chat_template.jinja"), "{{ x }}");
  EXPECT_EQ((*(*checkpoint)->ReadJson("1_Pooling/config.json"))["n"], 1);
  EXPECT_EQ((*checkpoint)->ReadJson("tokenizer.json").status().code(),
            Code::kNotFound);
  const auto broken = (*checkpoint)->ReadJson("broken.json").status();
  EXPECT_NE(broken.message().find("broken.json: byte 10"),
            absl::string_view::npos)
      << broken;
  EXPECT_EQ((*checkpoint)->ReadText("1_Pooling").status().code(),
            Code::kInvalidArgument);
  for (const char* name : {"../x", "/etc/passwd", "a/../b", "", "a//b", "./a",
                           "..", "1_Pooling/../../x"}) {
    const auto status = (*checkpoint)->ReadText(name).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << name;
    EXPECT_NE(status.message().find("a file in this folder"),
              absl::string_view::npos);
  }
}

TEST(Checkpoint, SafetensorsWinOverGgufBesideThem) {
  TempDir folder;
  folder.Write("model.safetensors", OneByteFile());
  folder.Write("model.gguf", SmallGguf().Build());
  EXPECT_EQ((*Checkpoint::Open(folder.path()))->kind(), CheckpointKind::kGguf);
  folder.Write("config.json", "{}");
  EXPECT_EQ((*Checkpoint::Open(folder.path()))->kind(),
            CheckpointKind::kHuggingFace);
}

TEST(CheckpointBad, MissingPath) {
  ExpectBad("/no/such/model", Code::kNotFound,
            {"/no/such/model", "No such file"});
  ExpectBad("", Code::kNotFound, {"No such file"});
  ExpectBad(std::string("a\0b", 3), Code::kInvalidArgument, {"zero byte"});
}

TEST(CheckpointBad, FolderWithoutModel) {
  TempDir folder;
  ExpectBad(folder.path(), Code::kNotFound,
            {folder.path(), "no model", "config.json", "model.safetensors",
             "model.safetensors.index.json", ".gguf"});
  folder.Write("config.json", "{}");
  ExpectBad(folder.path(), Code::kNotFound, {"no model"});
}

TEST(CheckpointBad, FolderWithoutConfig) {
  TempDir folder;
  folder.Write("model.safetensors", OneByteFile());
  ExpectBad(folder.path(), Code::kNotFound,
            {"expected config.json", "model.safetensors"});
}

TEST(CheckpointBad, SeveralModels) {
  TempDir folder;
  folder.Write("a.gguf", SmallGguf().Build());
  folder.Write("b.gguf", SmallGguf().Build());
  ExpectBad(folder.path(), Code::kInvalidArgument,
            {"found several", "a.gguf, b.gguf"});
  TempDir shards;
  shards.Write("config.json", "{}");
  shards.Write("m1.safetensors", OneByteFile());
  shards.Write("m2.safetensors", OneByteFile());
  ExpectBad(shards.path(), Code::kNotFound,
            {"no index", "m1.safetensors, m2.safetensors"});
}

TEST(CheckpointBad, PickledWeights) {
  TempDir folder;
  folder.Write("config.json", "{}");
  const std::string path = folder.Write("pytorch_model.bin", "PK\x03\x04....");
  ExpectBad(folder.path(), Code::kUnimplemented,
            {"pytorch_model.bin", "convert to safetensors"});
  ExpectBad(path, Code::kUnimplemented,
            {"pytorch_model.bin", "convert to safetensors"});
}

TEST(CheckpointBad, OneFileOfAFolder) {
  TempDir folder;
  ExpectBad(folder.Write("model.safetensors", OneByteFile()),
            Code::kInvalidArgument, {"model.safetensors", "open its folder"});
  ExpectBad(folder.Write("config.json", "{}"), Code::kInvalidArgument,
            {"config.json", "open its folder"});
}

TEST(CheckpointBad, OtherContent) {
  TempDir folder;
  ExpectBad(folder.Write("notes.txt", "hello"), Code::kInvalidArgument,
            {"notes.txt", "expected \"GGUF\", found \"hell\""});
  ExpectBad(folder.Write("empty.gguf", ""), Code::kDataLoss,
            {"empty.gguf", "truncated"});
}

TEST(CheckpointBad, NotARegularFile) {
  TempDir folder;
  const std::string fifo = folder.path() + "/fifo.gguf";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ExpectBad(fifo, Code::kInvalidArgument,
            {"fifo.gguf", "expected a regular file, found a FIFO"});
  ExpectBad("/dev/null", Code::kInvalidArgument, {"/dev/null", "a device"});
}

TEST(CheckpointBad, BadFileInAFolderIsNamed) {
  TempDir folder;
  folder.Write("config.json", "{}");
  folder.Write("model.safetensors", Safetensors(kWeights, "x"));
  ExpectBad(folder.path(), Code::kDataLoss,
            {"/model.safetensors", "tensor w", "data_offsets [0, 2]"});
}

}  // namespace
}  // namespace lanewise
