#include "tests/conformance/case_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/json.h"
#include "model/format/text_file.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

}  // namespace

absl::StatusOr<CaseFolder> CaseFolder::Open(const std::string& folder) {
  CaseFolder out;
  out.path_ = folder;
  const std::string json = folder + "/case.json";
  LANEWISE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(json));
  LANEWISE_ASSIGN_OR_RETURN(out.json_, ParseJson(text, json));
  const std::string golden = folder + "/golden.safetensors";
  if (FileExists(golden)) {
    LANEWISE_ASSIGN_OR_RETURN(SafetensorsFile file,
                              SafetensorsFile::Open(golden));
    out.golden_ = std::move(file);
  }
  LANEWISE_RETURN_IF_ERROR(out.CheckRuns());
  return out;
}

const nlohmann::json& CaseFolder::runs() const {
  static const auto& none = *new nlohmann::json(nlohmann::json::array());
  const nlohmann::json* runs = FindJson(json_, "runs");
  return runs == nullptr ? none : *runs;
}

absl::Status CaseFolder::CheckRuns() const {
  const std::string file = path_ + "/case.json";
  if (!runs().is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": runs: expected an array"));
  }
  for (const nlohmann::json& run : runs()) {
    LANEWISE_ASSIGN_OR_RETURN(const std::string name,
                              GetString(run, file, "name"));
    LANEWISE_RETURN_IF_ERROR(GetString(run, file, "kind").status());
    for (const char* side : {"inputs", "outputs"}) {
      LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* fields,
                                GetObject(run, file, side));
      for (const auto& [field, tensor] : fields->items()) {
        if (tensor.is_string()) continue;
        return absl::InvalidArgumentError(
            absl::StrCat(file, ": ", name, ": ", side, ": ", field,
                         ": expected a tensor's name"));
      }
    }
  }
  return absl::OkStatus();
}

const Tensor* CaseFolder::FindTensor(const std::string& name) const {
  return golden_.has_value() ? golden_->Find(name) : nullptr;
}

absl::StatusOr<const Tensor*> CaseFolder::Require(const nlohmann::json& fields,
                                                  const char* field,
                                                  DType type) const {
  const nlohmann::json* name = FindJson(fields, field);
  const Tensor* tensor =
      name == nullptr ? nullptr : FindTensor(name->get<std::string>());
  if (tensor == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(path_, ": no golden tensor for ", field));
  }
  if (tensor->type != type || tensor->elements() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": golden tensor ", tensor->name,
                     ": expected values of type ", Traits(type).name));
  }
  return tensor;
}

absl::StatusOr<TokenRows> CaseFolder::Rows(const nlohmann::json& inputs,
                                           const char* ids_field,
                                           const char* mask_field) const {
  LANEWISE_ASSIGN_OR_RETURN(const CaseArray<int32_t> ids,
                            Array<int32_t>(inputs, ids_field));
  CaseArray<int32_t> mask{ids.shape,
                          std::vector<int32_t>(ids.values.size(), 1)};
  if (inputs.contains(mask_field)) {
    LANEWISE_ASSIGN_OR_RETURN(mask, Array<int32_t>(inputs, mask_field));
  }
  if (ids.shape.size() != 2 || mask.shape != ids.shape) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": ", ids_field, ": expected [rows, columns] ids and a mask"));
  }
  TokenRows rows;
  rows.columns = ids.shape[1];
  rows.ids.resize(ids.shape[0]);
  for (size_t row = 0; row < rows.ids.size(); ++row) {
    const auto real = mask.Row(row);
    rows.first.push_back(std::find(real.begin(), real.end(), 1) - real.begin());
    for (size_t i = 0; i < rows.columns; ++i) {
      if (real[i] != 0) rows.ids[row].push_back(ids.Row(row)[i]);
    }
  }
  return rows;
}

absl::StatusOr<std::vector<float>> CaseFolder::RealPositions(
    const CaseArray<float>& expected, const TokenRows& rows) {
  if (expected.shape.size() < 2 || expected.shape[0] != rows.ids.size() ||
      expected.shape[1] != rows.columns) {
    return absl::InvalidArgumentError(absl::StrCat(
        "golden tensor of shape [", absl::StrJoin(expected.shape, ", "),
        "]: expected [", rows.ids.size(), ", ", rows.columns, ", ...]"));
  }
  const size_t width =
      expected.values.size() / (expected.shape[0] * expected.shape[1]);
  std::vector<float> out;
  for (size_t row = 0; row < rows.ids.size(); ++row) {
    const auto real = expected.Row(row).subspan(rows.first[row] * width,
                                                rows.ids[row].size() * width);
    out.insert(out.end(), real.begin(), real.end());
  }
  return out;
}

bool LegacyFolder::Exists(const std::string& folder) {
  return FileExists(folder + "/config.legacy.json");
}

absl::StatusOr<LegacyFolder> LegacyFolder::Create(const std::string& folder) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  std::string path = (temporary / "lanewise-case-XXXXXX").string();
  if (error || mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot make a folder in ", temporary.string()));
  }
  LegacyFolder out(path);
  const fs::path source = fs::absolute(folder, error);
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                            ListFolder(folder));
  for (const std::string& name : names) {
    if (name == "config.json") continue;
    const bool legacy = name == "config.legacy.json";
    fs::create_symlink(source / name,
                       fs::path(path) / (legacy ? "config.json" : name), error);
    if (error) {
      return absl::UnavailableError(
          absl::StrCat(path, "/", name, ": ", error.message()));
    }
  }
  return out;
}

LegacyFolder::~LegacyFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenModel(const CaseFolder& folder,
                                                      CaseReport* report) {
  const std::string file = folder.path() + "/case.json";
  LANEWISE_ASSIGN_OR_RETURN(report->name,
                            GetString(folder.json(), file, "name"));
  LANEWISE_ASSIGN_OR_RETURN(
      report->architecture,
      GetStringOr(folder.json(), file, "architecture", "?"));
  LANEWISE_ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint,
                            Checkpoint::Open(folder.path()));
  report->weights = WeightTypes(*checkpoint);
  return checkpoint;
}

std::string WeightTypes(const Checkpoint& checkpoint) {
  std::map<std::string, size_t> bytes;
  for (const Tensor& tensor : checkpoint.tensors()) {
    // Not vectors, and not tables of integers.
    if (tensor.shape.size() < 2 || Traits(tensor.type).decode == nullptr) {
      continue;
    }
    bytes[std::string(Traits(tensor.type).name)] += tensor.data.size();
  }
  std::vector<std::pair<std::string, size_t>> order(bytes.begin(), bytes.end());
  std::stable_sort(
      order.begin(), order.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (const auto& one : order) names.push_back(one.first);
  return absl::StrJoin(names, ", ");
}

}  // namespace lanewise
