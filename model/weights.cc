#include "model/weights.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/requantize.h"
#include "model/slots.h"
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

// The part of the model whose tensors are looked up: a layer, an expert of it,
// or what is outside of layers.
struct Scope {
  std::optional<size_t> layer, expert;
};

// `pattern` with the numbers of the layer and the expert in place of its "{}".
std::string ExpandName(absl::string_view pattern, const Scope& scope) {
  std::string name;
  for (const std::optional<size_t>& number : {scope.layer, scope.expert}) {
    const size_t at = pattern.find("{}");
    if (!number.has_value() || at == pattern.npos) break;
    absl::StrAppend(&name, pattern.substr(0, at), *number);
    pattern.remove_prefix(at + 2);
  }
  absl::StrAppend(&name, pattern);
  return name;
}

bool IsOfScope(const TensorRule& rule, absl::string_view pattern,
               const Scope& scope) {
  return !pattern.empty() &&
         absl::StrContains(pattern, "{}") == scope.layer.has_value() &&
         IsExpertSlot(rule.slot) == scope.expert.has_value();
}

// What the stacks of one checkpoint have in common while they are loaded.
struct LoadState {
  explicit LoadState(std::optional<DType> type) : requantizer(type) {}

  Requantizer requantizer;
  std::vector<std::string> notices;
  absl::flat_hash_set<const Tensor*> used;
  // Token embeddings, by their tensor.
  absl::flat_hash_map<const Tensor*, std::shared_ptr<const PackedMatrix>>
      embeddings;
};

// Loads one stack.
class Loader {
 public:
  struct Stack {
    absl::Span<const TensorRule> rules;
    ModelSpec* spec;
    Weights* weights;
  };

  Loader(const Checkpoint& checkpoint, const Family& family,
         const Context& context, const Stack& stack, LoadState* state)
      : checkpoint_(checkpoint),
        family_(family),
        context_(context),
        rules_(stack.rules),
        spec_(*stack.spec),
        weights_(*stack.weights),
        state_(*state),
        gguf_(checkpoint.kind() == CheckpointKind::kGguf) {}

  absl::Status Load(const LoadProgress& progress) {
    LANEWISE_RETURN_IF_ERROR(DropAbsentHead());
    SlotTable model_slots;
    LANEWISE_RETURN_IF_ERROR(Find({}, &model_slots));
    LANEWISE_RETURN_IF_ERROR(LoadModel(&model_slots));
    const size_t layers = spec_.layers.size();
    weights_.layers.resize(layers);
    for (size_t layer = 0; layer < layers; ++layer) {
      if (FirstOfGroup(spec_, layer) == layer) {
        SlotTable slots;
        LANEWISE_RETURN_IF_ERROR(Find({layer, std::nullopt}, &slots));
        LANEWISE_RETURN_IF_ERROR(LoadLayer(layer, &slots));
      }
      if (progress) progress(layer + 1, layers);
    }
    return absl::OkStatus();
  }

 private:
  const LayerSpec* LayerOf(const Scope& scope) const {
    return scope.layer.has_value() ? &spec_.layers[*scope.layer] : nullptr;
  }

