// The key-value pairs of a GGUF header.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/format/byte_reader.h"
#include "model/format/gguf_part.h"
#include "model/format/limits.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// MetadataType, as numbers that may be out of its range.
enum ValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// Bytes of a value in a file; of a string, the least.
uint64_t MinBytes(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    default:
      return 8;
  }
}

class MetadataReader {
 public:
  MetadataReader(ByteReader& reader, Metadata& metadata, uint64_t& alignment)
      : reader_(reader), metadata_(metadata), alignment_(alignment) {}

  absl::Status ReadPair();

 private:
  absl::StatusOr<MetadataValue> ReadValue(uint32_t type);
  absl::StatusOr<MetadataValue> ReadArray();
  absl::StatusOr<int64_t> ReadInt(uint32_t type);
  absl::StatusOr<double> ReadFloat(uint32_t type);
  absl::StatusOr<bool> ReadBool();
  absl::Status SetAlignment(uint32_t type, const MetadataValue& value);
  absl::Status Charge(uint64_t bytes);

  template <class T, class ReadOne>
  absl::StatusOr<MetadataValue> ReadElements(uint64_t count, ReadOne read_one);

  ByteReader& reader_;
  Metadata& metadata_;
  uint64_t& alignment_;
  uint64_t charged_ = 0;
  uint32_t element_type_ = 0;  // of the last array
};

absl::Status MetadataReader::Charge(uint64_t bytes) {
  charged_ += bytes;  // every summand is bounded by the size of a file
  if (charged_ <= kMaxGgufMetadataBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("expected at most ", kMaxGgufMetadataBytes,
                   " bytes of metadata in memory, found ", charged_));
}

absl::StatusOr<int64_t> MetadataReader::ReadInt(uint32_t type) {
  switch (type) {
    case kUint8:
      return reader_.Read<uint8_t>();
    case kInt8:
      return reader_.Read<int8_t>();
    case kUint16:
      return reader_.Read<uint16_t>();
    case kInt16:
      return reader_.Read<int16_t>();
    case kUint32:
      return reader_.Read<uint32_t>();
    case kInt32:
      return reader_.Read<int32_t>();
    default:
      return reader_.Read<int64_t>();
  }
}

absl::StatusOr<double> MetadataReader::ReadFloat(uint32_t type) {
  if (type == kFloat32) return reader_.Read<float>();
  return reader_.Read<double>();
}

absl::StatusOr<bool> MetadataReader::ReadBool() {
  LANEWISE_ASSIGN_OR_RETURN(const uint8_t byte, reader_.Read<uint8_t>());
  if (byte > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a bool of 0 or 1, found ", byte));
  }
  return byte == 1;
}

template <class T, class ReadOne>
absl::StatusOr<MetadataValue> MetadataReader::ReadElements(uint64_t count,
                                                           ReadOne read_one) {
  std::vector<T> values;
  values.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    LANEWISE_ASSIGN_OR_RETURN(T value, read_one());
    values.push_back(std::move(value));
  }
  return MetadataValue(std::move(values));
}

absl::StatusOr<MetadataValue> MetadataReader::ReadArray() {
  LANEWISE_ASSIGN_OR_RETURN(const uint32_t type, reader_.Read<uint32_t>());
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t count, reader_.Read<uint64_t>());
  if (type == kArray) {
    return absl::UnimplementedError("an array of arrays is not supported");
  }
  if (type > kFloat64) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown type ", type, " of array elements"));
  }
  element_type_ = type;
  if (count > reader_.remaining() / MinBytes(type)) {
    return absl::DataLossError(absl::StrCat("truncated: expected an array of ",
                                            count, " elements, found ",
                                            reader_.remaining(), " bytes"));
  }
  if (count > kMaxGgufArrayLength) {
    return absl::ResourceExhaustedError(
        absl::StrCat("expected an array of at most ", kMaxGgufArrayLength,
                     " elements, found ", count));
  }
  LANEWISE_RETURN_IF_ERROR(Charge(
      count * (type == kString ? sizeof(std::string) : sizeof(int64_t))));
  switch (type) {
    case kString:
      return ReadElements<std::string>(
          count, [this]() -> absl::StatusOr<std::string> {
            LANEWISE_ASSIGN_OR_RETURN(
                std::string text, reader_.ReadString(kMaxGgufMetadataBytes));
            LANEWISE_RETURN_IF_ERROR(Charge(text.size()));
            return text;
          });
    case kBool:
      return ReadElements<bool>(count, [this] { return ReadBool(); });
    case kFloat32:
    case kFloat64:
      return ReadElements<double>(count,
                                  [this, type] { return ReadFloat(type); });
    case kUint64: {
      bool large = false;
      LANEWISE_ASSIGN_OR_RETURN(
          MetadataValue values,
          ReadElements<uint64_t>(count, [&]() -> absl::StatusOr<uint64_t> {
            auto value = reader_.Read<uint64_t>();
            large |= value.ok() && *value >> 63 != 0;
            return value;
          }));
      if (large) return values;
      const auto& wide = std::get<std::vector<uint64_t>>(values);
      return MetadataValue(std::vector<int64_t>(wide.begin(), wide.end()));
    }
    default:
      return ReadElements<int64_t>(count,
                                   [this, type] { return ReadInt(type); });
  }
}

