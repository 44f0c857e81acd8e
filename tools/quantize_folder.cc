// A Hugging Face folder as the tensors of a GGUF file: names and layouts by
// the family's table.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "model/format/json.h"
#include "model/slot_finder.h"
#include "model/slots.h"
#include "model/tensor_source.h"
#include "simd/quantize.h"
#include "simd/status_macros.h"
#include "tools/quantize_export.h"
#include "tools/quantize_source.h"

namespace lanewise {
namespace {

// Elements that lie in rows anywhere in memory, of one or several tensors of
// the same type and row length.
class RowsReader : public TensorReader {
 public:
  RowsReader(DType type, uint64_t cols)
      : bytes_(Traits(type).block_bytes), cols_(cols) {}

  void Add(TensorSource source, const std::vector<const uint8_t*>& rows) {
    sources_.push_back(std::move(source));
    rows_.insert(rows_.end(), rows.begin(), rows.end());
  }

  // The type of a folder's weights has blocks of one element.
  absl::Status Read(uint64_t begin, uint64_t count,
                    uint8_t* out) const override {
    while (count > 0) {
      const uint64_t col = begin % cols_;
      const uint64_t part = std::min(count, cols_ - col);
      std::memcpy(out, rows_[begin / cols_] + col * bytes_, part * bytes_);
      out += part * bytes_;
      begin += part;
      count -= part;
    }
    return absl::OkStatus();
  }

 private:
  const uint64_t bytes_, cols_;
  std::vector<TensorSource> sources_;  // own what rows_ point to
  std::vector<const uint8_t*> rows_;
};

// Values made here.
class ValuesReader : public TensorReader {
 public:
  explicit ValuesReader(std::vector<float> values)
      : values_(std::move(values)) {}

  absl::Status Read(uint64_t begin, uint64_t count,
                    uint8_t* out) const override {
    Encode(DType::kF32, values_.data() + begin, count, out);
    return absl::OkStatus();
  }

 private:
  const std::vector<float> values_;
};

// A stack of the model, in the folder and as the file will be read.
struct Stack {
  const ModelSpec* spec;
  const ModelSpec* exported;
  absl::Span<const TensorRule> rules, exported_rules;
};

class FolderSource : public QuantizeSource {
 public:
  explicit FolderSource(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint) {}

  absl::Status Init(const SourceOptions& options) {
    LANEWISE_ASSIGN_OR_RETURN(family_, FindFamily(checkpoint_));
    LANEWISE_ASSIGN_OR_RETURN(spec_, ReadSpec(checkpoint_, *family_));
    LANEWISE_ASSIGN_OR_RETURN(exported_,
                              ExportModel(checkpoint_.path(), *family_, spec_));
    if (options.tokenizer) {
      LANEWISE_RETURN_IF_ERROR(ExportTokenizer(checkpoint_, spec_.vocab_size,
                                               &exported_.metadata, &notices_));
    } else {
      ExportNoTokenizer(&exported_.metadata);
    }
    LANEWISE_RETURN_IF_ERROR(AddStartToken());
    AddRopeFactors();
    ListStacks();
    for (const Stack& stack : stacks_) {
      stack_ = &stack;
      LANEWISE_RETURN_IF_ERROR(AddTensors({}));
      for (size_t layer = 0; layer < stack.spec->layers.size(); ++layer) {
        LANEWISE_RETURN_IF_ERROR(AddTensors({layer, {}}));
      }
    }
    return CheckRest();
  }

  const Metadata& metadata() const override { return exported_.metadata; }
  absl::Span<const SourceTensor> tensors() const override { return tensors_; }
  absl::Span<const std::string> notices() const override { return notices_; }

  absl::StatusOr<std::unique_ptr<TensorReader>> Open(
      size_t index) const override {
    const Item& item = items_[index];
    if (item.parts.empty()) return std::make_unique<ValuesReader>(item.values);
    if (AddsOne(*item.parts.front().rule)) {
      LANEWISE_ASSIGN_OR_RETURN(TensorSource source,
                                SourceOf(item.parts.front()));
      LANEWISE_ASSIGN_OR_RETURN(std::vector<float> values,
                                source.DecodeAll(checkpoint_));
      return std::make_unique<ValuesReader>(std::move(values));
    }
    const SourceTensor& tensor = tensors_[index];
    const bool vector = item.rule->cols == Dim::kOne;
    auto reader =
        std::make_unique<RowsReader>(tensor.type, vector ? 1 : tensor.row());
    for (const Part& part : item.parts) {
      LANEWISE_ASSIGN_OR_RETURN(TensorSource source, SourceOf(part));
      std::vector<const uint8_t*> rows;
      LANEWISE_RETURN_IF_ERROR(source.AppendRows(checkpoint_, &rows));
      LANEWISE_ASSIGN_OR_RETURN(rows, InGgufOrder(item, part, rows));
      reader->Add(std::move(source), rows);
    }
    return reader;
  }

