#include "model/format/gguf.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "model/format/gguf_part.h"
#include "model/format/limits.h"
#include "model/format/text_file.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

struct Split {
  uint64_t no, count;
  std::optional<uint64_t> tensors;
};

absl::StatusOr<Split> ReadSplit(const Metadata& metadata) {
  Split split;
  LANEWISE_ASSIGN_OR_RETURN(split.count,
                            metadata.GetUintOr("split.count", kMaxShards, 0));
  LANEWISE_ASSIGN_OR_RETURN(split.no,
                            metadata.GetUintOr("split.no", kMaxShards, 0));
  if (metadata.Has("split.tensors.count")) {
    LANEWISE_ASSIGN_OR_RETURN(
        split.tensors, metadata.GetUint("split.tensors.count", kMaxTensors));
  }
  return split;
}

std::string Suffix(uint64_t no, uint64_t count) {
  return absl::StrFormat("-%05d-of-%05d.gguf", no + 1, count);
}

// "dir/model" of "dir/model-00001-of-00003.gguf".
absl::StatusOr<std::string> PrefixOf(const std::string& path,
                                     const Split& split) {
  if (split.no != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": split.no: expected the first of ", split.count,
        " files (0), found ", split.no, "; open the one whose name ends in ",
        Suffix(0, split.count)));
  }
  const std::string suffix = Suffix(0, split.count);
  if (!absl::EndsWith(path, suffix)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": split.count: expected a file name that ends in ",
                     suffix, " for a model in ", split.count, " files"));
  }
  return path.substr(0, path.size() - suffix.size());
}

absl::Status CheckShardsExist(const std::string& path,
                              const std::string& prefix, uint64_t count) {
  std::vector<std::string> missing;
  for (uint64_t no = 1; no < count; ++no) {
    std::string name = prefix + Suffix(no, count);
    if (!FileExists(name)) missing.push_back(std::move(name));
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(path, ": split.count: expected ",
                                          count, " files, missing ",
                                          absl::StrJoin(missing, ", ")));
}

}  // namespace

absl::StatusOr<Gguf> Gguf::Open(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  LANEWISE_ASSIGN_OR_RETURN(GgufPart first, ReadGgufPart(std::move(file)));
  LANEWISE_ASSIGN_OR_RETURN(const Split split, ReadSplit(first.metadata));
  Gguf gguf;
  gguf.metadata_ = std::move(first.metadata);
  gguf.store_ = std::move(first.store);
  if (split.count > 1) {
    LANEWISE_ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(path, split));
    LANEWISE_RETURN_IF_ERROR(CheckShardsExist(path, prefix, split.count));
    for (uint64_t no = 1; no < split.count; ++no) {
      const std::string name = prefix + Suffix(no, split.count);
      LANEWISE_ASSIGN_OR_RETURN(MappedFile shard, MappedFile::Open(name));
      LANEWISE_ASSIGN_OR_RETURN(GgufPart part, ReadGgufPart(std::move(shard)));
      LANEWISE_ASSIGN_OR_RETURN(const Split its, ReadSplit(part.metadata));
      if (its.no != no || its.count != split.count) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": split.no: expected file ", no, " of ",
                         split.count, ", found ", its.no, " of ", its.count));
      }
      LANEWISE_RETURN_IF_ERROR(gguf.store_.Absorb(std::move(part.store)));
    }
  }
  if (split.tensors.has_value() && *split.tensors != gguf.store_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": split.tensors.count: expected ", *split.tensors,
                     " tensors in all files, found ", gguf.store_.size()));
  }
  return gguf;
}

absl::StatusOr<Gguf> Gguf::FromBytes(std::string name,
                                     std::vector<uint8_t> bytes) {
  LANEWISE_ASSIGN_OR_RETURN(
      GgufPart part,
      ReadGgufPart(MappedFile::FromBytes(std::move(name), std::move(bytes))));
  Gguf gguf;
  gguf.metadata_ = std::move(part.metadata);
  gguf.store_ = std::move(part.store);
  return gguf;
}

}  // namespace lanewise
