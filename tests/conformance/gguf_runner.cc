#include "tests/conformance/gguf_runner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/json.h"
#include "model/format/text_file.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "simd/status_macros.h"
#include "simd/types.h"
#include "tests/conformance/decoder_runner.h"
#include "tests/conformance/tokenizer_runner.h"

namespace lanewise {
namespace {

using nlohmann::json;

// Sums are of up to 10^5 values in double; their order is not the reference's.
constexpr double kSumTolerance = 1e-6;
constexpr double kValueTolerance = 1e-6;

struct ToJson {
  template <class T>
  json operator()(const T& value) const {
    return value;
  }
};

template <class T>
absl::StatusOr<std::vector<T>> Values(const Checkpoint& checkpoint,
                                      const Tensor& tensor) {
  std::vector<T> values(tensor.elements());
  LANEWISE_RETURN_IF_ERROR(
      checkpoint.Read(tensor, 0,
                      absl::MakeSpan(reinterpret_cast<uint8_t*>(values.data()),
                                     values.size() * sizeof(T))));
  return values;
}

template <class T>
absl::StatusOr<json> JsonValues(const Checkpoint& checkpoint,
                                const Tensor& tensor) {
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<T> values,
                            Values<T>(checkpoint, tensor));
  return json(values);
}

// Of the types whose values case.json lists.
absl::StatusOr<json> ListedValues(const Checkpoint& checkpoint,
                                  const Tensor& tensor) {
  switch (tensor.type) {
    case DType::kI8:
      return JsonValues<int8_t>(checkpoint, tensor);
    case DType::kI16:
      return JsonValues<int16_t>(checkpoint, tensor);
    case DType::kI32:
      return JsonValues<int32_t>(checkpoint, tensor);
    case DType::kI64:
      return JsonValues<int64_t>(checkpoint, tensor);
    case DType::kF64:
      return JsonValues<double>(checkpoint, tensor);
    default:
      return absl::UnimplementedError("values of such a type are not listed");
  }
}

absl::StatusOr<std::vector<float>> Decoded(const Checkpoint& checkpoint,
                                           const Tensor& tensor) {
  const DTypeTraits& traits = Traits(tensor.type);
  if (traits.decode == nullptr) {
    return absl::UnimplementedError("a type without values in float");
  }
  std::vector<uint8_t> bytes(tensor.data.size());
  LANEWISE_RETURN_IF_ERROR(checkpoint.Read(tensor, 0, absl::MakeSpan(bytes)));
  std::vector<float> values(tensor.elements());
  traits.decode(bytes.data(), values.size(), values.data());
  return values;
}

bool IsExact(DType type) {
  return type == DType::kF32 || type == DType::kF16 || type == DType::kBF16 ||
         type == DType::kQ8_0;
}

// "" or what differs.
std::string CompareValues(absl::Span<const float> found,
                          absl::Span<const float> expected, bool exact) {
  if (found.size() != expected.size()) {
    return absl::StrCat("expected ", expected.size(), " values, found ",
                        found.size());
  }
  float largest = 0;
  for (const float value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  const double tolerance = exact ? 0 : kValueTolerance * largest;
  for (size_t i = 0; i < found.size(); ++i) {
    const double a = found[i], b = expected[i];
    const bool equal = a == b || (std::isnan(a) && std::isnan(b)) ||
                       std::fabs(a - b) <= tolerance;
    if (!equal) {
      return absl::StrCat("value ", i, ": expected ", b, ", found ", a);
    }
  }
  return "";
}

// Against the sums and the first and last values that case.json has.
absl::StatusOr<std::string> CompareSummary(const std::vector<float>& found,
                                           const json& entry,
                                           const std::string& name) {
  double sum = 0, absolute = 0;
  for (const float value : found) {
    sum += value;
    absolute += std::fabs(double{value});
  }
  LANEWISE_ASSIGN_OR_RETURN(const double wanted, GetFloat(entry, name, "sum"));
  LANEWISE_ASSIGN_OR_RETURN(const double wanted_absolute,
                            GetFloat(entry, name, "abs_sum"));
  if (!(std::fabs(sum - wanted) <= kSumTolerance * wanted_absolute) ||
      !(std::fabs(absolute - wanted_absolute) <=
        kSumTolerance * wanted_absolute)) {
    return absl::StrCat("expected the sums ", wanted, " and ", wanted_absolute,
                        ", found ", sum, " and ", absolute);
  }
  for (const bool first : {true, false}) {
    LANEWISE_ASSIGN_OR_RETURN(
        const json* values, GetArray(entry, name, first ? "first8" : "last8"));
    std::vector<float> ends;
    for (const json& value : *values) {
      LANEWISE_ASSIGN_OR_RETURN(const double v, ToFloat(value, name, "8"));
      ends.push_back(static_cast<float>(v));
    }
    if (ends.size() > found.size()) return std::string("too few values");
    const std::string difference =
        CompareValues(absl::MakeConstSpan(found).subspan(
                          first ? 0 : found.size() - ends.size(), ends.size()),
                      ends, false);
    if (!difference.empty()) return difference;
  }
  return std::string();
}

// "" or what differs. Only what the suite has of a tensor is compared.
absl::StatusOr<std::string> CompareTensor(const CaseFolder& golden,
                                          const Checkpoint& checkpoint,
                                          const std::string& name,
                                          const json& entry) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string type,
                            GetString(entry, name, "type"));
  const absl::StatusOr<const Tensor*> found = checkpoint.RequireTensor(name);
  if (!found.ok()) return found.status();
  const Tensor& tensor = **found;
  if (Traits(tensor.type).name != type) {
    return absl::StrCat("expected type ", type, ", found ",
                        Traits(tensor.type).name);
  }
  const json* shape = FindJson(entry, "shape");
  if (shape == nullptr || json(tensor.shape) != *shape) {
    return absl::StrCat("found shape [", absl::StrJoin(tensor.shape, ", "),
                        "]");
  }
  if (tensor.data.size() != BytesOf(tensor.type, tensor.elements())) {
    return absl::StrCat("found ", tensor.data.size(), " bytes");
  }
  if (entry.contains("values")) {
    LANEWISE_ASSIGN_OR_RETURN(const json values,
                              ListedValues(checkpoint, tensor));
    return std::string(values == entry["values"] ? "" : "other values");
  }
  const std::string stored =
      golden.FindTensor(name) != nullptr ? name : "tensor." + name;
  const bool summary = entry.contains("sum");
  if (golden.FindTensor(stored) == nullptr && !summary) return std::string();
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> values,
                            Decoded(checkpoint, tensor));
  if (golden.FindTensor(stored) == nullptr) {
    return CompareSummary(values, entry, name);
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const auto expected, golden.Array<float>({{name, stored}}, name.c_str()));
  return CompareValues(values, expected.values, IsExact(tensor.type));
}