  void Release(size_t index) const override {
    for (const Part& part : items_[index].parts) {
      checkpoint_.Release(*part.tensor);
    }
  }

 private:
  struct Part {
    const Tensor* tensor;
    const Stack* stack;
    const TensorRule* rule;  // of the folder
    SlotScope scope;
    bool stacked;
  };
  // A tensor of the file: values, or one part, or one for each expert.
  struct Item {
    const TensorRule* rule = nullptr;  // of the file
    std::vector<Part> parts;
    std::vector<float> values;
  };

  static bool AddsOne(const TensorRule& rule) {
    return rule.layout == TensorLayout::kAddOne;
  }

  static const LayerSpec* LayerOf(const ModelSpec& spec,
                                  const SlotScope& scope) {
    return scope.layer.has_value() ? &spec.layers[*scope.layer] : nullptr;
  }

  void ListStacks() {
    if (!spec_.encoder.empty()) {
      stacks_.push_back(
          {&spec_.encoder.front(), &exported_.spec.encoder.front(),
           family_->encoder_tensors, exported_.family->encoder_tensors});
    }
    stacks_.push_back({&spec_, &exported_.spec, family_->TensorsOf(spec_),
                       exported_.family->TensorsOf(exported_.spec)});
  }

  // Of an encoder-decoder: what its decoder begins with.
  absl::Status AddStartToken() {
    if (spec_.encoder.empty()) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                              checkpoint_.ReadJson("config.json"));
    constexpr absl::string_view kKey = "decoder_start_token_id";
    const nlohmann::json* id = FindJson(config, kKey);
    if (id == nullptr || id->is_null()) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(
        const uint64_t value,
        ToUint(*id, absl::StrCat(checkpoint_.path(), "/config.json"), kKey,
               spec_.vocab_size - 1));
    LANEWISE_ASSIGN_OR_RETURN(
        const absl::string_view architecture,
        exported_.metadata.GetString("general.architecture"));
    exported_.metadata.Insert(absl::StrCat(architecture, ".", kKey),
                              static_cast<int64_t>(value),
                              MetadataType::kUint32);
    return absl::OkStatus();
  }

  bool IsWanted(const TensorRule& rule, const SlotScope& scope) const {
    const ModelSpec& spec = *stack_->spec;
    if (rule.slot == Slot::kHead && !rule.bias && spec.head.tied) return false;
    return HasSlot(spec, LayerOf(spec, scope), rule.slot, rule.bias);
  }

  absl::StatusOr<TensorSource> SourceOf(const Part& part) const {
    const ModelSpec& spec = *part.stack->spec;
    return TensorSource::Create(
        *part.tensor, *part.rule, /*gguf=*/false, spec,
        {LayerOf(spec, part.scope), part.scope.expert, part.stacked});
  }

  // What the architecture's table lists for a layer, or outside of layers.
  absl::Status AddTensors(const SlotScope& scope) {
    for (const TensorRule& rule : stack_->exported_rules) {
      if (rule.gguf.empty() || rule.slot == Slot::kIgnored) continue;
      const bool in_layer = absl::StrContains(rule.gguf, "{}");
      if (in_layer != scope.layer.has_value()) continue;
      if (!IsWanted(rule, scope)) continue;
      LANEWISE_RETURN_IF_ERROR(AddTensor(rule, scope));
    }
    return absl::OkStatus();
  }

  absl::Status AddTensor(const TensorRule& rule, const SlotScope& scope) {
    Item item;
    item.rule = &rule;
    LANEWISE_ASSIGN_OR_RETURN(item.parts, FindParts(rule, scope));
    if (item.parts.empty()) return CheckAbsent(rule, scope);
    // Two stacks may share a tensor.
    if (!names_.insert(ExpandTensorName(rule.gguf, scope)).second) {
      return absl::OkStatus();
    }
    const Part& first = item.parts.front();
    LANEWISE_ASSIGN_OR_RETURN(const TensorSource source, SourceOf(first));
    SourceTensor out;
    out.name = ExpandTensorName(rule.gguf, scope);
    out.original = first.tensor->name;
    out.type = AddsOne(*first.rule) ? DType::kF32 : source.type();
    if (IsExpertSlot(rule.slot)) out.shape.push_back(item.parts.size());
    out.shape.push_back(source.rows());
    if (rule.cols != Dim::kOne) out.shape.push_back(source.cols());
    for (const Part& part : item.parts) {
      if (part.tensor->type == first.tensor->type) continue;
      return absl::UnimplementedError(
          absl::StrCat(part.tensor->file, ": tensor ", part.tensor->name,
                       ": expected the type of ", first.tensor->name,
                       ", with which it forms one tensor in GGUF, found ",
                       Traits(part.tensor->type).name));
    }
    tensors_.push_back(std::move(out));
    items_.push_back(std::move(item));
    return absl::OkStatus();
  }

