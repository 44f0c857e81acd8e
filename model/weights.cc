#include "model/weights.h"

#include <algorithm>
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
#include "model/slot_finder.h"
#include "model/slots.h"
#include "model/tensor_source.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// What the stacks of one checkpoint have in common while they are loaded.
struct LoadState {
  explicit LoadState(std::optional<DType> type) : requantizer(type) {}

  Requantizer requantizer;
  SlotFinder::Notes notes;
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
        finder_(checkpoint, family, stack.rules, stack.spec, &state->notes),
        spec_(*stack.spec),
        weights_(*stack.weights),
        state_(*state),
        gguf_(checkpoint.kind() == CheckpointKind::kGguf) {}

  absl::Status Load(const LoadProgress& progress) {
    LANEWISE_RETURN_IF_ERROR(finder_.DropAbsentHead());
    SlotTable model_slots;
    LANEWISE_RETURN_IF_ERROR(finder_.Find({}, &model_slots));
    LANEWISE_RETURN_IF_ERROR(LoadModel(&model_slots));
    const size_t layers = spec_.layers.size();
    weights_.layers.resize(layers);
    for (size_t layer = 0; layer < layers; ++layer) {
      if (FirstOfGroup(spec_, layer) == layer) {
        SlotTable slots;
        LANEWISE_RETURN_IF_ERROR(finder_.Find({layer, std::nullopt}, &slots));
        LANEWISE_RETURN_IF_ERROR(LoadLayer(layer, &slots));
      }
      if (progress) progress(layer + 1, layers);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status LoadModel(SlotTable* slots) {
    Weights& weights = weights_;
    LANEWISE_RETURN_IF_ERROR(LoadTokenEmbedding(slots));
    const std::pair<Projection*, Slot> projections[] = {
        {&weights.embedding_in, Slot::kEmbeddingIn},
        {&weights.embedding_out, Slot::kEmbeddingOut},
        {&weights.patches, Slot::kPatches},
        {&weights.convolution, Slot::kConvolution},
        {&weights.audio_conv1, Slot::kAudioConv1},
        {&weights.audio_conv2, Slot::kAudioConv2},
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
    SlotSources& sources = (*slots)[Slot::kTokenEmbedding];
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
        if (!(*slots)[slot].weight.has_value()) continue;
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
    SlotSources& head = (*slots)[Slot::kHead];
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
      state_.notes.notices.push_back(
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
      LANEWISE_RETURN_IF_ERROR(finder_.Find({index, expert}, &own));
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
    for (const SlotSources& sources : slots.sources) {
      if (sources.weight.has_value() && sources.weight->stacked()) {
        checkpoint_.Release(sources.weight->tensor());
      }
    }
  }

  absl::StatusOr<std::vector<float>> MakeVector(SlotTable* slots, Slot slot) {
    SlotSources& sources = (*slots)[slot];
    if (!sources.weight.has_value()) return std::vector<float>();
    return sources.weight->DecodeAll(checkpoint_);
  }

  absl::StatusOr<NormWeights> MakeNorm(SlotTable* slots, Slot slot) {
    SlotSources& sources = (*slots)[slot];
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
      std::optional<TensorSource>& weight = (*slots)[slot].weight;
      if (!weight.has_value()) continue;
      LANEWISE_RETURN_IF_ERROR(
          state_.requantizer.Apply(slot, checkpoint_, context_, &*weight));
      found.push_back(&(*slots)[slot]);
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
  SlotFinder finder_;
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
    if (!state->notes.used.contains(&tensor)) names.push_back(tensor.name);
  }
  if (names.empty()) return;
  const size_t shown = std::min<size_t>(names.size(), 3);
  state->notes.notices.push_back(
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
               audio_conv1.bytes() + audio_conv2.bytes() + convolution.bytes() +
               head_dense.bytes() + head.bytes();
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
  loaded.notices = std::move(state.notes.notices);
  for (std::string& line : state.requantizer.Notices()) {
    loaded.notices.push_back(std::move(line));
  }
  return loaded;
}

}  // namespace lanewise
