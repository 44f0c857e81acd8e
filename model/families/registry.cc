#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {

// The families, by their files in BUILD.
#define LANEWISE_FAMILY(name) const Family& name();
#include "model/families/family_list.inc"
#undef LANEWISE_FAMILY

namespace {

constexpr char kConfigFile[] = "config.json";

absl::StatusOr<const Family*> FindByName(
    const Checkpoint& checkpoint, absl::string_view key, absl::string_view name,
    std::vector<absl::string_view> Family::*names) {
  std::vector<absl::string_view> known;
  for (const Family* family : Families()) {
    for (const absl::string_view candidate : family->*names) {
      if (candidate == name) return family;
      known.push_back(candidate);
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      checkpoint.path(), ": ", key, ": architecture '", Printable(name),
      "' is not supported; supported: ", absl::StrJoin(known, ", ")));
}

// Checks of one file's spec: "path: field: expected …, found …".
class SpecCheck {
 public:
  explicit SpecCheck(absl::string_view path) : path_(path) {}

  // Sizes that would make shapes empty or attention impossible.
  absl::Status Check(const ModelSpec& spec) const {
    const bool tokens = spec.input == InputKind::kTokens;
    const std::pair<const char*, size_t> sizes[] = {
        {"vocabulary size", tokens ? spec.vocab_size : 1},
        {"hidden size", spec.width},
        {"embedding size", spec.token_width()},
        {"number of positions", spec.max_positions},
        {"number of layers", spec.layers.size()}};
    for (const auto& [field, size] : sizes) {
      if (size == 0) return Error(field, "at least 1", 0);
    }
    LANEWISE_RETURN_IF_ERROR(CheckNorm(spec.embedding_norm));
    LANEWISE_RETURN_IF_ERROR(CheckNorm(spec.final_norm));
    LANEWISE_RETURN_IF_ERROR(CheckHead(spec));
    LANEWISE_RETURN_IF_ERROR(CheckConvolution(spec));
    LANEWISE_RETURN_IF_ERROR(CheckPatches(spec));
    for (const LayerSpec& layer : spec.layers) {
      LANEWISE_RETURN_IF_ERROR(CheckLayer(spec, layer));
    }
    for (const ModelSpec& encoder : spec.encoder) {
      LANEWISE_RETURN_IF_ERROR(Check(encoder));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(absl::string_view field, absl::string_view expected,
                     size_t found) const {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": ", field, ": expected ", expected, ", found ", found));
  }

  absl::Status CheckNorm(const std::optional<NormSpec>& norm) const {
    if (!norm.has_value() || (std::isfinite(norm->eps) && norm->eps >= 0.0f)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(path_,
                     ": epsilon of the norms: expected a finite number of at "
                     "least 0, found ",
                     norm->eps));
  }

  absl::Status CheckHead(const ModelSpec& spec) const {
    if (spec.head.task == HeadTask::kNone) return absl::OkStatus();
    if (spec.head.transform.has_value()) {
      LANEWISE_RETURN_IF_ERROR(CheckNorm(spec.head.transform->norm));
      if (spec.head.transform->width == 0) {
        return Error("size of the head's dense layer", "at least 1", 0);
      }
    }
    if (spec.head_width() == 0) return Error("labels", "at least 1", 0);
    return absl::OkStatus();
  }

  absl::Status CheckPatches(const ModelSpec& spec) const {
    if (!spec.patches.has_value()) return absl::OkStatus();
    const PatchSpec& patches = *spec.patches;
    const size_t side = std::min(patches.height, patches.width);
    if (patches.size == 0 || patches.size > side) {
      return Error("patch size",
                   absl::StrCat("1 to the image's ", side, " pixels"),
                   patches.size);
    }
    const std::pair<const char*, size_t> sizes[] = {
        {"channels", patches.channels},
        {"image height", patches.height},
        {"image width", patches.width}};
    for (const auto& [field, size] : sizes) {
      if (size > 0 && size <= kMaxImageSide) continue;
      return Error(field, absl::StrCat("1 to ", kMaxImageSide), size);
    }
    const size_t values = patches.channels * patches.height * patches.width;
    if (values > kMaxPixelValues || patches.values() > kMaxWidth) {
      return Error("pixel values",
                   absl::StrCat("at most ", kMaxPixelValues, " and ", kMaxWidth,
                                " in a patch"),
                   values);
    }
    if (spec.input == InputKind::kTokens || !spec.bidirectional() ||
        patches.rows() > spec.max_positions) {
      return Error("positions",
                   absl::StrCat("at least ", patches.rows(),
                                " of vectors in a bidirectional model"),
                   spec.max_positions);
    }
    return absl::OkStatus();
  }

