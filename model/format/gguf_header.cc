#include "model/format/gguf_header.h"

#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/format/gguf_types.h"
#include "model/format/limits.h"
#include "model/format/printable.h"
#include "model/format/tensor_store.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr char kAlignmentKey[] = "general.alignment";

// Integers, little-endian.
template <class T>
void Put(T value, std::string* out) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (size_t i = 0; i < sizeof(T); ++i) {
    out->push_back(static_cast<char>(bits >> (8 * i) & 0xFF));
  }
}

// The bits of a float or double.
template <class Bits, class T>
void PutFloat(T value, std::string* out) {
  Bits bits;
  static_assert(sizeof(bits) == sizeof(value));
  std::memcpy(&bits, &value, sizeof(bits));
  Put(bits, out);
}

void PutText(absl::string_view text, std::string* out) {
  Put<uint64_t>(text.size(), out);
  out->append(text.data(), text.size());
}

// Appends one value of the type given to the constructor; false when the value
// is of another kind or out of the type's range.
class ValueWriter {
 public:
  ValueWriter(MetadataType type, std::string* out) : type_(type), out_(out) {}

  bool operator()(bool value) const {
    if (type_ != MetadataType::kBool) return false;
    Put<uint8_t>(value ? 1 : 0, out_);
    return true;
  }
  bool operator()(const std::string& value) const {
    if (type_ != MetadataType::kString) return false;
    PutText(value, out_);
    return true;
  }
  bool operator()(double value) const {
    if (type_ == MetadataType::kFloat64) {
      PutFloat<uint64_t>(value, out_);
    } else if (type_ == MetadataType::kFloat32) {
      PutFloat<uint32_t>(static_cast<float>(value), out_);
    } else {
      return false;
    }
    return true;
  }
  bool operator()(int64_t value) const {
    if (value < 0) {
      switch (type_) {
        case MetadataType::kInt8:
          return PutInt<int8_t>(value);
        case MetadataType::kInt16:
          return PutInt<int16_t>(value);
        case MetadataType::kInt32:
          return PutInt<int32_t>(value);
        case MetadataType::kInt64:
          return PutInt<int64_t>(value);
        default:
          return false;
      }
    }
    return (*this)(static_cast<uint64_t>(value));
  }
  bool operator()(uint64_t value) const {
    switch (type_) {
      case MetadataType::kUint8:
        return PutInt<uint8_t>(value);
      case MetadataType::kInt8:
        return PutInt<int8_t>(value);
      case MetadataType::kUint16:
        return PutInt<uint16_t>(value);
      case MetadataType::kInt16:
        return PutInt<int16_t>(value);
      case MetadataType::kUint32:
        return PutInt<uint32_t>(value);
      case MetadataType::kInt32:
        return PutInt<int32_t>(value);
      case MetadataType::kUint64:
        return PutInt<uint64_t>(value);
      case MetadataType::kInt64:
        return PutInt<int64_t>(value);
      default:
        return false;
    }
  }
  template <class T>
  bool operator()(const std::vector<T>& values) const {
    Put<uint64_t>(values.size(), out_);
    for (const auto& value : values) {
      if (!(*this)(static_cast<const T&>(value))) return false;
    }
    return true;
  }

 private:
  // Value is uint64_t, or int64_t and negative.
  template <class T, class Value>
  bool PutInt(Value value) const {
    if constexpr (std::is_signed_v<Value>) {
      if (value < std::numeric_limits<T>::min()) return false;
    } else if (value > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
      return false;
    }
    Put(static_cast<T>(value), out_);
    return true;
  }

  const MetadataType type_;
  std::string* const out_;
};

bool IsArray(const MetadataValue& value) { return value.index() >= 5; }

