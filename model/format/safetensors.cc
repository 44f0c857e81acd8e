#include "model/format/safetensors.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/format/byte_reader.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using nlohmann::json;

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  uint64_t begin, end;  // within the data
};

std::optional<DType> DTypeOf(absl::string_view name) {
  static constexpr std::pair<absl::string_view, DType> kTypes[] = {
      {"F64", DType::kF64},   {"F32", DType::kF32},        {"F16", DType::kF16},
      {"BF16", DType::kBF16}, {"I64", DType::kI64},        {"U64", DType::kI64},
      {"I32", DType::kI32},   {"U32", DType::kI32},        {"I16", DType::kI16},
      {"U16", DType::kI16},   {"I8", DType::kI8},          {"U8", DType::kU8},
      {"BOOL", DType::kBool}, {"F8_E4M3", DType::kF8E4M3},
  };
  for (const auto& [text, type] : kTypes) {
    if (text == name) return type;
  }
  return std::nullopt;
}

absl::Status Invalid(absl::string_view file, absl::string_view tensor,
                     absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": tensor ", Printable(tensor), ": ", reason));
}

// The text of the header; `data_begin` gets where the data starts.
absl::StatusOr<std::string> ReadHeader(const MappedFile& file,
                                       const SafetensorsOptions& options,
                                       uint64_t* data_begin) {
  const std::string& path = file.path();
  ByteReader reader(&file);
  const auto length = reader.Read<uint64_t>();
  if (!length.ok()) {
    return absl::Status(
        length.status().code(),
        absl::StrCat(path, ": header length: ", length.status().message()));
  }
  if (*length > options.max_header_bytes) {
    const bool pointer = *length == 0x206e6f6973726576;  // "version "
    return absl::ResourceExhaustedError(absl::StrCat(
        path, ": header length: expected at most ", options.max_header_bytes,
        " bytes, found ", *length,
        pointer ? ": a Git LFS pointer? (fetch the file itself with git lfs "
                  "pull)"
                : ""));
  }
  if (*length > reader.remaining()) {
    return absl::DataLossError(
        absl::StrCat(path, ": header length: truncated: expected a header of ",
                     *length, " bytes, found ", reader.remaining()));
  }
  std::string text(static_cast<size_t>(*length), '\0');
  LANEWISE_RETURN_IF_ERROR(reader.ReadBytes(
      absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  if (text.empty() || text[0] != '{') {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": header: expected a JSON object, found \"",
                     Printable(text, 8), "\""));
  }
  *data_begin = reader.position();
  return text;
}

absl::StatusOr<Entry> ReadEntry(const std::string& path,
                                const std::string& name, const json& value) {
  const std::string where = absl::StrCat(path, ": tensor ", Printable(name));
  constexpr uint64_t kAny = ~uint64_t{0};
  Entry entry;
  entry.name = name;
  if (name.empty() || name.size() > kMaxTensorNameBytes) {
    return Invalid(path, name,
                   absl::StrCat("expected a name of 1 to ", kMaxTensorNameBytes,
                                " bytes, found ", name.size()));
  }
  LANEWISE_ASSIGN_OR_RETURN(entry.dtype, GetString(value, where, "dtype"));
  LANEWISE_ASSIGN_OR_RETURN(const json* shape, GetArray(value, where, "shape"));
  if (shape->size() > kMaxSafetensorsDims) {
    return Invalid(path, name,
                   absl::StrCat("shape: expected at most ", kMaxSafetensorsDims,
                                " dimensions, found ", shape->size()));
  }
  for (const json& dim : *shape) {
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t size,
                              ToUint(dim, where, "shape", kAny));
    entry.shape.push_back(size);
  }
  LANEWISE_ASSIGN_OR_RETURN(const json* offsets,
                            GetArray(value, where, "data_offsets"));
  if (offsets->size() != 2) {
    return Invalid(path, name,
                   absl::StrCat("data_offsets: expected 2 numbers, found ",
                                offsets->size()));
  }
  LANEWISE_ASSIGN_OR_RETURN(entry.begin,
                            ToUint((*offsets)[0], where, "data_offsets", kAny));
  LANEWISE_ASSIGN_OR_RETURN(entry.end,
                            ToUint((*offsets)[1], where, "data_offsets", kAny));
  return entry;
}