  // Looks up the tensors of one scope. Rules of one slot are alternatives.
  absl::Status Find(const Scope& scope, SlotTable* slots) {
    std::vector<std::pair<const TensorRule*, const Tensor*>> unwanted;
    absl::flat_hash_set<const Tensor*> taken;
    for (const TensorRule& rule : rules_) {
      if (!Counts(rule, scope)) continue;
      const std::string name = Expand(Pattern(rule), scope);
      LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor, FindPrefixed(name));
      if (tensor == nullptr) continue;
      state_.used.insert(tensor);
      if (rule.slot == Slot::kIgnored) continue;
      if (!IsWanted(rule, scope)) {
        unwanted.emplace_back(&rule, tensor);
        continue;
      }
      const bool stacked = scope.expert.has_value() &&
                           name == Expand(Pattern(rule), {scope.layer, {}});
      LANEWISE_ASSIGN_OR_RETURN(
          TensorSource source,
          TensorSource::Create(*tensor, rule, gguf_, spec_,
                               {LayerOf(scope), scope.expert, stacked}));
      SlotSources& slot = At(slots, rule.slot);
      (rule.bias ? slot.bias : slot.weight).emplace(std::move(source));
      taken.insert(tensor);
    }
    for (const auto& [rule, tensor] : unwanted) {
      if (!taken.contains(tensor)) NoteUnwanted(*rule, *tensor);
    }
    return CheckComplete(scope, *slots);
  }

  bool Counts(const TensorRule& rule, const Scope& scope) const {
    return IsOfScope(rule, Pattern(rule), scope) &&
           (rule.tasks & TaskBit(spec_.head.task)) != 0;
  }

  // Published encoders of sentences often name the class that they were made
  // from, with a masked-token head, and hold nothing of it.
  absl::Status DropAbsentHead() {
    if (spec_.head.task != HeadTask::kMaskedToken) return absl::OkStatus();
    for (const TensorRule& rule : rules_) {
      if (!Counts(rule, {}) || rule.tasks == kAllTasks) continue;
      LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor,
                                FindPrefixed(Expand(Pattern(rule), {})));
      if (tensor != nullptr) return absl::OkStatus();
    }
    spec_.head = {};
    spec_.head.task = HeadTask::kNone;
    state_.notices.push_back(absl::StrCat(
        checkpoint_.path(),
        ": no tensor of the masked-token head that architectures of "
        "config.json names, so the model gives hidden states only"));
    return absl::OkStatus();
  }

  // A group's layers have its number.
  std::string Expand(absl::string_view pattern, Scope scope) const {
    if (scope.layer.has_value()) {
      scope.layer = spec_.layers[*scope.layer].group.value_or(*scope.layer);
    }
    return ExpandName(pattern, scope);
  }

  absl::string_view Pattern(const TensorRule& rule) const {
    return gguf_ ? rule.gguf : rule.hugging_face;
  }

  absl::Status CheckComplete(const Scope& scope, const SlotTable& slots) const {
    for (const TensorRule& rule : rules_) {
      if (!Counts(rule, scope)) continue;
      const SlotSources& slot = slots[static_cast<size_t>(rule.slot)];
      const bool found =
          rule.bias ? slot.bias.has_value() : slot.weight.has_value();
      if (found || !IsRequired(rule, scope)) continue;
      return absl::NotFoundError(
          absl::StrCat(checkpoint_.path(), ": tensor ", family_.prefixes[0],
                       Expand(Pattern(rule), scope), ": expected by family ",
                       family_.name, ", found none of that name"));
    }
    return absl::OkStatus();
  }

  // Null when there is none; UNIMPLEMENTED when its type is not supported (it
  // must not pass for an absent one).
  absl::StatusOr<const Tensor*> FindPrefixed(const std::string& name) const {
    std::vector<std::string> names = {name};
    if (!gguf_) {
      names.clear();
      for (const absl::string_view prefix : family_.prefixes) {
        names.push_back(absl::StrCat(prefix, name));
      }
    }
    for (const std::string& candidate : names) {
      absl::StatusOr<const Tensor*> tensor =
          checkpoint_.RequireTensor(candidate);
      if (!absl::IsNotFound(tensor.status())) return tensor;
    }
    return nullptr;
  }

  bool IsRequired(const TensorRule& rule, const Scope& scope) const {
    // The vocabulary's may be tied.
    if (IsHead(rule) && !spec_.head.outputs.has_value()) return false;
    // A pooler may be left out.
    if (spec_.head.task == HeadTask::kPooled && rule.slot == Slot::kHeadDense) {
      return false;
    }
    return rule.presence == Presence::kRequired &&
           HasSlot(spec_, LayerOf(scope), rule.slot, rule.bias);
  }

  // False for tensors that the configuration says the model does not use.
  bool IsWanted(const TensorRule& rule, const Scope& scope) const {
    const bool wanted = HasSlot(spec_, LayerOf(scope), rule.slot, rule.bias);
    if (gguf_) return wanted || rule.bias;  // such files do not tell of biases
    return wanted && !(IsHead(rule) && spec_.head.tied);
  }

  static bool IsHead(const TensorRule& rule) {
    return rule.slot == Slot::kHead && !rule.bias;
  }

  void NoteUnwanted(const TensorRule& rule, const Tensor& tensor) {
    state_.notices.push_back(absl::StrCat(
        tensor.file, ": ", tensor.name,
        ": ignored, since config.json says that the model has none",
        IsHead(rule) ? " of its own (tie_word_embeddings)" : ""));
  }

  static SlotSources& At(SlotTable* slots, Slot slot) {
    return (*slots)[static_cast<size_t>(slot)];
  }

  absl::Status LoadModel(SlotTable* slots) {
    Weights& weights = weights_;
    LANEWISE_RETURN_IF_ERROR(LoadTokenEmbedding(slots));
    const std::pair<Projection*, Slot> projections[] = {
        {&weights.embedding_in, Slot::kEmbeddingIn},
        {&weights.embedding_out, Slot::kEmbeddingOut},
        {&weights.patches, Slot::kPatches},
        {&weights.convolution, Slot::kConvolution},
        {&weights.head_dense, Slot::kHeadDense}};
    for (const auto& [projection, slot] : projections) {
      LANEWISE_ASSIGN_OR_RETURN(*projection, MakeProjection(slots, {slot}));
    }
    const std::pair<std::vector<float>*, Slot> vectors[] = {
        {&weights.position_embedding, Slot::kPositionEmbedding},
        {&weights.token_type_embedding, Slot::kTokenTypeEmbedding},
        {&weights.class_token, Slot::kClassToken},
        {&weights.relative_bias, Slot::kRelativeBias},
        {&weights.relative_embedding, Slot::kRelativeEmbedding}};
    for (const auto& [vector, slot] : vectors) {
      LANEWISE_ASSIGN_OR_RETURN(*vector, MakeVector(slots, slot));
    }
    const std::pair<NormWeights*, Slot> norms[] = {
        {&weights.relative_norm, Slot::kRelativeNorm},
        {&weights.convolution_norm, Slot::kConvolutionNorm},
        {&weights.embedding_norm, Slot::kEmbeddingNorm},
        {&weights.final_norm, Slot::kFinalNorm},
        {&weights.head_norm, Slot::kHeadNorm}};
    for (const auto& [norm, slot] : norms) {
      LANEWISE_ASSIGN_OR_RETURN(*norm, MakeNorm(slots, slot));
    }
    if (spec_.head.task == HeadTask::kPooled &&
        weights.head_dense.parts.empty()) {
      spec_.head = HeadSpec{};
      spec_.head.task = HeadTask::kNone;
    }
    if (spec_.head.transform.has_value()) {
      spec_.head.transform->bias = !weights.head_dense.bias.empty();
    }
    LANEWISE_RETURN_IF_ERROR(LoadRopeFactors(slots));
    return LoadHead(slots);
  }

  // Packed once where both stacks of an encoder-decoder name the same tensor.
  absl::Status LoadTokenEmbedding(SlotTable* slots) {
    SlotSources& sources = At(slots, Slot::kTokenEmbedding);
    if (!sources.weight.has_value()) return absl::OkStatus();
    auto& shared = state_.embeddings[&sources.weight->tensor()];
    if (shared == nullptr) {
      LANEWISE_ASSIGN_OR_RETURN(Projection embedding,
                                MakeProjection(slots, {Slot::kTokenEmbedding}));
      shared = std::make_shared<const PackedMatrix>(
          std::move(embedding.parts.front()));
    }
    weights_.token_embedding = shared;
    return absl::OkStatus();
  }

  absl::Status LoadRopeFactors(SlotTable* slots) {
    for (RopeSpec& rope : spec_.ropes) {
      const std::pair<std::vector<float>*, Slot> lists[] = {
          {&rope.frequency_factors, Slot::kRopeFactors},
          {&rope.short_factors, Slot::kRopeShortFactors},
          {&rope.long_factors, Slot::kRopeLongFactors}};
      for (const auto& [factors, slot] : lists) {
        if (!At(slots, slot).weight.has_value()) continue;
        LANEWISE_ASSIGN_OR_RETURN(*factors, MakeVector(slots, slot));
      }
      if (!rope.short_factors.empty() && !rope.long_factors.empty()) {
        rope.scaling = RopeSpec::Scaling::kLongrope;
      }
    }
    return absl::OkStatus();
  }

  absl::Status LoadHead(SlotTable* slots) {
    HeadSpec& spec = spec_.head;
    if (spec.task == HeadTask::kNone || spec.outputs == size_t{0}) {
      return absl::OkStatus();
    }
    SlotSources& head = At(slots, Slot::kHead);
    spec.bias = head.bias.has_value();
    if (head.weight.has_value()) {
      spec.tied = false;
      LANEWISE_ASSIGN_OR_RETURN(weights_.head,
                                MakeProjection(slots, {Slot::kHead}));
      return absl::OkStatus();
    }
    if (spec.outputs.has_value() || weights_.token_embedding == nullptr) {
      return absl::NotFoundError(absl::StrCat(
          checkpoint_.path(), ": output matrix: expected one, found none that ",
          "family ", family_.name, " has for this kind of head"));
    }
    if (!spec.tied && !gguf_) {
      state_.notices.push_back(
          absl::StrCat(checkpoint_.path(),
                       ": no output matrix, so the token embedding serves "
                       "as one although tie_word_embeddings is false"));
    }
    spec.tied = true;
    if (!spec.bias) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(weights_.head.bias,
                              head.bias->DecodeAll(checkpoint_));
    return absl::OkStatus();
  }

  absl::Status LoadLayer(size_t index, SlotTable* slots) {
    LayerWeights& layer = weights_.layers[index];
    LayerSpec& spec = spec_.layers[index];
    SublayerNormWeights& attention = layer.attention_norms;
    SublayerNormWeights& ffn = layer.ffn_norms;
    SublayerNormWeights& cross = layer.cross.norms;
    const std::pair<NormWeights*, Slot> norms[] = {
        {&cross.input, Slot::kCrossInputNorm},
        {&cross.output, Slot::kCrossOutputNorm},
        {&cross.after, Slot::kCrossAfterNorm},
        {&attention.input, Slot::kAttentionInputNorm},
        {&attention.output, Slot::kAttentionOutputNorm},
        {&attention.after, Slot::kAttentionAfterNorm},
        {&ffn.input, Slot::kFfnInputNorm},
        {&ffn.output, Slot::kFfnOutputNorm},
        {&ffn.after, Slot::kFfnAfterNorm}};
    for (const auto& [weights, slot] : norms) {
      LANEWISE_ASSIGN_OR_RETURN(*weights, MakeNorm(slots, slot));
    }
    const std::pair<std::vector<float>*, Slot> vectors[] = {
        {&layer.query_norm, Slot::kQueryNorm},
        {&layer.key_norm, Slot::kKeyNorm},
        {&layer.sinks, Slot::kSinks}};
    for (const auto& [vector, slot] : vectors) {
      LANEWISE_ASSIGN_OR_RETURN(*vector, MakeVector(slots, slot));
    }
    LANEWISE_ASSIGN_OR_RETURN(
        layer.qkv, MakeProjection(slots, {Slot::kQkv, Slot::kQuery, Slot::kKey,
                                          Slot::kValue}));
    LANEWISE_ASSIGN_OR_RETURN(layer.attention_output,
                              MakeProjection(slots, {Slot::kAttentionOutput}));
    LANEWISE_ASSIGN_OR_RETURN(layer.relative_query,
                              MakeProjection(slots, {Slot::kRelativeQuery}));
    LANEWISE_ASSIGN_OR_RETURN(layer.relative_key,
                              MakeProjection(slots, {Slot::kRelativeKey}));
    spec.attention.qkv_bias = !layer.qkv.bias.empty();
    spec.attention.output_bias = !layer.attention_output.bias.empty();
    LANEWISE_RETURN_IF_ERROR(LoadCross(index, slots));
    if (spec.ffn.moe.has_value()) return LoadMoe(index, slots);
    LANEWISE_ASSIGN_OR_RETURN(
        layer.ffn.in,
        MakeProjection(slots, {Slot::kGateUp, Slot::kGate, Slot::kUp}));
    LANEWISE_ASSIGN_OR_RETURN(layer.ffn.out,
                              MakeProjection(slots, {Slot::kDown}));
    spec.ffn.bias = !layer.ffn.out.bias.empty();
    return absl::OkStatus();
  }

  absl::Status LoadCross(size_t index, SlotTable* slots) {
    CrossAttentionWeights& cross = weights_.layers[index].cross;
    LANEWISE_ASSIGN_OR_RETURN(cross.query,
                              MakeProjection(slots, {Slot::kCrossQuery}));
    LANEWISE_ASSIGN_OR_RETURN(
        cross.key_value,
        MakeProjection(
            slots, {Slot::kCrossKeyValue, Slot::kCrossKey, Slot::kCrossValue}));
    LANEWISE_ASSIGN_OR_RETURN(cross.output,
                              MakeProjection(slots, {Slot::kCrossOutput}));
    auto& spec = spec_.layers[index].cross;
    if (!spec.has_value()) return absl::OkStatus();
    spec->attention.qkv_bias =
        !cross.query.bias.empty() || !cross.key_value.bias.empty();
    spec->attention.output_bias = !cross.output.bias.empty();
    return absl::OkStatus();
  }

  absl::Status LoadMoe(size_t index, SlotTable* slots) {
    MoeWeights& moe = weights_.layers[index].moe;
    MoeSpec& spec = *spec_.layers[index].ffn.moe;
    LANEWISE_ASSIGN_OR_RETURN(moe.router,
                              MakeProjection(slots, {Slot::kRouter}));
    spec.router_bias = !moe.router.bias.empty();
    LANEWISE_ASSIGN_OR_RETURN(
        moe.shared.in,
        MakeProjection(slots, {Slot::kSharedGate, Slot::kSharedUp}));
    LANEWISE_ASSIGN_OR_RETURN(moe.shared.out,
                              MakeProjection(slots, {Slot::kSharedDown}));
    LANEWISE_ASSIGN_OR_RETURN(moe.shared_weight,
                              MakeProjection(slots, {Slot::kSharedWeight}));
    moe.experts.resize(spec.experts);
    for (size_t expert = 0; expert < spec.experts; ++expert) {
      SlotTable own;
      LANEWISE_RETURN_IF_ERROR(Find({index, expert}, &own));
      LANEWISE_ASSIGN_OR_RETURN(
          moe.experts[expert].in,
          MakeProjection(
              &own, {Slot::kExpertGateUp, Slot::kExpertGate, Slot::kExpertUp}));
      LANEWISE_ASSIGN_OR_RETURN(moe.experts[expert].out,
                                MakeProjection(&own, {Slot::kExpertDown}));
      if (expert + 1 == spec.experts) ReleaseStacked(own);
    }
    return absl::OkStatus();
  }

  void ReleaseStacked(const SlotTable& slots) {
    for (const SlotSources& sources : slots) {
      if (sources.weight.has_value() && sources.weight->stacked()) {
        checkpoint_.Release(sources.weight->tensor());
      }
    }
  }

  absl::StatusOr<std::vector<float>> MakeVector(SlotTable* slots, Slot slot) {
    SlotSources& sources = At(slots, slot);
    if (!sources.weight.has_value()) return std::vector<float>();
    return sources.weight->DecodeAll(checkpoint_);
  }

  absl::StatusOr<NormWeights> MakeNorm(SlotTable* slots, Slot slot) {
    SlotSources& sources = At(slots, slot);
    NormWeights norm;
    LANEWISE_ASSIGN_OR_RETURN(norm.weight, MakeVector(slots, slot));
    if (sources.bias.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(norm.bias,
                                sources.bias->DecodeAll(checkpoint_));
    }
    return norm;
  }

  // The slots that were found, one after the other.
  absl::StatusOr<Projection> MakeProjection(
      SlotTable* slots, std::initializer_list<Slot> wanted) {
    std::vector<SlotSources*> found;
    for (const Slot slot : wanted) {
      std::optional<TensorSource>& weight = At(slots, slot).weight;
      if (!weight.has_value()) continue;
      LANEWISE_RETURN_IF_ERROR(
          state_.requantizer.Apply(slot, checkpoint_, context_, &*weight));
      found.push_back(&At(slots, slot));
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
      LANEWISE_RETURN_IF_ERROR(
          found[i]->weight->AppendRows(checkpoint_, &rows));
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
      found[i]->weight->Drop();
      if (found[i]->weight->stacked()) continue;
      checkpoint_.Release(found[i]->weight->tensor());
    }
    return packed;
  }

  absl::Status MakeBias(const std::vector<SlotSources*>& found,
                        Projection* projection) const {
    if (std::none_of(found.begin(), found.end(), [](const SlotSources* s) {
          return s->bias.has_value();
        })) {
      return absl::OkStatus();
    }
    for (SlotSources* sources : found) {
      std::vector<float> bias(sources->weight->rows(), 0.0f);
      if (sources->bias.has_value()) {
        LANEWISE_ASSIGN_OR_RETURN(bias, sources->bias->DecodeAll(checkpoint_));
      }
      projection->bias.insert(projection->bias.end(), bias.begin(), bias.end());
    }
    return absl::OkStatus();
  }

  const Checkpoint& checkpoint_;
  const Family& family_;
  const Context& context_;
  const absl::Span<const TensorRule> rules_;
  ModelSpec& spec_;
  Weights& weights_;
  LoadState& state_;
  const bool gguf_;
};