absl::Status PutPair(const Metadata& metadata, const std::string& key,
                     std::string* out) {
  if (key.empty() || key.size() > kMaxGgufKeyBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("metadata key ", Printable(key), ": expected 1 to ",
                     kMaxGgufKeyBytes, " bytes, found ", key.size()));
  }
  const MetadataValue& value = *metadata.Find(key);
  const MetadataType type = metadata.TypeOf(key);
  PutText(key, out);
  if (IsArray(value)) {
    Put(static_cast<uint32_t>(MetadataType::kArray), out);
  }
  Put(static_cast<uint32_t>(type), out);
  if (std::visit(ValueWriter(type, out), value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Printable(key), ": expected a value of GGUF's type ",
      static_cast<uint32_t>(type), ", found one that it cannot hold"));
}

absl::Status CheckName(const std::string& name,
                       absl::flat_hash_set<absl::string_view>* names) {
  if (name.empty() || name.size() > kMaxTensorNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a name of 1 to ", kMaxTensorNameBytes,
                     " bytes, found ", name.size()));
  }
  if (!names->insert(name).second) {
    return absl::InvalidArgumentError("expected unique names, found it twice");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> TensorBytes(const GgufTensor& tensor) {
  if (tensor.shape.size() > kMaxGgufDims) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", kMaxGgufDims, " dimensions, found ",
                     tensor.shape.size()));
  }
  const DTypeTraits& traits = Traits(tensor.type);
  if (FindGgufType(tensor.type) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("type ", traits.name, " does not exist in GGUF"));
  }
  const uint64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  if (row % traits.block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected rows of a multiple of ", traits.block_size,
        " elements (the block of ", traits.name, "), found rows of ", row));
  }
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t elements,
                            CheckedElements(tensor.shape));
  return elements / traits.block_size * traits.block_bytes;
}

}  // namespace

absl::StatusOr<uint64_t> GgufAlignment(const Metadata& metadata) {
  if (!metadata.Has(kAlignmentKey)) return 32;
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t alignment,
                            metadata.GetUint(kAlignmentKey, kMaxGgufAlignment));
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
      metadata.TypeOf(kAlignmentKey) != MetadataType::kUint32) {
    return absl::InvalidArgumentError(
        absl::StrCat(kAlignmentKey, ": expected a power of two as uint32"));
  }
  return alignment;
}

absl::StatusOr<std::vector<uint64_t>> GgufDataBytes(
    absl::Span<const GgufTensor> tensors) {
  if (tensors.size() > kMaxTensors) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "expected at most ", kMaxTensors, " tensors, found ", tensors.size()));
  }
  std::vector<uint64_t> bytes;
  absl::flat_hash_set<absl::string_view> names;
  uint64_t total = 0;
  for (const GgufTensor& tensor : tensors) {
    absl::Status status = CheckName(tensor.name, &names);
    if (status.ok()) {
      absl::StatusOr<uint64_t> size = TensorBytes(tensor);
      status = size.status();
      if (size.ok()) bytes.push_back(*size);
    }
    if (status.ok() && bytes.back() > (uint64_t{1} << 62) - total) {
      status = absl::ResourceExhaustedError("the file would be too large");
    }
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("tensor ", Printable(tensor.name), ": ",
                                       status.message()));
    }
    total += bytes.back();
  }
  return bytes;
}

absl::StatusOr<std::string> GgufHeader(const Metadata& metadata,
                                       absl::Span<const GgufTensor> tensors,
                                       absl::Span<const uint64_t> offsets,
                                       uint64_t alignment) {
  std::string header = "GGUF";
  Put<uint32_t>(3, &header);
  Put<uint64_t>(tensors.size(), &header);
  Put<uint64_t>(metadata.keys().size(), &header);
  for (const std::string& key : metadata.keys()) {
    LANEWISE_RETURN_IF_ERROR(PutPair(metadata, key, &header));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const GgufTensor& tensor = tensors[i];
    PutText(tensor.name, &header);
    Put(static_cast<uint32_t>(tensor.shape.size()), &header);
    for (auto dim = tensor.shape.rbegin(); dim != tensor.shape.rend(); ++dim) {
      Put<uint64_t>(*dim, &header);
    }
    Put(FindGgufType(tensor.type)->id, &header);
    Put<uint64_t>(offsets[i], &header);
  }
  header.resize(RoundedUp(header.size(), alignment), '\0');
  return header;
}

}  // namespace lanewise
