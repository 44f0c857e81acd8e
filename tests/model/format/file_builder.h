// Model files made byte by byte, good or broken, and what tests ask of a
// refusal.
#ifndef LANEWISE_TESTS_MODEL_FORMAT_FILE_BUILDER_H_
#define LANEWISE_TESTS_MODEL_FORMAT_FILE_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lanewise {

// The bytes of a number, little-endian (as every machine that tests run on).
template <class T>
std::string Little(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// A GGUF string: 64-bit length, then the bytes.
inline std::string Text(absl::string_view text) {
  return Little<uint64_t>(text.size()) + std::string(text);
}

std::vector<uint8_t> Bytes(absl::string_view text);

// Ids of GGUF value types.
enum GgufValue : uint32_t {
  kGgufU8,
  kGgufI8,
  kGgufU16,
  kGgufI16,
  kGgufU32,
  kGgufI32,
  kGgufF32,
  kGgufBool,
  kGgufString,
  kGgufArray,
  kGgufU64,
  kGgufI64,
  kGgufF64,
};

// Ids of some GGUF storage types.
constexpr uint32_t kGgmlF32 = 0, kGgmlQ8_0 = 8, kGgmlQ4_K = 12, kGgmlIQ1_S = 19,
                   kGgmlI8 = 24;

struct GgufTensorInfo {
  std::string name = "w";
  std::vector<uint64_t> dims = {4};  // fastest first, as in the file
  uint32_t type = kGgmlF32;
  uint64_t offset = 0;
  std::optional<uint32_t> dim_count = {};
};

// By default a good file without tensors. Every field can be made wrong.
struct GgufBuilder {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count, pair_count;
  std::vector<std::string> pairs;
  std::vector<GgufTensorInfo> tensors;
  uint64_t alignment = 32;  // of the data; the key is not written
  std::string data;

  GgufBuilder& Pair(absl::string_view key, uint32_t type,
                    const std::string& value);
  GgufBuilder& Uint(absl::string_view key, uint32_t value) {
    return Pair(key, kGgufU32, Little(value));
  }
  GgufBuilder& Tensor(GgufTensorInfo info);
  GgufBuilder& Data(size_t bytes);  // 0, 1, 2, …

  std::string Header() const;  // up to the padding
  std::string Build() const;
};

// A small good file: general.architecture, an array of each kind, two tensors.
GgufBuilder SmallGguf();

// A safetensors file of this header and data; `length` replaces the true length
// of the header.
std::string Safetensors(absl::string_view header, absl::string_view data,
                        std::optional<uint64_t> length = {});

// A folder that goes away with its content.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, absl::string_view bytes) const;

 private:
  std::string path_;
};

// Runs `open` (which opens, drops what it got and returns the status) and
// requires a failure whose message holds every part, is one line, and leaves
// nothing behind: the same live heap bytes, no descriptor and no mapping more
// than before. Memory in between stays below `max_peak` bytes.
struct Refusal {
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::vector<std::string> parts;
  size_t max_peak = size_t{4} << 20;
};
void ExpectRefused(const std::function<absl::Status()>& open,
                   const Refusal& refusal);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_MODEL_FORMAT_FILE_BUILDER_H_
