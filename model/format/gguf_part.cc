#include "model/format/gguf_part.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/format/byte_reader.h"
#include "model/format/gguf_types.h"
#include "model/format/limits.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
// The shortest key-value pair and tensor description the format allows.
constexpr uint64_t kMinPairBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

struct TensorInfo {
  std::string name;
  const GgufType* type;
  std::vector<uint64_t> shape;  // slowest first
  uint64_t offset;              // from the start of the data
  uint64_t bytes;
};

class PartReader {
 public:
  explicit PartReader(MappedFile file)
      : metadata_(file.path()),
        file_(store_.AddFile(std::move(file))),
        reader_(&file_) {}

  absl::StatusOr<GgufPart> Read();

 private:
  absl::Status Invalid(absl::string_view field, absl::string_view reason) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(), ": ", field, ": ", reason));
  }
  absl::Status In(absl::string_view field, const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(file_.path(), ": ", field,
                                                    ": ", status.message()));
  }

  absl::Status ReadMagic();
  absl::Status ReadVersion();
  absl::StatusOr<uint64_t> ReadCount(absl::string_view field,
                                     uint64_t min_bytes, uint64_t max);
  absl::StatusOr<TensorInfo> ReadTensorInfo();
  absl::Status ReadShape(TensorInfo& info);
  absl::Status ReadType(TensorInfo& info);
  absl::Status Place(const std::vector<TensorInfo>& infos);
  absl::Status CheckOverlap(const std::vector<TensorInfo>& infos);

  Metadata metadata_;
  TensorStore store_;
  const MappedFile& file_;
  ByteReader reader_;
  uint64_t alignment_ = kDefaultAlignment;
};

absl::Status PartReader::ReadMagic() {
  char magic[4] = {};
  const absl::Status read =
      reader_.ReadBytes(absl::MakeSpan(reinterpret_cast<uint8_t*>(magic), 4));
  if (!read.ok()) return In("magic", read);
  const absl::string_view text(magic, 4);
  if (text == "GGUF") return absl::OkStatus();
  if (text == "FUGG") {
    return absl::UnimplementedError(absl::StrCat(
        file_.path(), ": magic: big-endian file, expected little-endian"));
  }
  for (absl::string_view old : {"lmgg", "fmgg", "tjgg", "algg"}) {
    if (text == old) {
      return absl::UnimplementedError(
          absl::StrCat(file_.path(),
                       ": magic: a GGML file from before GGUF, expected GGUF "
                       "version 2 or 3"));
    }
  }
  if (text == "vers") {
    return Invalid("magic",
                   "expected \"GGUF\", found \"vers\": a Git LFS pointer? "
                   "(fetch the file itself with git lfs pull)");
  }
  return Invalid("magic", absl::StrCat("expected \"GGUF\", found \"",
                                       Printable(text), "\""));
}

absl::Status PartReader::ReadVersion() {
  const auto version = reader_.Read<uint32_t>();
  if (!version.ok()) return In("version", version.status());
  if (*version == 2 || *version == 3) return absl::OkStatus();
  if ((*version & 0xffff) == 0 && *version != 0) {
    return absl::UnimplementedError(absl::StrCat(
        file_.path(), ": version: big-endian file, expected little-endian"));
  }
  return absl::UnimplementedError(absl::StrCat(
      file_.path(), ": version: expected 2 or 3, found ", *version));
}

absl::StatusOr<uint64_t> PartReader::ReadCount(absl::string_view field,
                                               uint64_t min_bytes,
                                               uint64_t max) {
  const auto count = reader_.Read<uint64_t>();
  if (!count.ok()) return In(field, count.status());
  if (*count > reader_.remaining() / min_bytes) {
    return absl::DataLossError(
        absl::StrCat(file_.path(), ": ", field, ": truncated: expected ",
                     *count, " entries, found ", reader_.remaining(),
                     " bytes, enough for ", reader_.remaining() / min_bytes));
  }
  if (*count > max) {
    return absl::ResourceExhaustedError(absl::StrCat(file_.path(), ": ", field,
                                                     ": expected at most ", max,
                                                     ", found ", *count));
  }
  return *count;
}

absl::Status PartReader::ReadShape(TensorInfo& info) {
  LANEWISE_ASSIGN_OR_RETURN(const uint32_t dims, reader_.Read<uint32_t>());
  if (dims > kMaxGgufDims) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected at most ", kMaxGgufDims, " dimensions, found ", dims));
  }
  for (uint32_t i = 0; i < dims; ++i) {
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t dim, reader_.Read<uint64_t>());
    info.shape.push_back(dim);
  }
  std::reverse(info.shape.begin(), info.shape.end());
  return CheckedElements(info.shape).status();
}

