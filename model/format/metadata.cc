#include "model/format/metadata.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

struct Describe {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(uint64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(const std::string& value) const {
    return absl::StrCat("\"", Printable(value, 40), "\"");
  }
  template <class T>
  std::string operator()(const std::vector<T>& value) const {
    return absl::StrCat("an array of ", value.size(), " ", ElementName(value));
  }

  static const char* ElementName(const std::vector<bool>&) { return "bools"; }
  static const char* ElementName(const std::vector<double>&) {
    return "floats";
  }
  static const char* ElementName(const std::vector<std::string>&) {
    return "strings";
  }
  template <class T>
  static const char* ElementName(const std::vector<T>&) {
    return "integers";
  }
};

absl::Status Absent(const Metadata& metadata, absl::string_view key) {
  return absl::NotFoundError(
      absl::StrCat(metadata.file(), ": ", Printable(key), ": missing"));
}

absl::Status Unexpected(const Metadata& metadata, absl::string_view key,
                        absl::string_view expected,
                        const MetadataValue& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(metadata.file(), ": ", Printable(key), ": expected ",
                   expected, ", found ", std::visit(Describe{}, found)));
}

}  // namespace

bool Metadata::Insert(std::string key, MetadataValue value, MetadataType type) {
  const auto [it, inserted] =
      values_.try_emplace(key, Stored{std::move(value), type});
  if (inserted) keys_.push_back(std::move(key));
  return inserted;
}

bool Metadata::Insert(std::string key, MetadataValue value) {
  // By the order of MetadataValue: five kinds of values, five of arrays.
  constexpr MetadataType kTypes[] = {
      MetadataType::kBool, MetadataType::kInt64, MetadataType::kUint64,
      MetadataType::kFloat64, MetadataType::kString};
  const MetadataType type = kTypes[value.index() % 5];
  return Insert(std::move(key), std::move(value), type);
}

bool Metadata::Has(absl::string_view key) const {
  return values_.contains(key);
}

const MetadataValue* Metadata::Find(absl::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second.value;
}

MetadataType Metadata::TypeOf(absl::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? MetadataType::kString : it->second.type;
}

absl::StatusOr<bool> Metadata::GetBool(absl::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const bool* flag = std::get_if<bool>(value)) return *flag;
  return Unexpected(*this, key, "a bool", *value);
}

absl::StatusOr<int64_t> Metadata::GetInt(absl::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const int64_t* number = std::get_if<int64_t>(value)) return *number;
  return Unexpected(*this, key, "an integer of 64 bits with a sign", *value);
}

absl::StatusOr<uint64_t> Metadata::GetUint(absl::string_view key, uint64_t max,
                                           uint64_t min) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const int64_t* number = std::get_if<int64_t>(value)) {
    const uint64_t found = static_cast<uint64_t>(*number);
    if (*number >= 0 && found >= min && found <= max) return found;
  }
  if (const uint64_t* number = std::get_if<uint64_t>(value)) {
    if (*number >= min && *number <= max) return *number;
  }
  return Unexpected(*this, key,
                    absl::StrCat("an integer from ", min, " to ", max), *value);
}

absl::StatusOr<double> Metadata::GetFloat(absl::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const double* number = std::get_if<double>(value)) return *number;
  if (const int64_t* number = std::get_if<int64_t>(value)) {
    return static_cast<double>(*number);
  }
  if (const uint64_t* number = std::get_if<uint64_t>(value)) {
    return static_cast<double>(*number);
  }
  return Unexpected(*this, key, "a number", *value);
}

absl::StatusOr<absl::string_view> Metadata::GetString(
    absl::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const auto* text = std::get_if<std::string>(value)) {
    return absl::string_view(*text);
  }
  return Unexpected(*this, key, "a string", *value);
}

std::string Metadata::ArchitectureKey(absl::string_view name) const {
  const MetadataValue* value = Find("general.architecture");
  const auto* text =
      value == nullptr ? nullptr : std::get_if<std::string>(value);
  return text == nullptr ? "" : absl::StrCat(*text, ".", name);
}

absl::StatusOr<const std::vector<std::string>*> Metadata::GetStrings(
    absl::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const auto* texts = std::get_if<std::vector<std::string>>(value)) {
    return texts;
  }
  return Unexpected(*this, key, "an array of strings", *value);
}

absl::StatusOr<std::vector<int64_t>> Metadata::GetInts(
    absl::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(value)) {
    return *numbers;
  }
  return Unexpected(*this, key, "an array of integers with a sign", *value);
}

absl::StatusOr<std::vector<double>> Metadata::GetFloats(
    absl::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return Absent(*this, key);
  if (const auto* numbers = std::get_if<std::vector<double>>(value)) {
    return *numbers;
  }
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(value)) {
    return std::vector<double>(numbers->begin(), numbers->end());
  }
  if (const auto* numbers = std::get_if<std::vector<uint64_t>>(value)) {
    return std::vector<double>(numbers->begin(), numbers->end());
  }
  return Unexpected(*this, key, "an array of numbers", *value);
}

absl::StatusOr<bool> Metadata::GetBoolOr(absl::string_view key,
                                         bool absent) const {
  if (!Has(key)) return absent;
  return GetBool(key);
}

absl::StatusOr<uint64_t> Metadata::GetUintOr(absl::string_view key,
                                             uint64_t max,
                                             uint64_t absent) const {
  if (!Has(key)) return absent;
  return GetUint(key, max);
}

absl::StatusOr<double> Metadata::GetFloatOr(absl::string_view key,
                                            double absent) const {
  if (!Has(key)) return absent;
  return GetFloat(key);
}

}  // namespace lanewise
