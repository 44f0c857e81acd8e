// Typed key-value metadata of a GGUF file.
#ifndef LANEWISE_MODEL_FORMAT_METADATA_H_
#define LANEWISE_MODEL_FORMAT_METADATA_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise {

// Integers of every width are kept as int64 or (uint64 beyond its range)
// uint64; floats as double. Arrays are homogeneous.
using MetadataValue =
    std::variant<bool, int64_t, uint64_t, double, std::string,
                 std::vector<bool>, std::vector<int64_t>, std::vector<uint64_t>,
                 std::vector<double>, std::vector<std::string>>;

// How a file stores a value (of an array: its elements), by the ids of GGUF.
enum class MetadataType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,  // never the type of a value here
  kUint64,
  kInt64,
  kFloat64,
};

class Metadata {
 public:
  explicit Metadata(std::string file = "") : file_(std::move(file)) {}

  // False when the key is there already.
  bool Insert(std::string key, MetadataValue value, MetadataType type);
  // The same with the widest type that the value can have.
  bool Insert(std::string key, MetadataValue value);

  bool Has(absl::string_view key) const;
  const MetadataValue* Find(absl::string_view key) const;  // null when absent
  // How the value is stored; the key must be there.
  MetadataType TypeOf(absl::string_view key) const;
  const std::vector<std::string>& keys() const {
    return keys_;
  }  // in the order of the file
  const std::string& file() const { return file_; }

  // The key that a file of any architecture has under its own name:
  // "llama.pooling_type" for "pooling_type". Empty, which is no key, where the
  // file does not say what it is.
  std::string ArchitectureKey(absl::string_view name) const;

  // Typed access. NOT_FOUND when absent, INVALID_ARGUMENT ("file: key: expected
  // …, found …") for another type or a value out of range. GetFloat takes
  // integers too. GetUint takes any integer type that is not negative.
  absl::StatusOr<bool> GetBool(absl::string_view key) const;
  absl::StatusOr<int64_t> GetInt(absl::string_view key) const;
  absl::StatusOr<uint64_t> GetUint(absl::string_view key, uint64_t max,
                                   uint64_t min = 0) const;
  absl::StatusOr<double> GetFloat(absl::string_view key) const;
  absl::StatusOr<absl::string_view> GetString(absl::string_view key) const;
  absl::StatusOr<const std::vector<std::string>*> GetStrings(
      absl::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> GetInts(absl::string_view key) const;
  absl::StatusOr<std::vector<double>> GetFloats(absl::string_view key) const;

  // The same with a default for an absent key (a wrong type stays an error).
  absl::StatusOr<bool> GetBoolOr(absl::string_view key, bool absent) const;
  absl::StatusOr<uint64_t> GetUintOr(absl::string_view key, uint64_t max,
                                     uint64_t absent) const;
  absl::StatusOr<double> GetFloatOr(absl::string_view key, double absent) const;

 private:
  std::string file_;
  std::vector<std::string> keys_;
  struct Stored {
    MetadataValue value;
    MetadataType type;
  };
  absl::flat_hash_map<std::string, Stored> values_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_METADATA_H_
