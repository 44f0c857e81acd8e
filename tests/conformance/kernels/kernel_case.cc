#include "tests/conformance/kernels/kernel_case.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/format/safetensors.h"
#include "model/format/text_file.h"
#include "simd/status_macros.h"

namespace lanewise {

absl::StatusOr<KernelTopic> KernelTopic::Open(const std::string& stem) {
  KernelTopic topic;
  const std::string json = stem + ".json";
  LANEWISE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(json));
  LANEWISE_ASSIGN_OR_RETURN(topic.json_, ParseJson(text, json));
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* cases,
                            GetArray(topic.json_, json, "cases"));
  for (const nlohmann::json& one : *cases) {
    LANEWISE_RETURN_IF_ERROR(GetString(one, json, "name").status());
  }
  LANEWISE_ASSIGN_OR_RETURN(const SafetensorsFile file,
                            SafetensorsFile::Open(stem + ".safetensors"));
  for (const Tensor& tensor : file.tensors()) {
    KernelArray& array = topic.arrays_[tensor.name];
    array.shape.assign(tensor.shape.begin(), tensor.shape.end());
    array.width = tensor.shape.empty() ? 1 : tensor.shape.back();
    array.values.resize(tensor.elements());
    if (tensor.type == DType::kI32) {
      std::vector<int32_t> integers(tensor.elements());
      std::memcpy(integers.data(), tensor.data.data(), tensor.data.size());
      array.values.assign(integers.begin(), integers.end());
    } else if (tensor.type == DType::kF32) {
      std::memcpy(array.values.data(), tensor.data.data(), tensor.data.size());
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          stem, ".safetensors: ", tensor.name, ": expected F32 or I32"));
    }
  }
  return topic;
}

const KernelArray* KernelTopic::Find(const nlohmann::json& one,
                                     const char* side,
                                     const char* field) const {
  const nlohmann::json* fields = FindJson(one, side);
  const nlohmann::json* name =
      fields == nullptr ? nullptr : FindJson(*fields, field);
  if (name == nullptr || !name->is_string()) return nullptr;
  const auto array = arrays_.find(name->get<std::string>());
  return array == arrays_.end() ? nullptr : &array->second;
}

KernelCase::KernelCase(const KernelTopic& topic, const nlohmann::json& one)
    : topic_(topic),
      one_(one),
      name_(one["name"].get<std::string>()),
      params_(nlohmann::json::object()) {
  const nlohmann::json* params = FindJson(one, "params");
  if (params != nullptr && params->is_object()) params_ = *params;
}

bool KernelCase::Is(absl::string_view prefix) const {
  return absl::StartsWith(name_, prefix);
}

const KernelArray& KernelCase::Array(const char* side,
                                     const char* field) const {
  static const auto& none = *new KernelArray();
  const KernelArray* array = topic_.Find(one_, side, field);
  return array == nullptr ? none : *array;
}
const KernelArray& KernelCase::input(const char* field) const {
  return Array("inputs", field);
}
const KernelArray& KernelCase::output(const char* field) const {
  return Array("outputs", field);
}

double KernelCase::number(const char* param, double absent) const {
  const nlohmann::json* value = FindJson(params_, param);
  return value != nullptr && value->is_number() ? value->get<double>() : absent;
}
bool KernelCase::flag(const char* param, bool absent) const {
  const nlohmann::json* value = FindJson(params_, param);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : absent;
}
std::string KernelCase::text(const char* param) const {
  const nlohmann::json* value = FindJson(params_, param);
  return value != nullptr && value->is_string() ? value->get<std::string>()
                                                : "";
}

void CompareElements(const OutputName& output, absl::Span<const double> found,
                     absl::Span<const float> expected,
                     const std::function<double(size_t)>& allowed,
                     CaseReport* report) {
  Comparison c{output.run, output.name, 0, 1, ""};
  if (found.size() != expected.size() || expected.empty()) {
    c.failure = absl::StrCat("expected ", expected.size(), " values, found ",
                             found.size());
    report->comparisons.push_back(std::move(c));
    return;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const double limit = allowed(i);
    if (std::isinf(limit)) continue;
    const double difference = std::fabs(found[i] - double{expected[i]});
    // Equal infinities differ by a NaN; any other NaN is an error.
    if (difference == 0 || found[i] == double{expected[i]}) continue;
    const double part = limit > 0 ? difference / limit
                                  : std::numeric_limits<double>::infinity();
    if (part <= c.error) continue;
    c.error = part;
    if (part <= 1) continue;
    c.failure = absl::StrCat("element ", i, ": expected ", expected[i],
                             ", found ", found[i], ", allowed ", limit);
    if (std::isnan(part)) break;
  }
  report->comparisons.push_back(std::move(c));
}

void CompareElements(const OutputName& output, absl::Span<const float> found,
                     absl::Span<const float> expected,
                     const std::function<double(size_t)>& allowed,
                     CaseReport* report) {
  const std::vector<double> wide(found.begin(), found.end());
  CompareElements(output, absl::MakeConstSpan(wide), expected, allowed, report);
}

void CompareToLargest(const OutputName& output, absl::Span<const float> found,
                      absl::Span<const float> expected, double part,
                      CaseReport* report) {
  double largest = 0;
  for (const float value : expected) {
    largest = std::max(largest, std::fabs(double{value}));
  }
  CompareElements(
      output, found, expected, [&](size_t) { return part * largest; }, report);
}

}  // namespace lanewise
