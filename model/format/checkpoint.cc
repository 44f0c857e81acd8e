#include "model/format/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/format/gguf.h"
#include "model/format/json.h"
#include "model/format/mapped_file.h"
#include "model/format/printable.h"
#include "model/format/safetensors.h"
#include "model/format/tensor_store.h"
#include "model/format/text_file.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr absl::string_view kSingle = "model.safetensors";
constexpr absl::string_view kIndex = "model.safetensors.index.json";
constexpr absl::string_view kConfig = "config.json";

class StoredCheckpoint : public Checkpoint {
 public:
  StoredCheckpoint(std::string path, TensorStore store)
      : path_(std::move(path)), store_(std::move(store)) {}

  const std::string& path() const override { return path_; }
  absl::Span<const Tensor> tensors() const override { return store_.tensors(); }
  absl::Span<const UnsupportedTensor> unsupported() const override {
    return store_.unsupported();
  }
  const Tensor* FindTensor(absl::string_view name) const override {
    return store_.Find(name);
  }
  absl::StatusOr<const Tensor*> RequireTensor(
      absl::string_view name) const override {
    return store_.Require(name, path_);
  }
  absl::Status Read(const Tensor& tensor, uint64_t offset,
                    absl::Span<uint8_t> out) const override {
    return store_.Read(tensor, offset, out);
  }
  void Release(const Tensor& tensor) const override { store_.Release(tensor); }

 private:
  const std::string path_;
  const TensorStore store_;
};

// Tensors that have no files beside them.
class FilelessCheckpoint : public StoredCheckpoint {
 public:
  // `reason`: why there are none.
  FilelessCheckpoint(std::string path, TensorStore store,
                     absl::string_view reason)
      : StoredCheckpoint(std::move(path), std::move(store)), reason_(reason) {}

  absl::StatusOr<nlohmann::json> ReadJson(
      absl::string_view name) const override {
    return NoFiles(name);
  }
  absl::StatusOr<std::string> ReadText(absl::string_view name) const override {
    return NoFiles(name);
  }

 private:
  absl::Status NoFiles(absl::string_view name) const {
    return absl::NotFoundError(
        absl::StrCat(path(), ": ", Printable(name), ": ", reason_));
  }

  const absl::string_view reason_;
};

class GgufCheckpoint : public FilelessCheckpoint {
 public:
  GgufCheckpoint(std::string path, Gguf gguf)
      : FilelessCheckpoint(std::move(path), std::move(gguf).TakeStore(),
                           "a GGUF file has no files beside it"),
        metadata_(std::move(gguf).TakeMetadata()) {}

  CheckpointKind kind() const override { return CheckpointKind::kGguf; }
  const Metadata& metadata() const override { return metadata_; }

 private:
  const Metadata metadata_;
};

class FolderCheckpoint : public StoredCheckpoint {
 public:
  FolderCheckpoint(std::string path, TensorStore store)
      : StoredCheckpoint(path, std::move(store)), metadata_(std::move(path)) {}

  CheckpointKind kind() const override { return CheckpointKind::kHuggingFace; }
  const Metadata& metadata() const override { return metadata_; }

  absl::StatusOr<nlohmann::json> ReadJson(
      absl::string_view name) const override {
    LANEWISE_ASSIGN_OR_RETURN(const std::string text, ReadText(name));
    return ParseJson(text, FilePath(name));
  }

  absl::StatusOr<std::string> ReadText(absl::string_view name) const override {
    for (absl::string_view part : absl::StrSplit(name, '/')) {
      if (part.empty() || part == "." || part == "..") {
        return absl::InvalidArgumentError(absl::StrCat(
            path(), ": expected the name of a file in this folder, found \"",
            Printable(name), "\""));
      }
    }
    return ReadTextFile(FilePath(name));
  }

 private:
  std::string FilePath(absl::string_view name) const {
    return absl::StrCat(path(), absl::EndsWith(path(), "/") ? "" : "/", name);
  }

  const Metadata metadata_;
};

std::vector<uint8_t> LittleEndian(absl::Span<const float> values) {
  std::vector<uint8_t> bytes;
  bytes.reserve(values.size() * sizeof(float));
  for (const float value : values) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<uint8_t>(bits >> shift));
    }
  }
  return bytes;
}

class MemoryCheckpoint : public FilelessCheckpoint {
 public:
  MemoryCheckpoint(std::string path, TensorStore store)
      : FilelessCheckpoint(path, std::move(store), "there are only tensors"),
        metadata_(std::move(path)) {}

  CheckpointKind kind() const override { return CheckpointKind::kHuggingFace; }
  const Metadata& metadata() const override { return metadata_; }

 private:
  const Metadata metadata_;
};

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenGguf(const std::string& path,
                                                     const std::string& file) {
  LANEWISE_ASSIGN_OR_RETURN(Gguf gguf, Gguf::Open(file));
  return std::make_unique<GgufCheckpoint>(path, std::move(gguf));
}

// Files of weights in formats that run code when read, or that need the
// framework they come from.
bool IsForeign(absl::string_view name) {
  for (absl::string_view end : {".bin", ".bin.index.json", ".pt", ".pth",
                                ".ckpt", ".h5", ".msgpack", ".onnx"}) {
    if (absl::EndsWith(name, end)) return true;
  }
  return false;
}

// The names in a folder, by what they are good for.
struct Folder {
  std::string path;  // ends in '/'
  bool config = false, single = false, index = false;
  std::vector<std::string> safetensors, gguf, foreign;