  absl::Status CheckConvolution(const ModelSpec& spec) const {
    if (!spec.convolution.has_value()) return absl::OkStatus();
    LANEWISE_RETURN_IF_ERROR(CheckNorm(spec.convolution->norm));
    const size_t kernel = spec.convolution->kernel;
    if (kernel % 2 == 0 || kernel > kMaxKernel || !spec.bidirectional()) {
      return Error("rows of the convolution",
                   absl::StrCat("an odd number up to ", kMaxKernel,
                                " in a bidirectional model"),
                   kernel);
    }
    return absl::OkStatus();
  }

  absl::Status CheckDisentangled(const ModelSpec& spec,
                                 const AttentionSpec& attention) const {
    const auto& first = spec.layers.front().attention.disentangled;
    const auto& own = attention.disentangled;
    if (first.has_value() != own.has_value() ||
        (own.has_value() && own->span != first->span)) {
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": layers: expected one table of relative positions for all"));
    }
    if (!own.has_value()) return absl::OkStatus();
    LANEWISE_RETURN_IF_ERROR(CheckNorm(own->norm));
    if (own->span == 0 || own->span > kMaxRelativeSpan || attention.causal) {
      return Error("relative positions",
                   absl::StrCat("1 to ", kMaxRelativeSpan,
                                " to either side in a bidirectional model"),
                   own->span);
    }
    if (own->max_distance == 0 || own->max_distance > kMaxRelativeDistance) {
      return Error("relative attention distance",
                   absl::StrCat("1 to ", kMaxRelativeDistance),
                   own->max_distance);
    }
    if (attention.heads != attention.kv_heads ||
        attention.relative_bias.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_,
                       ": disentangled attention: expected a key/value head "
                       "for every head and no other bias"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckLayer(const ModelSpec& spec, const LayerSpec& layer) const {
    LANEWISE_RETURN_IF_ERROR(CheckNorms(layer.attention_norms));
    LANEWISE_RETURN_IF_ERROR(CheckNorms(layer.ffn_norms));
    LANEWISE_RETURN_IF_ERROR(CheckAttention(spec, layer.attention));
    LANEWISE_RETURN_IF_ERROR(CheckDisentangled(spec, layer.attention));
    if (layer.attention.causal != !spec.bidirectional()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": layers: expected all of them causal or none"));
    }
    if (layer.cross.has_value()) {
      LANEWISE_RETURN_IF_ERROR(CheckNorms(layer.cross->norms));
      LANEWISE_RETURN_IF_ERROR(CheckAttention(spec, layer.cross->attention));
      if (spec.encoder.size() != 1) {
        return Error("encoders", "one, for cross-attention to read",
                     spec.encoder.size());
      }
    }
    return CheckFfn(layer.ffn);
  }

  absl::Status CheckNorms(const SublayerNorms& norms) const {
    LANEWISE_RETURN_IF_ERROR(CheckNorm(norms.input));
    LANEWISE_RETURN_IF_ERROR(CheckNorm(norms.output));
    return CheckNorm(norms.after);
  }

  absl::Status CheckAttention(const ModelSpec& spec,
                              const AttentionSpec& attention) const {
    if (attention.head_dim == 0 || attention.value_dim == 0) {
      return Error("head size", "at least 1", 0);
    }
    if (attention.kv_heads == 0 || attention.heads == 0 ||
        attention.heads % attention.kv_heads != 0) {
      return Error("key/value heads",
                   absl::StrCat("a divisor of the ", attention.heads, " heads"),
                   attention.kv_heads);
    }
    if (attention.relative_bias.has_value()) {
      LANEWISE_RETURN_IF_ERROR(
          CheckRelativeBias(spec, *attention.relative_bias));
    }
    if (!attention.rope.has_value()) return absl::OkStatus();
    if (*attention.rope >= spec.ropes.size()) {
      return Error("rope of a layer",
                   absl::StrCat("one of ", spec.ropes.size()), *attention.rope);
    }
    const size_t rotary_dim = spec.ropes[*attention.rope].rotary_dim;
    if (rotary_dim % 2 != 0 || rotary_dim > attention.head_dim ||
        rotary_dim == 0) {
      return Error("rotary size",
                   absl::StrCat("an even number up to the head size ",
                                attention.head_dim),
                   rotary_dim);
    }
    if (spec.ropes[*attention.rope].scaling == RopeSpec::Scaling::kDynamic &&
        rotary_dim < 4) {
      return Error("rotary size", "at least 4 with dynamic scaling",
                   rotary_dim);
    }
    return absl::OkStatus();
  }

  absl::Status CheckRelativeBias(const ModelSpec& spec,
                                 const RelativeBiasSpec& bias) const {
    if (bias.buckets == 0 || bias.buckets > kMaxRelativeDistance) {
      return Error("relative attention buckets",
                   absl::StrCat("1 to ", kMaxRelativeDistance), bias.buckets);
    }
    if (bias.max_distance == 0 || bias.max_distance > kMaxRelativeDistance) {
      return Error("relative attention distance",
                   absl::StrCat("1 to ", kMaxRelativeDistance),
                   bias.max_distance);
    }
    for (const LayerSpec& layer : spec.layers) {
      if (layer.attention.heads == spec.layers.front().attention.heads) {
        continue;
      }
      return Error("heads",
                   absl::StrCat(spec.layers.front().attention.heads,
                                " in every layer, since they share one table "
                                "of relative positions"),
                   layer.attention.heads);
    }
    return absl::OkStatus();
  }

  absl::Status CheckFfn(const FfnSpec& ffn) const {
    if (ffn.width == 0) return Error("feed-forward size", "at least 1", 0);
    if (!ffn.moe.has_value()) return absl::OkStatus();
    if (ffn.moe->top_k == 0 || ffn.moe->top_k > ffn.moe->experts) {
      return Error("experts per token",
                   absl::StrCat("1 to the ", ffn.moe->experts, " experts"),
                   ffn.moe->top_k);
    }
    if (ffn.moe->shared.has_value() && ffn.moe->shared->width == 0) {
      return Error("shared expert's size", "at least 1", 0);
    }
    return absl::OkStatus();
  }

  const absl::string_view path_;
};

}  // namespace