absl::Status PartReader::ReadType(TensorInfo& info) {
  LANEWISE_ASSIGN_OR_RETURN(const uint32_t id, reader_.Read<uint32_t>());
  info.type = FindGgufType(id);
  if (info.type == nullptr) {
    return absl::UnimplementedError(absl::StrCat("unknown type ", id));
  }
  if (info.type->block_size == 0) {
    return absl::UnimplementedError(
        absl::StrCat("type ", info.type->name,
                     " was removed from the format and is not supported"));
  }
  const uint64_t row = info.shape.empty() ? 1 : info.shape.back();
  if (row % info.type->block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected rows of a multiple of ", info.type->block_size,
        " elements (the block of ", info.type->name, "), found rows of ", row));
  }
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t elements,
                            CheckedElements(info.shape));
  info.bytes = elements / info.type->block_size * info.type->block_bytes;
  return absl::OkStatus();
}

absl::StatusOr<TensorInfo> PartReader::ReadTensorInfo() {
  TensorInfo info;
  auto name = reader_.ReadString(kMaxTensorNameBytes);
  if (!name.ok()) return In("tensor name", name.status());
  if (name->empty()) {
    return Invalid("tensor name", "expected a name, found \"\"");
  }
  info.name = *std::move(name);
  const std::string field = absl::StrCat("tensor ", Printable(info.name));
  absl::Status status = ReadShape(info);
  if (status.ok()) status = ReadType(info);
  if (!status.ok()) return In(field, status);
  const auto offset = reader_.Read<uint64_t>();
  if (!offset.ok()) return In(field, offset.status());
  info.offset = *offset;
  if (info.offset % alignment_ != 0) {
    return Invalid(field, absl::StrCat("expected an offset that is a multiple "
                                       "of the alignment ",
                                       alignment_, ", found ", info.offset));
  }
  return info;
}

absl::Status PartReader::CheckOverlap(const std::vector<TensorInfo>& infos) {
  std::vector<const TensorInfo*> order;
  order.reserve(infos.size());
  for (const TensorInfo& info : infos) {
    if (info.bytes > 0) order.push_back(&info);
  }
  std::sort(order.begin(), order.end(),
            [](const TensorInfo* a, const TensorInfo* b) {
              return a->offset < b->offset;
            });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& a = *order[i - 1];
    const TensorInfo& b = *order[i];
    if (b.offset - a.offset < a.bytes) {
      return Invalid(
          absl::StrCat("tensor ", Printable(b.name)),
          absl::StrCat("expected bytes of its own, found an overlap with "
                       "tensor ",
                       Printable(a.name), " (offsets ", a.offset, " to ",
                       a.offset + a.bytes, " and ", b.offset, " to ",
                       b.offset + b.bytes, ")"));
    }
  }
  return absl::OkStatus();
}

absl::Status PartReader::Place(const std::vector<TensorInfo>& infos) {
  const uint64_t header = reader_.position();
  const uint64_t padding = (alignment_ - header % alignment_) % alignment_;
  // A file without data may end before the padding.
  const uint64_t begin =
      header + std::min<uint64_t>(padding, reader_.remaining());
  const uint64_t available = file_.size() - begin;
  for (const TensorInfo& info : infos) {
    if (info.offset > available || info.bytes > available - info.offset) {
      return absl::DataLossError(absl::StrCat(
          file_.path(), ": tensor ", Printable(info.name),
          ": truncated: expected ", info.bytes, " bytes at offset ",
          info.offset, " of the data, found ", available, " bytes of data"));
    }
  }
  for (const TensorInfo& info : infos) {
    if (!info.type->type.has_value()) {
      LANEWISE_RETURN_IF_ERROR(
          store_.AddUnsupported({info.name, file_.path(), info.type->name}));
      continue;
    }
    Tensor tensor;
    tensor.name = info.name;
    tensor.file = file_.path();
    tensor.type = *info.type->type;
    tensor.shape = info.shape;
    tensor.data = file_.bytes().subspan(begin + info.offset, info.bytes);
    LANEWISE_RETURN_IF_ERROR(store_.Add(std::move(tensor)));
  }
  return CheckOverlap(infos);
}

absl::StatusOr<GgufPart> PartReader::Read() {
  LANEWISE_RETURN_IF_ERROR(ReadMagic());
  LANEWISE_RETURN_IF_ERROR(ReadVersion());
  LANEWISE_ASSIGN_OR_RETURN(
      const uint64_t tensors,
      ReadCount("tensor count", kMinTensorBytes, kMaxTensors));
  LANEWISE_ASSIGN_OR_RETURN(
      const uint64_t pairs,
      ReadCount("metadata count", kMinPairBytes, kMaxGgufKeys));
  LANEWISE_RETURN_IF_ERROR(
      ReadGgufMetadata(reader_, pairs, metadata_, alignment_));
  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < tensors; ++i) {
    LANEWISE_ASSIGN_OR_RETURN(TensorInfo info, ReadTensorInfo());
    infos.push_back(std::move(info));
  }
  LANEWISE_RETURN_IF_ERROR(Place(infos));
  return GgufPart{std::move(metadata_), std::move(store_)};
}

}  // namespace

absl::StatusOr<GgufPart> ReadGgufPart(MappedFile file) {
  return PartReader(std::move(file)).Read();
}

}  // namespace lanewise
