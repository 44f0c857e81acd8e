#include "tools/quantize_export.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

class Exporter {
 public:
  Exporter(absl::string_view architecture, const ModelSpec& spec,
           Metadata* metadata)
      : architecture_(architecture), spec_(spec), metadata_(*metadata) {}

  void Export() {
    metadata_.Insert("general.architecture", std::string(architecture_));
    metadata_.Insert("general.type", std::string("model"));
    Uint("block_count", spec_.layers.size());
    Uint("context_length", spec_.max_positions);
    Uint("embedding_length", spec_.width);
    Uint("vocab_size", spec_.vocab_size);
    if (spec_.layers.empty()) return;
    const LayerSpec& layer = spec_.layers.front();
    Uint("feed_forward_length", layer.ffn.width);
    ExportAttention(layer.attention);
    ExportNorm(spec_.final_norm.has_value() ? spec_.final_norm
                                            : layer.attention_norms.input);
    if (!spec_.ropes.empty()) ExportRope(spec_.ropes.front());
  }

 private:
  std::string Key(absl::string_view name) const {
    return absl::StrCat(architecture_, ".", name);
  }
  void Uint(absl::string_view name, size_t value) {
    metadata_.Insert(Key(name), static_cast<int64_t>(value),
                     MetadataType::kUint32);
  }
  void Float(absl::string_view name, double value) {
    metadata_.Insert(Key(name), value, MetadataType::kFloat32);
  }

  void ExportAttention(const AttentionSpec& attention) {
    Uint("attention.head_count", attention.heads);
    Uint("attention.head_count_kv", attention.kv_heads);
    const bool divided = attention.head_dim == attention.value_dim &&
                         attention.query_width() == spec_.width;
    if (!divided) {
      Uint("attention.key_length", attention.head_dim);
      Uint("attention.value_length", attention.value_dim);
    }
    if (attention.window > 0) {
      Uint("attention.sliding_window", attention.window);
    }
    if (attention.softcap > 0.0f) {
      Float("attn_logit_softcapping", attention.softcap);
    }
  }

  void ExportNorm(const std::optional<NormSpec>& norm) {
    if (!norm.has_value()) return;
    Float(norm->kind == NormKind::kRmsNorm ? "attention.layer_norm_rms_epsilon"
                                           : "attention.layer_norm_epsilon",
          norm->eps);
  }

  void ExportRope(const RopeSpec& rope) {
    Uint("rope.dimension_count", rope.rotary_dim);
    Float("rope.freq_base", rope.theta);
    const bool linear = rope.scaling == RopeSpec::Scaling::kLinear;
    const bool yarn = rope.scaling == RopeSpec::Scaling::kYarn;
    if (!linear && !yarn) return;
    metadata_.Insert(Key("rope.scaling.type"),
                     std::string(linear ? "linear" : "yarn"));
    Float("rope.scaling.factor", rope.factor);
    if (yarn) {
      Uint("rope.scaling.original_context_length", rope.original_positions);
    }
  }

  const absl::string_view architecture_;
  const ModelSpec& spec_;
  Metadata& metadata_;
};

// Less what a GGUF file tells by its tensors.
std::string ComparableText(ModelSpec spec) {
  spec.head.tied = spec.head.bias = false;
  for (LayerSpec& layer : spec.layers) {
    layer.attention.qkv_bias = layer.attention.output_bias = false;
    layer.ffn.bias = false;
  }
  return SpecToString(spec);
}

// OK when the file would be read as the model that the folder holds.
absl::Status CheckSame(const std::string& path, const ModelSpec& folder,
                       const ModelSpec& gguf, absl::string_view architecture) {
  const std::string expected = ComparableText(folder);
  const std::string found = ComparableText(gguf);
  if (expected == found) return absl::OkStatus();
  const std::vector<absl::string_view> a = absl::StrSplit(expected, '\n');
  const std::vector<absl::string_view> b = absl::StrSplit(found, '\n');
  size_t line = 0;
  while (line + 1 < a.size() && line + 1 < b.size() && a[line] == b[line]) {
    ++line;
  }
  return absl::UnimplementedError(
      absl::StrCat(path, ": GGUF's architecture ", architecture,
                   " has no key for a part of this model: the folder says \"",
                   a[line], "\", the file would say \"", b[line], "\""));
}

std::string BaseName(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

absl::StatusOr<ExportedModel> ExportAs(const std::string& path,
                                       absl::string_view architecture,
                                       const Family& family,
                                       const ModelSpec& spec) {
  ExportedModel model;
  model.metadata = Metadata(path);
  Exporter(architecture, spec, &model.metadata).Export();
  model.metadata.Insert("general.name", BaseName(path));
  LANEWISE_ASSIGN_OR_RETURN(model.spec, family.from_metadata(model.metadata));
  LANEWISE_RETURN_IF_ERROR(CheckSame(path, spec, model.spec, architecture));
  return model;
}

}  // namespace

absl::StatusOr<ExportedModel> ExportModel(const std::string& path,
                                          const Family& family,
                                          const ModelSpec& spec) {
  absl::Status first = absl::UnimplementedError(absl::StrCat(
      path, ": GGUF has no architecture for family ", family.name));
  for (size_t i = 0; i < family.gguf_architectures.size(); ++i) {
    absl::StatusOr<ExportedModel> model =
        ExportAs(path, family.gguf_architectures[i], family, spec);
    if (model.ok()) return model;
    if (i == 0) first = model.status();
  }
  return first;
}

void ExportNoTokenizer(Metadata* metadata) {
  metadata->Insert("tokenizer.ggml.model", std::string("no_vocab"));
}

}  // namespace lanewise