  std::string WithNames(absl::string_view reason,
                        const std::vector<std::string>& names) const {
    const size_t shown = std::min<size_t>(names.size(), 5);
    return absl::StrCat(
        path, ": ", reason, ": ",
        absl::StrJoin(names.begin(), names.begin() + shown, ", "),
        shown < names.size()
            ? absl::StrCat(" and ", names.size() - shown, " more")
            : "");
  }
};

// Whether `name` is a file of a split model other than its first.
bool IsLaterSplit(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, ".gguf")) return false;
  constexpr size_t kTail = sizeof("-00002-of-00003") - 1;
  if (name.size() < kTail) return false;
  const absl::string_view tail = name.substr(name.size() - kTail);
  return tail[0] == '-' && tail.substr(6, 4) == "-of-" &&
         tail.substr(1, 5) != "00001";
}

absl::StatusOr<Folder> ReadFolder(const std::string& path) {
  Folder folder;
  folder.path = absl::EndsWith(path, "/") ? path : path + "/";
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            ListFolder(path));
  for (const std::string& name : names) {
    folder.config |= name == kConfig;
    folder.single |= name == kSingle;
    folder.index |= name == kIndex;
    if (absl::EndsWith(name, ".safetensors")) {
      folder.safetensors.push_back(name);
    } else if (absl::EndsWith(name, ".gguf")) {
      if (!IsLaterSplit(name)) folder.gguf.push_back(name);
    } else if (IsForeign(name)) {
      folder.foreign.push_back(name);
    }
  }
  return folder;
}

absl::StatusOr<TensorStore> OpenSafetensors(const Folder& folder) {
  if (!folder.single && folder.index) {
    return OpenSafetensorsIndex(absl::StrCat(folder.path, kIndex));
  }
  if (!folder.single && folder.safetensors.size() > 1) {
    return absl::NotFoundError(
        folder.WithNames(absl::StrCat("expected ", kSingle, " or ", kIndex,
                                      ", found several files and no index"),
                         folder.safetensors));
  }
  const std::string name =
      folder.single ? std::string(kSingle) : folder.safetensors[0];
  LANEWISE_ASSIGN_OR_RETURN(SafetensorsFile file,
                            SafetensorsFile::Open(folder.path + name));
  return std::move(file).TakeStore();
}

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenFolder(
    const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const Folder folder, ReadFolder(path));
  const bool safetensors = folder.index || !folder.safetensors.empty();
  if (safetensors && (folder.config || folder.gguf.empty())) {
    if (!folder.config) {
      return absl::NotFoundError(folder.WithNames(
          absl::StrCat("expected ", kConfig, " beside the weights, found only"),
          folder.index ? std::vector<std::string>{std::string(kIndex)}
                       : folder.safetensors));
    }
    LANEWISE_ASSIGN_OR_RETURN(TensorStore store, OpenSafetensors(folder));
    return std::make_unique<FolderCheckpoint>(path, std::move(store));
  }
  if (folder.gguf.size() > 1) {
    return absl::InvalidArgumentError(folder.WithNames(
        "expected one model, found several (open one of them)", folder.gguf));
  }
  if (folder.gguf.size() == 1) {
    return OpenGguf(path, folder.path + folder.gguf[0]);
  }
  if (!folder.foreign.empty()) {
    return absl::UnimplementedError(
        folder.WithNames("expected safetensors or GGUF; convert to safetensors",
                         folder.foreign));
  }
  return absl::NotFoundError(absl::StrCat(path, ": no model: looked for ",
                                          kConfig, " with ", kSingle, " or ",
                                          kIndex, ", and for one .gguf file"));
}

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenFile(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  uint8_t magic[4] = {};
  if (file.size() >= sizeof(magic)) {
    LANEWISE_RETURN_IF_ERROR(file.ReadAt(0, absl::MakeSpan(magic)));
  }
  if (std::memcmp(magic, "GGUF", 4) == 0 || absl::EndsWith(path, ".gguf")) {
    return OpenGguf(path, path);
  }
  if (absl::EndsWith(path, ".safetensors") || absl::EndsWith(path, ".json")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": one file of a model; open its folder, which also holds ",
        kConfig));
  }
  if (IsForeign(path)) {
    return absl::UnimplementedError(absl::StrCat(
        path, ": expected safetensors or GGUF; convert to safetensors"));
  }
  return OpenGguf(path, path);  // says what is wrong with the content
}

}  // namespace

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(
    const std::string& path) {
  struct stat info;
  if (path.find('\0') == std::string::npos && stat(path.c_str(), &info) == 0 &&
      S_ISDIR(info.st_mode)) {
    return OpenFolder(path);
  }
  return OpenFile(path);
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::FromBytes(
    std::string name, std::vector<uint8_t> gguf) {
  LANEWISE_ASSIGN_OR_RETURN(Gguf read, Gguf::FromBytes(name, std::move(gguf)));
  return std::make_unique<GgufCheckpoint>(std::move(name), std::move(read));
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::FromTensors(
    std::string name, absl::Span<const NamedTensor> tensors) {
  TensorStore store;
  for (const NamedTensor& tensor : tensors) {
    const absl::StatusOr<uint64_t> elements = CheckedElements(tensor.shape);
    if (!elements.ok() || *elements != tensor.values.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          name, ": tensor ", Printable(tensor.name),
          ": expected the values of ", "shape ", ShapeText(tensor.shape),
          ", found ", tensor.values.size()));
    }
    const MappedFile& file =
        store.AddFile(MappedFile::FromBytes(name, LittleEndian(tensor.values)));
    LANEWISE_RETURN_IF_ERROR(store.Add(
        {tensor.name, name, DType::kF32, tensor.shape, file.bytes()}));
  }
  return std::make_unique<MemoryCheckpoint>(std::move(name), std::move(store));
}

}  // namespace lanewise
