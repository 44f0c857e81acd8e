#include "model/format/json.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using nlohmann::json;

// Builds the document and stops at the first limit.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(const JsonLimits& limits, absl::string_view file)
      : limits_(limits), file_(file) {}

  json root;
  absl::Status status;

  bool null() override { return Add(nullptr) != nullptr; }
  bool boolean(bool value) override { return Add(value) != nullptr; }
  bool number_integer(number_integer_t value) override {
    return Add(value) != nullptr;
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(value) != nullptr;
  }
  bool number_float(number_float_t value, const string_t&) override {
    return Add(value) != nullptr;
  }
  bool string(string_t& value) override {
    return Add(std::move(value)) != nullptr;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(size_t) override { return Open(json::object()); }
  bool start_array(size_t) override { return Open(json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    auto [it, inserted] =
        open_.back()->get_ref<json::object_t&>().try_emplace(name);
    if (!inserted && limits_.unique_keys) {
      status = absl::InvalidArgumentError(
          absl::StrCat(file_, ": ", Printable(name),
                       ": expected unique keys, found it twice"));
      return false;
    }
    slot_ = &it->second;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const json::exception& error) override {
    if (!status.ok()) return false;
    absl::string_view what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    if (const size_t end = what.find("] "); end != what.npos) {
      what.remove_prefix(end + 2);
    }
    absl::ConsumePrefix(&what, "parse error at ");
    absl::ConsumePrefix(&what, "parse error: ");
    status = absl::InvalidArgumentError(
        absl::StrCat(file_, ": byte ", position,
                     ": not valid JSON: ", Printable(what, 300)));
    return false;
  }

 private:
  json* Add(json&& value) {
    if (++values_ > limits_.max_values) {
      status = absl::ResourceExhaustedError(absl::StrCat(
          file_, ": expected at most ", limits_.max_values, " JSON values"));
      return nullptr;
    }
    if (open_.empty()) {
      root = std::move(value);
      return &root;
    }
    if (open_.back()->is_array()) {
      auto& array = open_.back()->get_ref<json::array_t&>();
      array.push_back(std::move(value));
      return &array.back();
    }
    *slot_ = std::move(value);
    return slot_;
  }

  // Pointers to open containers stay valid: only the innermost one grows.
  bool Open(json&& container) {
    if (open_.size() >= limits_.max_depth) {
      status = absl::ResourceExhaustedError(
          absl::StrCat(file_, ": expected JSON nested at most ",
                       limits_.max_depth, " deep, found more"));
      return false;
    }
    json* added = Add(std::move(container));
    if (added == nullptr) return false;
    open_.push_back(added);
    return true;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits limits_;
  const absl::string_view file_;
  std::vector<json*> open_;
  json* slot_ = nullptr;  // of the last key of the innermost object
  uint64_t values_ = 0;
};

absl::Status Unexpected(absl::string_view file, absl::string_view key,
                        absl::string_view expected, const json& found) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": ", Printable(key), ": expected ", expected,
                   ", found ", DescribeJson(found)));
}

// The value as an integer: negative or not, and its magnitude. False for other
// types and for fractions.
bool AsInteger(const json& value, bool* negative, uint64_t* magnitude) {
  if (value.is_number_unsigned()) {
    *negative = false;
    *magnitude = *value.get_ptr<const json::number_unsigned_t*>();
    return true;
  }
  if (value.is_number_integer()) {
    const int64_t number = *value.get_ptr<const json::number_integer_t*>();
    *negative = number < 0;
    *magnitude = *negative ? uint64_t{0} - static_cast<uint64_t>(number)
                           : static_cast<uint64_t>(number);
    return true;
  }
  if (!value.is_number_float()) return false;
  const double number = *value.get_ptr<const json::number_float_t*>();
  if (std::floor(number) != number || std::fabs(number) > 9007199254740992.0) {
    return false;
  }
  *negative = number < 0;
  *magnitude = static_cast<uint64_t>(std::fabs(number));
  return true;
}

}  // namespace

absl::StatusOr<json> ParseJson(absl::string_view text, absl::string_view file,
                               const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(file, ": expected at most ", limits.max_bytes,
                     " bytes of JSON, found ", text.size()));
  }
  Builder builder(limits, file);
  const bool parsed =
      json::sax_parse(text.data(), text.data() + text.size(), &builder);
  if (!builder.status.ok()) return builder.status;
  if (!parsed) {
    return absl::InvalidArgumentError(absl::StrCat(file, ": not valid JSON"));
  }
  return std::move(builder.root);
}

const json* FindJson(const json& object, absl::string_view key) {
  const auto* members = object.get_ptr<const json::object_t*>();
  if (members == nullptr) return nullptr;
  const auto it = members->find(std::string(key));
  if (it == members->end() || it->second.is_null()) return nullptr;
  return &it->second;
}

std::string DescribeJson(const json& value) {
  if (const auto* text = value.get_ptr<const json::string_t*>()) {
    return absl::StrCat("\"", Printable(*text, 40), "\"");
  }
  if (value.is_array()) return absl::StrCat("an array of ", value.size());
  if (value.is_object()) {
    return absl::StrCat("an object of ", value.size(), " keys");
  }
  if (value.is_null()) return "null";
  if (const auto* flag = value.get_ptr<const json::boolean_t*>()) {
    return *flag ? "true" : "false";
  }
  if (const auto* number = value.get_ptr<const json::number_float_t*>()) {
    return absl::StrCat(*number);
  }
  if (const auto* number = value.get_ptr<const json::number_unsigned_t*>()) {
    return absl::StrCat(*number);
  }
  return absl::StrCat(*value.get_ptr<const json::number_integer_t*>());
}