// Says once what the file holds beyond what the family knows.
void NoteUnused(const Checkpoint& checkpoint, const Family& family,
                LoadState* state) {
  std::vector<absl::string_view> names;
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (!state->used.contains(&tensor)) names.push_back(tensor.name);
  }
  if (names.empty()) return;
  const size_t shown = std::min<size_t>(names.size(), 3);
  state->notices.push_back(
      absl::StrCat(checkpoint.path(), ": ignored ", names.size(),
                   " tensors that family ", family.name, " does not use: ",
                   absl::StrJoin(names.begin(), names.begin() + shown, ", "),
                   shown < names.size() ? ", …" : ""));
}

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
  size_t sum = embedding_in.bytes() + embedding_out.bytes() + patches.bytes() +
               convolution.bytes() + head_dense.bytes() + head.bytes();
  if (token_embedding != nullptr) sum += token_embedding->bytes();
  for (const LayerWeights& layer : layers) {
    sum += layer.qkv.bytes() + layer.attention_output.bytes() +
           layer.relative_query.bytes() + layer.relative_key.bytes() +
           layer.cross.query.bytes() + layer.cross.key_value.bytes() +
           layer.cross.output.bytes() + layer.ffn.bytes() +
           layer.moe.router.bytes() + layer.moe.shared.bytes() +
           layer.moe.shared_weight.bytes();
    for (const FfnWeights& expert : layer.moe.experts) sum += expert.bytes();
  }
  return sum;
}

absl::StatusOr<LoadedWeights> LoadWeights(const Checkpoint& checkpoint,
                                          const Family& family, ModelSpec spec,
                                          const Context& context,
                                          const LoadOptions& options) {
  LoadedWeights loaded;
  loaded.spec = std::move(spec);
  LoadState state(options.weights);
  if (!loaded.spec.encoder.empty()) {
    loaded.encoder.emplace();
    LANEWISE_RETURN_IF_ERROR(
        Loader(checkpoint, family, context,
               {family.encoder_tensors, &loaded.spec.encoder.front(),
                &*loaded.encoder},
               &state)
            .Load({}));
  }
  LANEWISE_RETURN_IF_ERROR(
      Loader(checkpoint, family, context,
             {family.TensorsOf(loaded.spec), &loaded.spec, &loaded.weights},
             &state)
          .Load(options.progress));
  NoteUnused(checkpoint, family, &state);
  loaded.notices = std::move(state.notices);
  for (std::string& line : state.requantizer.Notices()) {
    loaded.notices.push_back(std::move(line));
  }
  return loaded;
}

}  // namespace lanewise
