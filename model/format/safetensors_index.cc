// Models in several safetensors files with an index.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/json.h"
#include "model/format/limits.h"
#include "model/format/mapped_file.h"
#include "model/format/printable.h"
#include "model/format/safetensors.h"
#include "model/format/text_file.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using nlohmann::json;

constexpr size_t kNamesInMessage = 5;

// The first few names and how many more there are.
std::string ListNames(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kNamesInMessage); ++i) {
    shown.push_back(Printable(names[i]));
  }
  std::string text = absl::StrJoin(shown, ", ");
  if (names.size() > shown.size()) {
    absl::StrAppend(&text, " and ", names.size() - shown.size(), " more");
  }
  return text;
}

bool IsPlainFileName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         !absl::StrContains(name, '/') && !absl::StrContains(name, '\\') &&
         !absl::StrContains(name, '\0');
}

// Tensor name -> shard.
using WeightMap = std::map<std::string, std::string>;

absl::StatusOr<WeightMap> ReadWeightMap(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  LANEWISE_ASSIGN_OR_RETURN(const json index, ParseJson(text, path));
  LANEWISE_ASSIGN_OR_RETURN(const json* entries,
                            GetObject(index, path, "weight_map"));
  WeightMap map;
  const std::string where = path + ": weight_map";
  for (const auto& [name, value] : entries->get_ref<const json::object_t&>()) {
    LANEWISE_ASSIGN_OR_RETURN(std::string shard,
                              GetString(*entries, where, name));
    if (!IsPlainFileName(shard)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", Printable(name),
                       ": expected the name of a file beside the index, found "
                       "\"",
                       Printable(shard), "\""));
    }
    map.emplace(name, std::move(shard));
  }
  if (map.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected at least one tensor, found none"));
  }
  return map;
}

absl::Status CheckFiles(const std::string& path, const std::string& folder,
                        const std::vector<std::string>& shards) {
  if (shards.size() > kMaxShards) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": weight_map: expected at most ", kMaxShards,
                     " files, found ", shards.size()));
  }
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    if (!FileExists(folder + shard)) missing.push_back(shard);
  }
  if (missing.empty()) return absl::OkStatus();
  std::vector<std::string> beside;
  const auto names = ListFolder(folder);
  if (names.ok()) {
    for (const std::string& name : *names) {
      if (absl::EndsWith(name, ".safetensors") &&
          !std::binary_search(shards.begin(), shards.end(), name)) {
        beside.push_back(name);
      }
    }
  }
  std::string message = absl::StrCat(
      path, ": weight_map: names files that are missing: ", ListNames(missing));
  if (!beside.empty()) {
    absl::StrAppend(&message, "; beside it lie ", ListNames(beside),
                    ", so the index may be stale");
  }
  return absl::NotFoundError(message);
}

// The map and the shards must name the same tensors.
absl::Status CheckAgreement(const std::string& path, const std::string& folder,
                            const WeightMap& map, const TensorStore& store) {
  std::vector<std::string> absent;
  for (const auto& [name, shard] : map) {
    const std::string* file = store.FileOf(name);
    if (file == nullptr) {
      absent.push_back(absl::StrCat(name, " in ", shard));
    } else if (*file != folder + shard) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": weight_map: tensor ", Printable(name),
                       ": expected it in ", shard, ", found it in ", *file));
    }
  }
  if (!absent.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": weight_map: names tensors that their files lack: ",
        ListNames(absent)));
  }
  if (store.size() == map.size()) return absl::OkStatus();
  std::vector<std::string> unlisted;
  for (const Tensor& tensor : store.tensors()) {
    if (map.count(tensor.name) == 0) unlisted.push_back(tensor.name);
  }
  for (const UnsupportedTensor& tensor : store.unsupported()) {
    if (map.count(tensor.name) == 0) unlisted.push_back(tensor.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": weight_map: lacks tensors that its files hold: ",
                   ListNames(unlisted)));
}

}  // namespace

absl::StatusOr<TensorStore> OpenSafetensorsIndex(
    const std::string& path, const SafetensorsOptions& options) {
  LANEWISE_ASSIGN_OR_RETURN(const WeightMap map, ReadWeightMap(path));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::vector<std::string> shards;
  for (const auto& [name, shard] : map) shards.push_back(shard);
  std::sort(shards.begin(), shards.end());
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  LANEWISE_RETURN_IF_ERROR(CheckFiles(path, folder, shards));
  TensorStore store;
  for (const std::string& shard : shards) {
    LANEWISE_ASSIGN_OR_RETURN(SafetensorsFile file,
                              SafetensorsFile::Open(folder + shard, options));
    LANEWISE_RETURN_IF_ERROR(store.Absorb(std::move(file).TakeStore()));
  }
  LANEWISE_RETURN_IF_ERROR(CheckAgreement(path, folder, map, store));
  return store;
}

}  // namespace lanewise
