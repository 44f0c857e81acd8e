// One view of a model's files: metadata and named tensors, from a GGUF file
// (also split) or a Hugging Face folder (safetensors, single or sharded by an
// index, with its JSON files).
//
//   LANEWISE_ASSIGN_OR_RETURN(auto checkpoint, Checkpoint::Open("model.gguf"));
//   const Tensor* embedding = checkpoint->FindTensor("token_embd.weight");
//
// Files are not trusted: every size, count and offset is bounded by the bytes
// that remain before it is used. Errors name the file, the tensor or key, what
// was expected and what was found. Limits: limits.h.
#ifndef LANEWISE_MODEL_FORMAT_CHECKPOINT_H_
#define LANEWISE_MODEL_FORMAT_CHECKPOINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/format/metadata.h"
#include "model/format/tensor.h"
#include "nlohmann/json.hpp"

namespace lanewise {

enum class CheckpointKind : uint8_t { kGguf, kHuggingFace };

// A tensor that a program made.
struct NamedTensor {
  std::string name;
  std::vector<uint64_t> shape;  // slowest axis first
  std::vector<float> values;    // row by row
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  // `path`: a .gguf file (the first of a split set finds the others), a folder
  // with config.json and safetensors (model.safetensors, else the files that
  // model.safetensors.index.json names, else the only .safetensors file), or a
  // folder that holds exactly one model in GGUF form.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(
      const std::string& path);

  // A GGUF file in memory; `name` stands for its path.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> FromBytes(
      std::string name, std::vector<uint8_t> gguf);

  // Tensors in memory, as those of a folder without any other file; for
  // Model::FromSpec. `name` stands for the path. INVALID_ARGUMENT for a shape
  // that has not as many elements as there are values, or a name given twice.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> FromTensors(
      std::string name, absl::Span<const NamedTensor> tensors);

  virtual CheckpointKind kind() const = 0;
  virtual const std::string& path() const = 0;  // as given to Open

  // In the order of the file(s); names are unique.
  virtual absl::Span<const Tensor> tensors() const = 0;
  // Tensors of types that this library cannot use.
  virtual absl::Span<const UnsupportedTensor> unsupported() const = 0;
  virtual const Tensor* FindTensor(
      absl::string_view name) const = 0;  // null when absent
  // The same with the reason as a status: NOT_FOUND, or UNIMPLEMENTED for a
  // tensor of unsupported().
  virtual absl::StatusOr<const Tensor*> RequireTensor(
      absl::string_view name) const = 0;

  // Copies out.size() bytes of a tensor's data from `offset` on. Unlike reading
  // Tensor::data this survives a file that is cut short meanwhile (DATA_LOSS),
  // at nearly the same speed: load weights through it, in pieces of about 1
  // MiB. Threads may call it at once.
  virtual absl::Status Read(const Tensor& tensor, uint64_t offset,
                            absl::Span<uint8_t> out) const = 0;

  // GGUF only: the file's key-value pairs; empty for a folder.
  virtual const Metadata& metadata() const = 0;

  // Folder only: a JSON file beside the weights ("config.json",
  // "tokenizer.json", "1_Pooling/config.json", …), parsed. NOT_FOUND when there
  // is none. Absolute names and ".." are refused.
  virtual absl::StatusOr<nlohmann::json> ReadJson(
      absl::string_view name) const = 0;
  // Folder only: the bytes of such a file ("chat_template.jinja").
  virtual absl::StatusOr<std::string> ReadText(
      absl::string_view name) const = 0;

  // Tells the system that a tensor's bytes will not be read again, so that its
  // pages can go.
  virtual void Release(const Tensor& tensor) const = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_CHECKPOINT_H_
