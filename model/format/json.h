// JSON out of untrusted files: parsing with limits, and typed access with
// messages. nlohmann's own accessors throw; these do not.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       nlohmann::json config, ParseJson(text, "config.json"));
//   LANEWISE_ASSIGN_OR_RETURN(
//       uint64_t width,
//       GetUint(config, "config.json", "hidden_size", /*max=*/1 << 20));
//
// Errors: "config.json: hidden_size: expected an integer from 1 to 1048576,
// found \"abc\"". The getters take an object and a key of it; `file` and `key`
// are what the message names, so `file` may be "config.json: rope_scaling" for
// an object inside another.
#ifndef LANEWISE_MODEL_FORMAT_JSON_H_
#define LANEWISE_MODEL_FORMAT_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/format/limits.h"
#include "nlohmann/json.hpp"

namespace lanewise {

struct JsonLimits {
  uint64_t max_bytes = kMaxTextBytes;
  uint32_t max_depth = kMaxJsonDepth;  // of nested arrays and objects
  uint64_t max_values = kMaxJsonValues;
  // Off: the last of equal keys counts, as in Python.
  bool unique_keys = false;
};

// INVALID_ARGUMENT with line and column for what is not JSON (RFC 8259, UTF-8,
// numbers within double), RESOURCE_EXHAUSTED beyond a limit.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         absl::string_view file,
                                         const JsonLimits& limits = {});

// Null when `object` is not an object, or has no such key, or holds null there.
const nlohmann::json* FindJson(const nlohmann::json& object,
                               absl::string_view key);

// A short form of a value for messages: 3, "abc", an array of 2.
std::string DescribeJson(const nlohmann::json& value);

// Present and not null, else NOT_FOUND "file: key: missing".
absl::StatusOr<const nlohmann::json*> GetJson(const nlohmann::json& object,
                                              absl::string_view file,
                                              absl::string_view key);
absl::StatusOr<const nlohmann::json*> GetObject(const nlohmann::json& object,
                                                absl::string_view file,
                                                absl::string_view key);
absl::StatusOr<const nlohmann::json*> GetArray(const nlohmann::json& object,
                                               absl::string_view file,
                                               absl::string_view key);

// An integer from `min` to `max`; 4.0 counts as 4.
absl::StatusOr<uint64_t> GetUint(const nlohmann::json& object,
                                 absl::string_view file, absl::string_view key,
                                 uint64_t max, uint64_t min = 1);
absl::StatusOr<int64_t> GetInt(const nlohmann::json& object,
                               absl::string_view file, absl::string_view key,
                               int64_t min, int64_t max);
// Any number, always finite.
absl::StatusOr<double> GetFloat(const nlohmann::json& object,
                                absl::string_view file, absl::string_view key);
absl::StatusOr<std::string> GetString(const nlohmann::json& object,
                                      absl::string_view file,
                                      absl::string_view key);
absl::StatusOr<bool> GetBool(const nlohmann::json& object,
                             absl::string_view file, absl::string_view key);

// A value itself, such as an element of an array; `key` names it in messages.
absl::StatusOr<uint64_t> ToUint(const nlohmann::json& value,
                                absl::string_view file, absl::string_view key,
                                uint64_t max, uint64_t min = 0);
absl::StatusOr<double> ToFloat(const nlohmann::json& value,
                               absl::string_view file, absl::string_view key);

// The getters with a default for what is absent or null; a wrong type or range
// stays an error.
absl::StatusOr<uint64_t> GetUintOr(const nlohmann::json& object,
                                   absl::string_view file,
                                   absl::string_view key, uint64_t max,
                                   uint64_t absent, uint64_t min = 0);
absl::StatusOr<double> GetFloatOr(const nlohmann::json& object,
                                  absl::string_view file, absl::string_view key,
                                  double absent);
absl::StatusOr<std::string> GetStringOr(const nlohmann::json& object,
                                        absl::string_view file,
                                        absl::string_view key,
                                        absl::string_view absent);
absl::StatusOr<bool> GetBoolOr(const nlohmann::json& object,
                               absl::string_view file, absl::string_view key,
                               bool absent);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_JSON_H_
