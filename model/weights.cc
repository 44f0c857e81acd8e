#include "model/weights.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "model/tensor_source.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// The tensors that were found for one slot.
struct SlotSources {
  std::optional<TensorSource> weight;
  std::optional<TensorSource> bias;
};
using SlotTable = std::array<SlotSources, static_cast<size_t>(Slot::kCount)>;

std::string WithLayer(absl::string_view pattern, size_t layer) {
  return absl::StrReplaceAll(pattern, {{"{}", absl::StrCat(layer)}});
}

bool IsLayerRule(const TensorRule& rule, CheckpointKind kind) {
  const absl::string_view name =
      kind == CheckpointKind::kGguf ? rule.gguf : rule.hugging_face;
  return absl::StrContains(name, "{}");
}

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, const Family& family,
         const Context& context, LoadedWeights* out)
      : checkpoint_(checkpoint),
        family_(family),
        context_(context),
        out_(*out),
        gguf_(checkpoint.kind() == CheckpointKind::kGguf) {}

  absl::Status Load(const LoadProgress& progress) {
    SlotTable model_slots;
    LANEWISE_RETURN_IF_ERROR(Find(std::nullopt, &model_slots));
    LANEWISE_RETURN_IF_ERROR(LoadModel(&model_slots));
    const size_t layers = out_.spec.layers.size();
    out_.weights.layers.resize(layers);
    for (size_t layer = 0; layer < layers; ++layer) {
      SlotTable slots;
      LANEWISE_RETURN_IF_ERROR(Find(layer, &slots));
      LANEWISE_RETURN_IF_ERROR(LoadLayer(layer, &slots));
      if (progress) progress(layer + 1, layers);
    }
    NoteUnused();
    return absl::OkStatus();
  }

 private:
  // Looks up the tensors of one layer, or those outside of layers.
  absl::Status Find(std::optional<size_t> layer, SlotTable* slots) {
    for (const TensorRule& rule : family_.tensors) {
      if (IsLayerRule(rule, checkpoint_.kind()) != layer.has_value()) continue;
      const absl::string_view pattern = gguf_ ? rule.gguf : rule.hugging_face;
      if (pattern.empty()) continue;
      const std::string name =
          layer.has_value() ? WithLayer(pattern, *layer) : std::string(pattern);
      const Tensor* tensor = FindPrefixed(name);
      if (tensor == nullptr) {
        if (!IsRequired(rule, layer)) continue;
        return absl::NotFoundError(
            absl::StrCat(checkpoint_.path(), ": tensor ", family_.prefixes[0],
                         name, ": expected by family ", family_.name,
                         ", found none of that name"));
      }
      used_.insert(tensor);
      if (rule.slot == Slot::kIgnored) continue;
      if (!IsWanted(rule, layer, *tensor)) continue;
      LANEWISE_ASSIGN_OR_RETURN(
          TensorSource source,
          TensorSource::Create(*tensor, rule, gguf_, out_.spec, layer));
      SlotSources& slot = (*slots)[static_cast<size_t>(rule.slot)];
      (rule.bias ? slot.bias : slot.weight).emplace(std::move(source));
    }
    return absl::OkStatus();
  }

  const Tensor* FindPrefixed(const std::string& name) const {
    if (gguf_) return checkpoint_.FindTensor(name);
    for (const absl::string_view prefix : family_.prefixes) {
      const Tensor* tensor = checkpoint_.FindTensor(absl::StrCat(prefix, name));
      if (tensor != nullptr) return tensor;
    }
    return nullptr;
  }

  // Whether the spec says that the layer has this bias.
  bool SpecHasBias(const TensorRule& rule, size_t layer) const {
    const LayerSpec& spec = out_.spec.layers[layer];
    switch (rule.slot) {
      case Slot::kQuery:
      case Slot::kKey:
      case Slot::kValue:
      case Slot::kQkv:
        return spec.attention.qkv_bias;
      case Slot::kAttentionOutput:
        return spec.attention.output_bias;
      case Slot::kGate:
      case Slot::kUp:
      case Slot::kDown:
        return spec.ffn.bias;
      default:
        return rule.presence == Presence::kRequired;
    }
  }

  bool IsRequired(const TensorRule& rule, std::optional<size_t> layer) const {
    if (rule.slot == Slot::kHead && !rule.bias) return false;  // may be tied
    if (rule.bias && layer.has_value()) return SpecHasBias(rule, *layer);
    return rule.presence == Presence::kRequired;
  }

  // False for tensors that the configuration says the model does not use.
  bool IsWanted(const TensorRule& rule, std::optional<size_t> layer,
                const Tensor& tensor) {
    if (gguf_) return true;  // a GGUF file has no such flags
    const bool unused =
        rule.slot == Slot::kHead
            ? out_.spec.head.tied
            : rule.bias && layer.has_value() && !SpecHasBias(rule, *layer);
    if (unused) {
      out_.notices.push_back(absl::StrCat(
          tensor.file, ": ", tensor.name,
          ": ignored, since config.json says that the model has none",
          rule.slot == Slot::kHead ? " of its own (tie_word_embeddings)" : ""));
    }
    return !unused;
  }

  static SlotSources& At(SlotTable* slots, Slot slot) {
    return (*slots)[static_cast<size_t>(slot)];
  }

  absl::Status LoadModel(SlotTable* slots) {
    Weights& weights = out_.weights;
    ModelSpec& spec = out_.spec;
    LANEWISE_ASSIGN_OR_RETURN(Projection embedding,
                              MakeProjection(slots, {Slot::kTokenEmbedding}));
    weights.token_embedding = std::move(embedding.parts.front());
    SlotSources& positions = At(slots, Slot::kPositionEmbedding);
    if (positions.weight.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(weights.position_embedding,
                                positions.weight->DecodeAll());
    }
    SlotSources& factors = At(slots, Slot::kRopeFactors);
    if (factors.weight.has_value()) {
      for (RopeSpec& rope : spec.ropes) {
        LANEWISE_ASSIGN_OR_RETURN(rope.frequency_factors,
                                  factors.weight->DecodeAll());
      }
    }
    LANEWISE_ASSIGN_OR_RETURN(weights.embedding_norm,
                              MakeNorm(slots, Slot::kEmbeddingNorm));
    LANEWISE_ASSIGN_OR_RETURN(weights.final_norm,
                              MakeNorm(slots, Slot::kFinalNorm));
    if (!At(slots, Slot::kHead).weight.has_value()) {
      if (!spec.head.tied && !gguf_) {
        out_.notices.push_back(
            absl::StrCat(checkpoint_.path(),
                         ": no output matrix, so the token embedding serves "
                         "as one although tie_word_embeddings is false"));
      }
      spec.head.tied = true;
      return absl::OkStatus();
    }
    spec.head.tied = false;
    LANEWISE_ASSIGN_OR_RETURN(weights.head,
                              MakeProjection(slots, {Slot::kHead}));
    return absl::OkStatus();
  }

  absl::Status LoadLayer(size_t index, SlotTable* slots) {
    LayerWeights& layer = out_.weights.layers[index];
    LayerSpec& spec = out_.spec.layers[index];
    SublayerNormWeights& attention = layer.attention_norms;
    SublayerNormWeights& ffn = layer.ffn_norms;
    const std::pair<NormWeights*, Slot> norms[] = {
        {&attention.input, Slot::kAttentionInputNorm},
        {&attention.output, Slot::kAttentionOutputNorm},
        {&attention.after, Slot::kAttentionAfterNorm},
        {&ffn.input, Slot::kFfnInputNorm},
        {&ffn.output, Slot::kFfnOutputNorm},
        {&ffn.after, Slot::kFfnAfterNorm}};
    for (const auto& [weights, slot] : norms) {
      LANEWISE_ASSIGN_OR_RETURN(*weights, MakeNorm(slots, slot));
    }
    LANEWISE_ASSIGN_OR_RETURN(
        layer.qkv, MakeProjection(slots, {Slot::kQkv, Slot::kQuery, Slot::kKey,
                                          Slot::kValue}));
    LANEWISE_ASSIGN_OR_RETURN(layer.attention_output,
                              MakeProjection(slots, {Slot::kAttentionOutput}));
    LANEWISE_ASSIGN_OR_RETURN(layer.ffn_in,
                              MakeProjection(slots, {Slot::kGate, Slot::kUp}));
    LANEWISE_ASSIGN_OR_RETURN(layer.ffn_out,
                              MakeProjection(slots, {Slot::kDown}));
    spec.attention.qkv_bias = !layer.qkv.bias.empty();
    spec.attention.output_bias = !layer.attention_output.bias.empty();
    spec.ffn.bias = !layer.ffn_out.bias.empty();
    return absl::OkStatus();
  }

  absl::StatusOr<NormWeights> MakeNorm(SlotTable* slots, Slot slot) {
    SlotSources& sources = At(slots, slot);
    NormWeights norm;
    if (sources.weight.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(norm.weight, sources.weight->DecodeAll());
    }
    if (sources.bias.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(norm.bias, sources.bias->DecodeAll());
    }
    return norm;
  }

  // The slots that were found, one after the other.
  absl::StatusOr<Projection> MakeProjection(
      SlotTable* slots, std::initializer_list<Slot> wanted) {
    std::vector<SlotSources*> found;
    for (const Slot slot : wanted) {
      if (At(slots, slot).weight.has_value()) found.push_back(&At(slots, slot));
    }
    Projection projection;
    for (size_t begin = 0; begin < found.size();) {
      size_t end = begin + 1;
      while (end < found.size() &&
             found[end]->weight->type() == found[begin]->weight->type()) {
        ++end;
      }
      LANEWISE_ASSIGN_OR_RETURN(PackedMatrix matrix,
                                PackSources(found, begin, end));
      projection.parts.push_back(std::move(matrix));
      begin = end;
    }
    LANEWISE_RETURN_IF_ERROR(MakeBias(found, &projection));
    return projection;
  }

  absl::StatusOr<PackedMatrix> PackSources(
      const std::vector<SlotSources*>& found, size_t begin, size_t end) {
    std::vector<const uint8_t*> rows;
    for (size_t i = begin; i < end; ++i) {
      LANEWISE_RETURN_IF_ERROR(found[i]->weight->AppendRows(&rows));
    }
    const TensorSource& first = *found[begin]->weight;
    absl::StatusOr<PackedMatrix> packed =
        Pack(context_, first.type(), first.cols(), rows);
    if (!packed.ok()) {
      return absl::Status(
          packed.status().code(),
          absl::StrCat(first.tensor().file, ": ", first.tensor().name, ": ",
                       packed.status().message()));
    }
    for (size_t i = begin; i < end; ++i) {
      checkpoint_.Release(found[i]->weight->tensor());
    }
    return packed;
  }

  static absl::Status MakeBias(const std::vector<SlotSources*>& found,
                               Projection* projection) {
    if (std::none_of(found.begin(), found.end(), [](const SlotSources* s) {
          return s->bias.has_value();
        })) {
      return absl::OkStatus();
    }
    for (SlotSources* sources : found) {
      std::vector<float> bias(sources->weight->rows(), 0.0f);
      if (sources->bias.has_value()) {
        LANEWISE_ASSIGN_OR_RETURN(bias, sources->bias->DecodeAll());
      }
      projection->bias.insert(projection->bias.end(), bias.begin(), bias.end());
    }
    return absl::OkStatus();
  }

  // Says once what the file holds beyond what the family knows.
  void NoteUnused() {
    std::vector<absl::string_view> names;
    for (const Tensor& tensor : checkpoint_.tensors()) {
      if (!used_.contains(&tensor)) names.push_back(tensor.name);
    }
    if (names.empty()) return;
    const size_t shown = std::min<size_t>(names.size(), 3);
    out_.notices.push_back(
        absl::StrCat(checkpoint_.path(), ": ignored ", names.size(),
                     " tensors that family ", family_.name, " does not use: ",
                     absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                     shown < names.size() ? ", …" : ""));
  }

  const Checkpoint& checkpoint_;
  const Family& family_;
  const Context& context_;
  LoadedWeights& out_;
  const bool gguf_;
  absl::flat_hash_set<const Tensor*> used_;
};

}  // namespace

size_t Projection::rows() const {
  size_t sum = 0;
  for (const PackedMatrix& part : parts) sum += part.rows();
  return sum;
}

size_t Projection::bytes() const {
  size_t sum = 0;
  for (const PackedMatrix& part : parts) sum += part.bytes();
  return sum;
}

size_t Weights::bytes() const {
  size_t sum = token_embedding.bytes() + head.bytes();
  for (const LayerWeights& layer : layers) {
    sum += layer.qkv.bytes() + layer.attention_output.bytes() +
           layer.ffn_in.bytes() + layer.ffn_out.bytes();
  }
  return sum;
}

absl::StatusOr<LoadedWeights> LoadWeights(const Checkpoint& checkpoint,
                                          const Family& family, ModelSpec spec,
                                          const Context& context,
                                          const LoadProgress& progress) {
  LoadedWeights loaded;
  loaded.spec = std::move(spec);
  LANEWISE_RETURN_IF_ERROR(
      Loader(checkpoint, family, context, &loaded).Load(progress));
  return loaded;
}

}  // namespace lanewise
