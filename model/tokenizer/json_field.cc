#include "model/tokenizer/json_field.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/format/printable.h"

namespace lanewise {
namespace {

using nlohmann::json;

// A value as a message shows it.
std::string Found(const json* value) {
  if (value == nullptr) return "nothing";
  switch (value->type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return absl::StrCat("an array of ", value->size());
    case json::value_t::string: {
      const std::string& text = *value->get_ptr<const std::string*>();
      return absl::StrCat("\"", Printable(text, 80), "\"");
    }
    case json::value_t::boolean:
      return *value->get_ptr<const json::boolean_t*>() ? "true" : "false";
    case json::value_t::number_integer:
      return absl::StrCat(*value->get_ptr<const json::number_integer_t*>());
    case json::value_t::number_unsigned:
      return absl::StrCat(*value->get_ptr<const json::number_unsigned_t*>());
    case json::value_t::number_float:
      return absl::StrCat(*value->get_ptr<const json::number_float_t*>());
    default:
      return "null";
  }
}

}  // namespace

JsonField JsonField::Root(const json& value, absl::string_view file) {
  return JsonField(&value, absl::StrCat(file, ": "));
}

JsonField JsonField::operator[](absl::string_view key) const {
  const json* member = nullptr;
  if (value_ != nullptr && value_->is_object()) {
    const auto it = value_->find(std::string(key));
    if (it != value_->end()) member = &*it;
  }
  const bool root = absl::EndsWith(path_, ": ");
  return JsonField(member,
                   absl::StrCat(path_, root ? "" : ".", Printable(key, 80)));
}

JsonField JsonField::operator[](size_t index) const {
  const json* item = nullptr;
  if (value_ != nullptr && value_->is_array() && index < value_->size()) {
    item = &(*value_)[index];
  }
  return JsonField(item, absl::StrCat(path_, "[", index, "]"));
}

absl::Status JsonField::Error(absl::string_view expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": expected ", expected, ", found ", Found(value_)));
}

absl::StatusOr<std::string> JsonField::String() const {
  if (value_ == nullptr || !value_->is_string()) return Error("a string");
  return *value_->get_ptr<const std::string*>();
}

absl::StatusOr<bool> JsonField::Bool() const {
  if (value_ == nullptr || !value_->is_boolean()) return Error("a boolean");
  return *value_->get_ptr<const json::boolean_t*>();
}

absl::StatusOr<int64_t> JsonField::Int(int64_t min, int64_t max) const {
  if (value_ != nullptr) {
    if (const auto* number =
            value_->get_ptr<const json::number_unsigned_t*>()) {
      if (*number <= static_cast<uint64_t>(INT64_MAX) &&
          static_cast<int64_t>(*number) >= min &&
          static_cast<int64_t>(*number) <= max) {
        return static_cast<int64_t>(*number);
      }
    } else if (const auto* negative =
                   value_->get_ptr<const json::number_integer_t*>()) {
      if (*negative >= min && *negative <= max) return *negative;
    }
  }
  return Error(absl::StrCat("an integer in ", min, "..", max));
}

absl::StatusOr<double> JsonField::Number() const {
  if (value_ == nullptr || !value_->is_number()) return Error("a number");
  return value_->get<double>();
}

absl::StatusOr<size_t> JsonField::ArraySize() const {
  if (value_ == nullptr || !value_->is_array()) return Error("an array");
  return value_->size();
}

absl::Status JsonField::CheckObject() const {
  if (value_ == nullptr || !value_->is_object()) return Error("an object");
  return absl::OkStatus();
}

absl::StatusOr<std::string> JsonField::StringOr(
    absl::string_view absent) const {
  if (!present()) return std::string(absent);
  return String();
}

absl::StatusOr<bool> JsonField::BoolOr(bool absent) const {
  if (!present()) return absent;
  return Bool();
}

absl::StatusOr<int64_t> JsonField::IntOr(int64_t min, int64_t max,
                                         int64_t absent) const {
  if (!present()) return absent;
  return Int(min, max);
}

}  // namespace lanewise