// Types of the suite that the library knows by name only.
bool IsUnsupported(const Checkpoint& checkpoint, const std::string& name,
                   const std::string& type) {
  for (const UnsupportedTensor& tensor : checkpoint.unsupported()) {
    if (tensor.name == name) return tensor.type == type;
  }
  return false;
}

}  // namespace

LineCount CompareMetadata(const CaseFolder& golden,
                          const Checkpoint& checkpoint) {
  LineCount count;
  const json* expected = FindJson(golden.json(), "metadata");
  if (expected == nullptr) return count;
  for (const auto& [key, value] : expected->items()) {
    ++count.cases;
    const MetadataValue* found = checkpoint.metadata().Find(key);
    // Listed, but the writer of these files drops empty strings.
    const bool dropped = value == "";
    if (dropped ? found == nullptr
                : found != nullptr && std::visit(ToJson{}, *found) == value) {
      ++count.equal;
    } else {
      absl::StrAppend(&count.differences, key, ": expected ", value.dump(),
                      "\n");
    }
  }
  return count;
}

LineCount CompareTensors(const CaseFolder& golden,
                         const Checkpoint& checkpoint) {
  LineCount count;
  const json* tensors = FindJson(golden.json(), "tensors");
  if (tensors == nullptr) return count;
  for (const auto& [name, entry] : tensors->items()) {
    const auto type = GetStringOr(entry, name, "type", "");
    if (type.ok() && IsUnsupported(checkpoint, name, *type)) continue;
    ++count.cases;
    const absl::StatusOr<std::string> difference =
        CompareTensor(golden, checkpoint, name, entry);
    if (difference.ok() && difference->empty()) {
      ++count.equal;
      continue;
    }
    absl::StrAppend(
        &count.differences, name, ": ",
        difference.ok() ? *difference : difference.status().ToString(), "\n");
  }
  if (checkpoint.tensors().size() + checkpoint.unsupported().size() !=
      tensors->size()) {
    ++count.cases;
    absl::StrAppend(&count.differences, "tensors that are not listed\n");
  }
  return count;
}

absl::StatusOr<CaseReport> RunGgufCase(const std::string& folder,
                                       const Context& context) {
  LANEWISE_ASSIGN_OR_RETURN(const CaseFolder golden, CaseFolder::Open(folder));
  // Not the folder: it may hold several files, and case.json names none.
  const std::string model = folder + "/model.gguf";
  LANEWISE_ASSIGN_OR_RETURN(
      const auto checkpoint,
      Checkpoint::Open(FileExists(model) ? model : folder));
  CaseReport report;
  if (!golden.runs().empty()) {
    LANEWISE_ASSIGN_OR_RETURN(
        report, RunDecoderCase(folder, context,
                               {"forward", "perplexity", "generate", "text"}));
  }
  report.weights = WeightTypes(*checkpoint);
  LANEWISE_ASSIGN_OR_RETURN(report.name,
                            GetString(golden.json(), folder, "name"));
  const LineCount metadata = CompareMetadata(golden, *checkpoint);
  if (metadata.cases > 0) AddLines({"file", "metadata"}, metadata, &report);
  AddLines({"file", "tensors"}, CompareTensors(golden, *checkpoint), &report);
  const std::string texts = folder + "/tokenize.jsonl";
  if (FileExists(texts)) {
    LANEWISE_ASSIGN_OR_RETURN(const auto tokenizer,
                              Tokenizer::Load(*checkpoint));
    AddLines({"tokenizer", "encode"},
             CompareEncodeFile(*tokenizer, texts, /*decoded_is_plain=*/true),
             &report);
  }
  std::set<std::string> types;
  for (const UnsupportedTensor& tensor : checkpoint->unsupported()) {
    types.insert(tensor.type);
  }
  if (!types.empty()) {
    report.note = absl::StrCat("types that are not supported: ",
                               absl::StrJoin(types, ", "));
  }
  return report;
}

}  // namespace lanewise
