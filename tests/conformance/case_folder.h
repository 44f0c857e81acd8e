// A folder of the conformance suite: case.json, which lists the runs, and
// golden.safetensors with their inputs and expected outputs.
//
//   LANEWISE_ASSIGN_OR_RETURN(const CaseFolder folder, CaseFolder::Open(path));
//   for (const nlohmann::json& run : folder.runs()) {
//     LANEWISE_ASSIGN_OR_RETURN(const TokenRows rows,
//                               folder.Rows(run["inputs"]));
//     LANEWISE_ASSIGN_OR_RETURN(const CaseArray<float> logits,
//                               folder.Array<float>(run["outputs"], "logits"));
//   }
#ifndef LANEWISE_TESTS_CONFORMANCE_CASE_FOLDER_H_
#define LANEWISE_TESTS_CONFORMANCE_CASE_FOLDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/format/checkpoint.h"
#include "model/format/safetensors.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/case_report.h"

namespace lanewise {

// float or int32_t.
template <class T>
struct CaseArray {
  std::vector<size_t> shape;
  std::vector<T> values;

  // Of the first axis.
  absl::Span<const T> Row(size_t row) const {
    const size_t n = values.size() / shape[0];
    return absl::MakeConstSpan(values).subspan(row * n, n);
  }
};

// Token ids without padding, one vector a row.
struct TokenRows {
  std::vector<std::vector<int32_t>> ids;
  std::vector<size_t> first;  // column of a row's first real token
  size_t columns = 0;         // with padding
};

class CaseFolder {
 public:
  // The golden file may be absent; then there are no arrays.
  static absl::StatusOr<CaseFolder> Open(const std::string& folder);

  const std::string& path() const { return path_; }
  const nlohmann::json& json() const { return json_; }
  const nlohmann::json& runs() const;  // empty when there are none

  // Every run has name, kind, inputs and outputs, of the types they should
  // have.
  absl::Status CheckRuns() const;

  // The tensor that fields[field] names. NOT_FOUND names the field,
  // INVALID_ARGUMENT one of another type.
  template <class T>
  absl::StatusOr<CaseArray<T>> Array(const nlohmann::json& fields,
                                     const char* field) const;
  const Tensor* FindTensor(const std::string& name) const;

  // input_ids by attention_mask, where there is one; or other fields like them.
  absl::StatusOr<TokenRows> Rows(
      const nlohmann::json& inputs, const char* ids_field = "input_ids",
      const char* mask_field = "attention_mask") const;

  // The rows of expected [rows.ids.size(), rows.columns, …] at real tokens, as
  // they are packed.
  static absl::StatusOr<std::vector<float>> RealPositions(
      const CaseArray<float>& expected, const TokenRows& rows);

 private:
  CaseFolder() = default;
  absl::StatusOr<const Tensor*> Require(const nlohmann::json& fields,
                                        const char* field, DType type) const;

  std::string path_;
  nlohmann::json json_;
  std::optional<SafetensorsFile> golden_;
};

// A model folder with config.legacy.json in place of config.json: links in a
// temporary folder that goes with the object.
class LegacyFolder {
 public:
  static bool Exists(const std::string& folder);
  static absl::StatusOr<LegacyFolder> Create(const std::string& folder);
  ~LegacyFolder();
  LegacyFolder(LegacyFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")) {}
  LegacyFolder& operator=(LegacyFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit LegacyFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// The checkpoint in a case's folder; name, architecture and weights go into the
// report.
absl::StatusOr<std::unique_ptr<Checkpoint>> OpenModel(const CaseFolder& folder,
                                                      CaseReport* report);

// Storage types of the matrices in a checkpoint, the one with the most bytes
// first: "Q4_K, Q6_K".
std::string WeightTypes(const Checkpoint& checkpoint);

template <class T>
absl::StatusOr<CaseArray<T>> CaseFolder::Array(const nlohmann::json& fields,
                                               const char* field) const {
  static_assert(sizeof(T) == 4, "f32 or i32");
  const absl::StatusOr<const Tensor*> tensor = Require(
      fields, field, std::is_same_v<T, float> ? DType::kF32 : DType::kI32);
  if (!tensor.ok()) return tensor.status();
  CaseArray<T> out;
  out.shape.assign((*tensor)->shape.begin(), (*tensor)->shape.end());
  if (out.shape.empty()) out.shape.push_back(1);  // a scalar
  out.values.resize((*tensor)->elements());
  if (!out.values.empty()) {
    std::memcpy(out.values.data(), (*tensor)->data.data(),
                (*tensor)->data.size());
  }
  return out;
}

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_CASE_FOLDER_H_