absl::Status CheckEntry(const std::string& path, const Entry& entry,
                        uint64_t data_size) {
  const std::string offsets =
      absl::StrCat("data_offsets [", entry.begin, ", ", entry.end, "]");
  if (entry.begin > entry.end) {
    return Invalid(path, entry.name,
                   absl::StrCat(offsets, ": expected begin <= end"));
  }
  if (entry.end > data_size) {
    return absl::DataLossError(
        absl::StrCat(path, ": tensor ", Printable(entry.name), ": ", offsets,
                     ": truncated: expected an end within the ", data_size,
                     " bytes of data"));
  }
  const auto elements = CheckedElements(entry.shape);
  if (!elements.ok()) {
    return Invalid(path, entry.name, elements.status().message());
  }
  const std::optional<DType> type = DTypeOf(entry.dtype);
  if (!type.has_value()) return absl::OkStatus();  // size is not known
  const uint64_t bytes = *elements * Traits(*type).block_bytes;
  if (bytes != entry.end - entry.begin) {
    return Invalid(path, entry.name,
                   absl::StrCat(offsets, ": expected ", bytes, " bytes for ",
                                entry.dtype, " ", ShapeText(entry.shape),
                                ", found ", entry.end - entry.begin));
  }
  return absl::OkStatus();
}

// Sorts by position and requires that every byte belongs to one tensor.
absl::Status CheckCoverage(const std::string& path, uint64_t data_size,
                           std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin < covered) {
      return Invalid(
          path, entry.name,
          absl::StrCat("data_offsets [", entry.begin, ", ", entry.end,
                       "]: overlap with tensor ", Printable(previous->name),
                       " [", previous->begin, ", ", previous->end, "]"));
    }
    if (entry.begin > covered) {
      return Invalid(
          path, entry.name,
          absl::StrCat("data_offsets [", entry.begin, ", ", entry.end,
                       "]: a hole of ", entry.begin - covered,
                       " bytes before it belongs to no tensor"));
    }
    covered = entry.end;
    previous = &entry;
  }
  if (covered != data_size) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": data: expected ", covered,
                     " bytes as the header says, found ", data_size));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, std::string>> ReadStrings(
    const std::string& path, const json& value) {
  std::map<std::string, std::string> strings;
  if (!value.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": __metadata__: expected an object, found ",
                     DescribeJson(value)));
  }
  for (const auto& [key, text] : value.get_ref<const json::object_t&>()) {
    LANEWISE_ASSIGN_OR_RETURN(strings[key],
                              GetString(value, path + ": __metadata__", key));
  }
  return strings;
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Read(
    MappedFile opened, const SafetensorsOptions& options) {
  SafetensorsFile result;
  const MappedFile& file = result.store_.AddFile(std::move(opened));
  const std::string& path = file.path();
  uint64_t data_begin = 0;
  LANEWISE_ASSIGN_OR_RETURN(const std::string text,
                            ReadHeader(file, options, &data_begin));
  JsonLimits limits;
  limits.max_bytes = options.max_header_bytes;
  limits.max_depth = 8;
  limits.unique_keys = true;
  LANEWISE_ASSIGN_OR_RETURN(const json header,
                            ParseJson(text, path + ": header", limits));
  const uint64_t data_size = file.size() - data_begin;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.get_ref<const json::object_t&>()) {
    if (name == "__metadata__") {
      LANEWISE_ASSIGN_OR_RETURN(result.metadata_, ReadStrings(path, value));
      continue;
    }
    LANEWISE_ASSIGN_OR_RETURN(Entry entry, ReadEntry(path, name, value));
    LANEWISE_RETURN_IF_ERROR(CheckEntry(path, entry, data_size));
    entries.push_back(std::move(entry));
  }
  LANEWISE_RETURN_IF_ERROR(CheckCoverage(path, data_size, entries));
  for (Entry& entry : entries) {
    const std::optional<DType> type = DTypeOf(entry.dtype);
    if (!type.has_value()) {
      LANEWISE_RETURN_IF_ERROR(result.store_.AddUnsupported(
          {std::move(entry.name), path, Printable(entry.dtype, 40)}));
      continue;
    }
    Tensor tensor;
    tensor.name = std::move(entry.name);
    tensor.file = path;
    tensor.type = *type;
    tensor.shape = std::move(entry.shape);
    tensor.data =
        file.bytes().subspan(data_begin + entry.begin, entry.end - entry.begin);
    LANEWISE_RETURN_IF_ERROR(result.store_.Add(std::move(tensor)));
  }
  return result;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(
    const std::string& path, const SafetensorsOptions& options) {
  LANEWISE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  return Read(std::move(file), options);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::FromBytes(
    std::string name, std::vector<uint8_t> bytes,
    const SafetensorsOptions& options) {
  return Read(MappedFile::FromBytes(std::move(name), std::move(bytes)),
              options);
}

}  // namespace lanewise
