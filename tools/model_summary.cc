#include "tools/model_summary.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "model/spec.h"
#include "simd/status_macros.h"
#include "simd/types.h"

namespace lanewise {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json Shorten(const std::vector<T>& values) {
  Json array = Json::array();
  for (size_t i = 0; i < std::min(values.size(), kMaxArray); ++i) {
    array.push_back(static_cast<T>(values[i]));
  }
  if (values.size() <= kMaxArray) return array;
  return Json{{"length", values.size()}, {"first", std::move(array)}};
}

Json ToJson(const MetadataValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_arithmetic_v<V> ||
                      std::is_same_v<V, std::string>) {
          return v;
        } else {
          return Shorten(v);
        }
      },
      value);
}

void ReadMetadata(const Checkpoint& checkpoint, ModelSummary* summary) {
  const Metadata& metadata = checkpoint.metadata();
  for (const std::string& key : metadata.keys()) {
    summary->metadata.emplace_back(key, ToJson(*metadata.Find(key)));
  }
  if (const auto architecture = metadata.GetString("general.architecture");
      architecture.ok()) {
    summary->architecture = std::string(*architecture);
  }
}

void ReadFolder(const Checkpoint& checkpoint, ModelSummary* summary) {
  for (absl::string_view name :
       {"config.json", "generation_config.json", "tokenizer.json",
        "tokenizer_config.json", "chat_template.jinja", "modules.json"}) {
    if (checkpoint.ReadText(name).ok()) summary->files.emplace_back(name);
  }
  const absl::StatusOr<nlohmann::json> config =
      checkpoint.ReadJson("config.json");
  if (!config.ok() || !config->is_object()) return;
  for (const auto& [key, value] : config->items()) {
    summary->metadata.emplace_back(key, Json(value));
  }
  const auto type = config->find("model_type");
  if (type != config->end() && type->is_string()) {
    summary->architecture = type->get<std::string>();
  }
}

absl::StatusOr<std::string> SpecText(const Checkpoint& checkpoint) {
  LANEWISE_ASSIGN_OR_RETURN(const Family* family, FindFamily(checkpoint));
  LANEWISE_ASSIGN_OR_RETURN(const ModelSpec spec,
                            ReadSpec(checkpoint, *family));
  return SpecToString(spec);
}

void CountTensors(const Checkpoint& checkpoint, ModelSummary* summary) {
  std::map<std::string, TypeTotal> totals;
  for (const Tensor& tensor : checkpoint.tensors()) {
    const std::string type(Traits(tensor.type).name);
    TypeTotal& total = totals[type];
    total.type = type;
    ++total.tensors;
    total.elements += tensor.elements();
    total.bytes += tensor.data.size();
    summary->parameters += tensor.elements();
    summary->bytes += tensor.data.size();
  }
  for (auto& [type, total] : totals) summary->totals.push_back(total);
  std::stable_sort(
      summary->totals.begin(), summary->totals.end(),
      [](const TypeTotal& a, const TypeTotal& b) { return a.bytes > b.bytes; });
}

}  // namespace

ModelSummary Summarize(const Checkpoint& checkpoint) {
  ModelSummary summary;
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    summary.kind = "GGUF";
    ReadMetadata(checkpoint, &summary);
  } else {
    summary.kind = "safetensors";
    ReadFolder(checkpoint, &summary);
  }
  CountTensors(checkpoint, &summary);
  absl::StatusOr<std::string> spec = SpecText(checkpoint);
  summary.supported = spec.status();
  if (spec.ok()) summary.spec = *std::move(spec);
  if (spec.ok() && !checkpoint.unsupported().empty()) {
    const std::string& name = checkpoint.unsupported().front().name;
    summary.supported = checkpoint.RequireTensor(name).status();
  }
  return summary;
}

}  // namespace lanewise