absl::Span<const Family* const> Families() {
  static const Family* const families[] = {
#define LANEWISE_FAMILY(name) &name(),
#include "model/families/family_list.inc"
#undef LANEWISE_FAMILY
  };
  return families;
}

absl::StatusOr<const Family*> FindFamily(const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    constexpr absl::string_view kKey = "general.architecture";
    LANEWISE_ASSIGN_OR_RETURN(const absl::string_view name,
                              checkpoint.metadata().GetString(kKey));
    return FindByName(checkpoint, kKey, name, &Family::gguf_architectures);
  }
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                            checkpoint.ReadJson(kConfigFile));
  LANEWISE_ASSIGN_OR_RETURN(
      const std::string name,
      GetString(config, absl::StrCat(checkpoint.path(), "/", kConfigFile),
                "model_type"));
  return FindByName(checkpoint, "config.json: model_type", name,
                    &Family::model_types);
}

const Family* FamilyOfModelType(absl::string_view model_type) {
  for (const Family* family : Families()) {
    for (const absl::string_view name : family->model_types) {
      if (name == model_type) return family;
    }
  }
  return nullptr;
}

absl::StatusOr<ModelSpec> ReadSpec(const Checkpoint& checkpoint,
                                   const Family& family) {
  absl::StatusOr<ModelSpec> spec;
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    spec = family.from_metadata(checkpoint.metadata());
    if (spec.ok() && family.from_tensors != nullptr) {
      const auto has = [&](absl::string_view name) {
        return checkpoint.FindTensor(name) != nullptr;
      };
      family.from_tensors(has, &*spec);
    }
  } else {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                              checkpoint.ReadJson(kConfigFile));
    spec = family.from_config(
        config, absl::StrCat(checkpoint.path(), "/", kConfigFile));
  }
  LANEWISE_RETURN_IF_ERROR(spec.status());
  LANEWISE_RETURN_IF_ERROR(CheckSpec(*spec, checkpoint.path()));
  return spec;
}

absl::Status CheckSpec(const ModelSpec& spec, absl::string_view name) {
  return SpecCheck(name).Check(spec);
}

}  // namespace lanewise
