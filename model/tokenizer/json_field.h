// A value inside a JSON file together with its path, for checked access:
//
//   LANEWISE_ASSIGN_OR_RETURN(std::string type,
//   field["model"]["type"].String());
//   // error: "tokenizer.json: model.type: expected a string, found a number"
//
// Absent members and null are the same. Nothing here throws.
#ifndef LANEWISE_MODEL_TOKENIZER_JSON_FIELD_H_
#define LANEWISE_MODEL_TOKENIZER_JSON_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace lanewise {

class JsonField {
 public:
  // `value` may be null (absent) and must outlive the field.
  JsonField(const nlohmann::json* value, std::string path)
      : value_(value), path_(std::move(path)) {}

  // Root of a file.
  static JsonField Root(const nlohmann::json& value, absl::string_view file);

  JsonField operator[](absl::string_view key) const;
  JsonField operator[](size_t index) const;

  bool present() const { return value_ != nullptr && !value_->is_null(); }
  const nlohmann::json* value() const { return value_; }
  const std::string& path() const { return path_; }

  absl::StatusOr<std::string> String() const;
  absl::StatusOr<bool> Bool() const;
  absl::StatusOr<int64_t> Int(int64_t min, int64_t max) const;
  absl::StatusOr<double> Number() const;
  absl::StatusOr<size_t> ArraySize() const;
  absl::Status CheckObject() const;

  // The same with a value for an absent field.
  absl::StatusOr<std::string> StringOr(absl::string_view absent) const;
  absl::StatusOr<bool> BoolOr(bool absent) const;
  absl::StatusOr<int64_t> IntOr(int64_t min, int64_t max, int64_t absent) const;

  // "path: expected …, found …".
  absl::Status Error(absl::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_JSON_FIELD_H_