absl::StatusOr<const json*> GetJson(const json& object, absl::string_view file,
                                    absl::string_view key) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": expected an object, found ", DescribeJson(object)));
  }
  const json* value = FindJson(object, key);
  if (value == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(file, ": ", Printable(key), ": missing"));
  }
  return value;
}

absl::StatusOr<const json*> GetObject(const json& object,
                                      absl::string_view file,
                                      absl::string_view key) {
  LANEWISE_ASSIGN_OR_RETURN(const json* value, GetJson(object, file, key));
  if (!value->is_object()) return Unexpected(file, key, "an object", *value);
  return value;
}

absl::StatusOr<const json*> GetArray(const json& object, absl::string_view file,
                                     absl::string_view key) {
  LANEWISE_ASSIGN_OR_RETURN(const json* value, GetJson(object, file, key));
  if (!value->is_array()) return Unexpected(file, key, "an array", *value);
  return value;
}

absl::StatusOr<uint64_t> ToUint(const json& value, absl::string_view file,
                                absl::string_view key, uint64_t max,
                                uint64_t min) {
  bool negative;
  uint64_t magnitude;
  if (AsInteger(value, &negative, &magnitude) && !negative &&
      magnitude >= min && magnitude <= max) {
    return magnitude;
  }
  return Unexpected(file, key,
                    absl::StrCat("an integer from ", min, " to ", max), value);
}

absl::StatusOr<double> ToFloat(const json& value, absl::string_view file,
                               absl::string_view key) {
  if (const auto* number = value.get_ptr<const json::number_float_t*>()) {
    return *number;
  }
  bool negative;
  uint64_t magnitude;
  if (AsInteger(value, &negative, &magnitude)) {
    const double number = static_cast<double>(magnitude);
    return negative ? -number : number;
  }
  return Unexpected(file, key, "a number", value);
}

absl::StatusOr<uint64_t> GetUint(const json& object, absl::string_view file,
                                 absl::string_view key, uint64_t max,
                                 uint64_t min) {
  LANEWISE_ASSIGN_OR_RETURN(const json* value, GetJson(object, file, key));
  return ToUint(*value, file, key, max, min);
}

absl::StatusOr<int64_t> GetInt(const json& object, absl::string_view file,
                               absl::string_view key, int64_t min,
                               int64_t max) {
  LANEWISE_ASSIGN_OR_RETURN(const json* value, GetJson(object, file, key));
  bool negative;
  uint64_t magnitude;
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (AsInteger(*value, &negative, &magnitude) &&
      magnitude <= (negative ? kLimit : kLimit - 1)) {
    const int64_t number =
        static_cast<int64_t>(negative ? uint64_t{0} - magnitude : magnitude);
    if (number >= min && number <= max) return number;
  }
  return Unexpected(file, key,
                    absl::StrCat("an integer from ", min, " to ", max), *value);
}

absl::StatusOr<double> GetFloat(const json& object, absl::string_view file,
                                absl::string_view key) {
  LANEWISE_ASSIGN_OR_RETURN(const json* value, GetJson(object, file, key));
  return ToFloat(*value, file, key);
}

absl::StatusOr<std::string> GetString(const json& object,
                                      absl::string_view file,
                                      absl::string_view key) {
  LANEWISE_ASSIGN_OR_RETURN(const json* value, GetJson(object, file, key));
  if (const auto* text = value->get_ptr<const json::string_t*>()) return *text;
  return Unexpected(file, key, "a string", *value);
}

absl::StatusOr<bool> GetBool(const json& object, absl::string_view file,
                             absl::string_view key) {
  LANEWISE_ASSIGN_OR_RETURN(const json* value, GetJson(object, file, key));
  if (const auto* flag = value->get_ptr<const json::boolean_t*>()) return *flag;
  return Unexpected(file, key, "true or false", *value);
}

absl::StatusOr<uint64_t> GetUintOr(const json& object, absl::string_view file,
                                   absl::string_view key, uint64_t max,
                                   uint64_t absent, uint64_t min) {
  if (FindJson(object, key) == nullptr) return absent;
  return GetUint(object, file, key, max, min);
}

absl::StatusOr<double> GetFloatOr(const json& object, absl::string_view file,
                                  absl::string_view key, double absent) {
  if (FindJson(object, key) == nullptr) return absent;
  return GetFloat(object, file, key);
}

absl::StatusOr<std::string> GetStringOr(const json& object,
                                        absl::string_view file,
                                        absl::string_view key,
                                        absl::string_view absent) {
  if (FindJson(object, key) == nullptr) return std::string(absent);
  return GetString(object, file, key);
}

absl::StatusOr<bool> GetBoolOr(const json& object, absl::string_view file,
                               absl::string_view key, bool absent) {
  if (FindJson(object, key) == nullptr) return absent;
  return GetBool(object, file, key);
}

}  // namespace lanewise