absl::StatusOr<MetadataValue> MetadataReader::ReadValue(uint32_t type) {
  switch (type) {
    case kString: {
      LANEWISE_ASSIGN_OR_RETURN(std::string text,
                                reader_.ReadString(kMaxGgufMetadataBytes));
      LANEWISE_RETURN_IF_ERROR(Charge(text.size()));
      return MetadataValue(std::move(text));
    }
    case kArray:
      return ReadArray();
    case kBool: {
      LANEWISE_ASSIGN_OR_RETURN(const bool value, ReadBool());
      return MetadataValue(value);
    }
    case kFloat32:
    case kFloat64: {
      LANEWISE_ASSIGN_OR_RETURN(const double value, ReadFloat(type));
      return MetadataValue(value);
    }
    case kUint64: {
      LANEWISE_ASSIGN_OR_RETURN(const uint64_t value, reader_.Read<uint64_t>());
      if (value >> 63 != 0) return MetadataValue(value);
      return MetadataValue(static_cast<int64_t>(value));
    }
    default: {
      if (type > kFloat64) {
        return absl::InvalidArgumentError(
            absl::StrCat("unknown value type ", type));
      }
      LANEWISE_ASSIGN_OR_RETURN(const int64_t value, ReadInt(type));
      return MetadataValue(value);
    }
  }
}

absl::Status MetadataReader::SetAlignment(uint32_t type,
                                          const MetadataValue& value) {
  if (type != kUint32) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a value of type 4 (uint32), found type ", type));
  }
  const uint64_t alignment =
      static_cast<uint64_t>(std::get<int64_t>(value));  // a uint32 fits
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 ||
      alignment > kMaxGgufAlignment) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a power of two from 1 to ", kMaxGgufAlignment,
                     ", found ", alignment));
  }
  alignment_ = alignment;
  return absl::OkStatus();
}

absl::Status MetadataReader::ReadPair() {
  const auto in = [this](absl::string_view key, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(metadata_.file(), ": ", key,
                                                    ": ", status.message()));
  };
  auto key = reader_.ReadString(kMaxGgufKeyBytes);
  if (!key.ok()) return in("metadata key", key.status());
  if (key->empty()) {
    return in("metadata key",
              absl::InvalidArgumentError("expected a name, found \"\""));
  }
  const std::string shown = Printable(*key);
  const auto type = reader_.Read<uint32_t>();
  if (!type.ok()) return in(shown, type.status());
  auto value = ReadValue(*type);
  if (!value.ok()) return in(shown, value.status());
  if (*key == "general.alignment") {
    const absl::Status set = SetAlignment(*type, *value);
    if (!set.ok()) return in(shown, set);
  }
  const absl::Status charged = Charge(key->size() + 2 * sizeof(std::string));
  if (!charged.ok()) return in(shown, charged);
  const uint32_t stored = *type == kArray ? element_type_ : *type;
  if (!metadata_.Insert(*std::move(key), *std::move(value),
                        static_cast<MetadataType>(stored))) {
    return in(shown, absl::InvalidArgumentError(
                         "expected unique keys, found it twice"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGgufMetadata(ByteReader& reader, uint64_t count,
                              Metadata& metadata, uint64_t& alignment) {
  MetadataReader pairs(reader, metadata, alignment);
  for (uint64_t i = 0; i < count; ++i) {
    LANEWISE_RETURN_IF_ERROR(pairs.ReadPair());
  }
  return absl::OkStatus();
}

}  // namespace lanewise