  // One part, or one for each expert; none when the folder lacks one.
  absl::StatusOr<std::vector<Part>> FindParts(const TensorRule& rule,
                                              const SlotScope& scope) {
    const bool experts = IsExpertSlot(rule.slot);
    const size_t count = experts ? SizeOf(Dim::kExperts, *stack_->spec,
                                          LayerOf(*stack_->spec, scope))
                                 : 1;
    std::vector<Part> parts;
    for (size_t i = 0; i < count; ++i) {
      SlotScope place = scope;
      if (experts) place.expert = i;
      LANEWISE_ASSIGN_OR_RETURN(const std::optional<Part> part,
                                FindPart(rule, place));
      if (!part.has_value()) return std::vector<Part>();
      used_.insert(part->tensor);
      parts.push_back(*part);
    }
    return parts;
  }

  // The folder's tensor for one of the file: that of the same line of the
  // table, or where the line has none, of the same slot. Lines without a name
  // in GGUF are other names of a slot in folders.
  absl::StatusOr<std::optional<Part>> FindPart(const TensorRule& wanted,
                                               const SlotScope& scope) const {
    const bool same_line =
        exported_.family == family_ && !wanted.hugging_face.empty();
    for (const TensorRule& rule : stack_->rules) {
      if (rule.hugging_face.empty() || rule.slot != wanted.slot ||
          rule.bias != wanted.bias ||
          (same_line && &rule != &wanted && !rule.gguf.empty())) {
        continue;
      }
      const std::string name = ExpandTensorName(rule.hugging_face, scope);
      LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor,
                                FindPrefixed(checkpoint_, *family_, name));
      if (tensor == nullptr) continue;
      const bool stacked =
          scope.expert.has_value() &&
          name == ExpandTensorName(rule.hugging_face, {scope.layer, {}});
      return std::optional<Part>({tensor, stack_, &rule, scope, stacked});
    }
    return std::optional<Part>();
  }

  // Whether the file may do without a tensor: it is optional, or another one
  // fills its slot.
  absl::Status CheckAbsent(const TensorRule& wanted,
                           const SlotScope& scope) const {
    const bool head = wanted.slot == Slot::kHead && !wanted.bias;
    if (head || wanted.presence == Presence::kOptional) return absl::OkStatus();
    for (const TensorRule& rule : stack_->exported_rules) {
      if (rule.slot != wanted.slot || rule.bias != wanted.bias ||
          rule.gguf.empty() || &rule == &wanted) {
        continue;
      }
      LANEWISE_ASSIGN_OR_RETURN(const std::optional<Part> part,
                                FindPart(rule, scope));
      if (part.has_value()) return absl::OkStatus();
    }
    return absl::NotFoundError(absl::StrCat(
        checkpoint_.path(), ": expected a tensor for GGUF's ",
        ExpandTensorName(wanted.gguf, scope), ", found none that family ",
        family_->name, " has for it"));
  }

  // Puts each row of the slot where the loader looks for it in a GGUF file: it
  // is asked for that place, in a tensor of the same bytes.
  absl::StatusOr<std::vector<const uint8_t*>> InGgufOrder(
      const Item& item, const Part& part,
      const std::vector<const uint8_t*>& rows) const {
    if (item.rule->gguf_layout == TensorLayout::kPlain || rows.empty()) {
      return rows;
    }
    if (item.rule->gguf_layout != TensorLayout::kRotaryPairs) {
      return absl::UnimplementedError(absl::StrCat(
          part.tensor->name, ": GGUF's layout of it cannot be written"));
    }
    Tensor stored = *part.tensor;
    stored.shape = {rows.size()};
    if (item.rule->cols != Dim::kOne) {
      stored.shape.push_back(
          stored.elements() == 0 ? 0 : part.tensor->elements() / rows.size());
    }
    LANEWISE_ASSIGN_OR_RETURN(
        TensorSource place,
        TensorSource::Create(
            stored, *item.rule, /*gguf=*/true, *part.stack->exported,
            {LayerOf(*part.stack->exported, part.scope), {}, false}));
    std::vector<const uint8_t*> places;
    LANEWISE_RETURN_IF_ERROR(place.AppendRows(checkpoint_, &places));
    const uint8_t* base = *std::min_element(places.begin(), places.end());
    const size_t stride = BytesOf(stored.type, place.cols());
    std::vector<const uint8_t*> ordered(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ordered[static_cast<size_t>(places[i] - base) / stride] = rows[i];
    }
    return ordered;
  }

  // RoPE scalings that GGUF keeps as tensors.
  void AddRopeFactors() {
    if (spec_.ropes.empty()) return;
    const RopeSpec& rope = spec_.ropes.front();
    if (rope.scaling == RopeSpec::Scaling::kLlama3) {
      AddValues("rope_freqs.weight", RopeFactors(rope));
    } else if (rope.scaling == RopeSpec::Scaling::kLongrope) {
      AddValues("rope_factors_short.weight", rope.short_factors);
      AddValues("rope_factors_long.weight", rope.long_factors);
    }
  }

  void AddValues(const std::string& name, std::vector<float> values) {
    tensors_.push_back({name, name, DType::kF32, {values.size()}});
    items_.emplace_back();
    items_.back().values = std::move(values);
  }

  // Every tensor that a stack needs has gone into the file; says what has not.
  absl::Status CheckStack(absl::flat_hash_set<const Tensor*>* known) {
    for (size_t i = 0; i <= stack_->spec->layers.size(); ++i) {
      SlotScope scope;
      if (i > 0) scope.layer = i - 1;
      for (const TensorRule& rule : stack_->rules) {
        const bool in_layer = absl::StrContains(rule.hugging_face, "{}");
        if (rule.hugging_face.empty() || in_layer != scope.layer.has_value()) {
          continue;
        }
        SlotScope place = scope;
        if (IsExpertSlot(rule.slot)) place.expert = 0;
        LANEWISE_ASSIGN_OR_RETURN(
            const Tensor* tensor,
            FindPrefixed(checkpoint_, *family_,
                         ExpandTensorName(rule.hugging_face, place)));
        if (tensor == nullptr || used_.contains(tensor)) continue;
        const bool wanted =
            rule.slot != Slot::kIgnored && IsWanted(rule, scope);
        if (wanted && rule.slot == Slot::kHeadDense &&
            spec_.head.task == HeadTask::kPooled) {
          known->insert(tensor);
          notices_.push_back(absl::StrCat(
              tensor->name,
              ": left out, since GGUF's files of encoders have no pooler"));
          continue;
        }
        if (wanted) {
          return absl::UnimplementedError(
              absl::StrCat(tensor->file, ": tensor ", tensor->name,
                           ": GGUF has no place for it in architecture ",
                           exported_.family->gguf_architectures.front()));
        }
        if (known->insert(tensor).second && rule.slot != Slot::kIgnored) {
          notices_.push_back(
              absl::StrCat(tensor->name,
                           ": left out, since config.json says that the "
                           "model has none of its own"));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckRest() {
    absl::flat_hash_set<const Tensor*> known;
    for (const Stack& stack : stacks_) {
      stack_ = &stack;
      LANEWISE_RETURN_IF_ERROR(CheckStack(&known));
    }
    size_t unknown = 0;
    const Tensor* first = nullptr;
    for (const Tensor& tensor : checkpoint_.tensors()) {
      if (used_.contains(&tensor) || known.contains(&tensor)) continue;
      if (unknown++ == 0) first = &tensor;
    }
    if (unknown == 0) return absl::OkStatus();
    notices_.push_back(absl::StrCat("left out ", unknown,
                                    " tensors that family ", family_->name,
                                    " does not use, the first: ", first->name));
    return absl::OkStatus();
  }

  const Checkpoint& checkpoint_;
  const Family* family_ = nullptr;  // of the folder
  ModelSpec spec_;
  ExportedModel exported_;
  std::vector<Stack> stacks_;
  const Stack* stack_ = nullptr;  // the one at work
  absl::flat_hash_set<std::string> names_;
  std::vector<SourceTensor> tensors_;
  std::vector<Item> items_;  // of each
  absl::flat_hash_set<const Tensor*> used_;
  std::vector<std::string> notices_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<QuantizeSource>> MakeFolderSource(
    const Checkpoint& checkpoint, const SourceOptions& options) {
  auto source = std::make_unique<FolderSource>(checkpoint);
  LANEWISE_RETURN_IF_ERROR(source->Init(options));
  return source;
}

}  // namespace lanewise
