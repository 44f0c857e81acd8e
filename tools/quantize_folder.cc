// A Hugging Face folder as the tensors of a GGUF file: names and layouts by
// the family's table.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "model/families/family.h"
#include "model/tensor_source.h"
#include "simd/quantize.h"
#include "simd/status_macros.h"
#include "tools/quantize_export.h"
#include "tools/quantize_source.h"

namespace lanewise {
namespace {

// Elements that lie in rows anywhere in memory.
class RowsReader : public TensorReader {
 public:
  RowsReader(TensorSource source, std::vector<const uint8_t*> rows)
      : source_(std::move(source)), rows_(std::move(rows)) {}

  // The type of a folder's weights has blocks of one element.
  absl::Status Read(uint64_t begin, uint64_t count,
                    uint8_t* out) const override {
    const uint64_t cols = source_.cols();
    const uint64_t bytes = Traits(source_.type()).block_bytes;
    while (count > 0) {
      const uint64_t col = begin % cols;
      const uint64_t part = std::min(count, cols - col);
      std::memcpy(out, rows_[begin / cols] + col * bytes, part * bytes);
      out += part * bytes;
      begin += part;
      count -= part;
    }
    return absl::OkStatus();
  }

 private:
  const TensorSource source_;  // may own what rows_ point to
  const std::vector<const uint8_t*> rows_;
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

class FolderSource : public QuantizeSource {
 public:
  explicit FolderSource(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint) {}

  absl::Status Init(const SourceOptions& options) {
    LANEWISE_ASSIGN_OR_RETURN(family_, FindFamily(checkpoint_));
    LANEWISE_ASSIGN_OR_RETURN(spec_, ReadSpec(checkpoint_, *family_));
    if (family_->gguf_architectures.empty()) {
      return absl::UnimplementedError(absl::StrCat(
          checkpoint_.path(), ": GGUF has no architecture for family ",
          family_->name));
    }
    LANEWISE_ASSIGN_OR_RETURN(exported_,
                              ExportModel(checkpoint_.path(), *family_, spec_));
    if (options.tokenizer) {
      LANEWISE_RETURN_IF_ERROR(
          ExportTokenizer(checkpoint_, spec_.vocab_size, &exported_.metadata));
    } else {
      ExportNoTokenizer(&exported_.metadata);
    }
    LANEWISE_RETURN_IF_ERROR(AddTensors(std::nullopt));
    for (size_t layer = 0; layer < spec_.layers.size(); ++layer) {
      LANEWISE_RETURN_IF_ERROR(AddTensors(layer));
    }
    NoteUnused();
    return absl::OkStatus();
  }

  const Metadata& metadata() const override { return exported_.metadata; }
  absl::Span<const SourceTensor> tensors() const override { return tensors_; }
  absl::Span<const std::string> notices() const override { return notices_; }

  absl::StatusOr<std::unique_ptr<TensorReader>> Open(
      size_t index) const override {
    const Part& part = parts_[index];
    LANEWISE_ASSIGN_OR_RETURN(
        TensorSource source,
        TensorSource::Create(*part.tensor, *part.rule, /*gguf=*/false, spec_,
                             part.layer));
    std::vector<const uint8_t*> rows;
    LANEWISE_RETURN_IF_ERROR(source.AppendRows(&rows));
    LANEWISE_ASSIGN_OR_RETURN(rows, InGgufOrder(part, source, rows));
    return std::make_unique<RowsReader>(std::move(source), std::move(rows));
  }

  void Release(size_t index) const override {
    checkpoint_.Release(*parts_[index].tensor);
  }

 private:
  struct Part {
    const Tensor* tensor;
    const TensorRule* rule;
    std::optional<size_t> layer;
  };

  // The rules of one layer, or those outside of layers.
  absl::Status AddTensors(std::optional<size_t> layer) {
    for (const TensorRule& rule : family_->tensors) {
      if (rule.hugging_face.empty()) continue;
      if (absl::StrContains(rule.hugging_face, "{}") != layer.has_value()) {
        continue;
      }
      const std::string name = WithLayer(rule.hugging_face, layer);
      const Tensor* tensor = FindPrefixed(name);
      if (tensor == nullptr) {
        if (!IsRequired(rule, layer)) continue;
        return absl::NotFoundError(absl::StrCat(
            checkpoint_.path(), ": tensor ", name, ": expected by family ",
            family_->name, ", found none of that name"));
      }
      used_.insert(tensor);
      if (rule.slot == Slot::kIgnored) continue;
      if (!IsWanted(rule, layer)) {
        notices_.push_back(
            absl::StrCat(tensor->name,
                         ": left out, since config.json says that the model "
                         "has none of its own"));
        continue;
      }
      LANEWISE_RETURN_IF_ERROR(AddTensor(*tensor, rule, layer));
    }
    return absl::OkStatus();
  }

  absl::Status AddTensor(const Tensor& tensor, const TensorRule& rule,
                         std::optional<size_t> layer) {
    if (rule.gguf.empty()) {
      return absl::UnimplementedError(
          absl::StrCat(checkpoint_.path(), ": tensor ", tensor.name,
                       ": GGUF has no place for it in architecture ",
                       family_->gguf_architectures.front()));
    }
    LANEWISE_ASSIGN_OR_RETURN(
        const TensorSource source,
        TensorSource::Create(tensor, rule, /*gguf=*/false, spec_, layer));
    SourceTensor out;
    out.name = WithLayer(rule.gguf, layer);
    out.original = tensor.name;
    out.type = source.type();
    out.shape = {source.rows()};
    if (rule.cols != Dim::kOne) out.shape.push_back(source.cols());
    tensors_.push_back(std::move(out));
    parts_.push_back({&tensor, &rule, layer});
    return absl::OkStatus();
  }

  // Puts each row of the slot where the loader looks for it in a GGUF file: it
  // is asked for that place, in a tensor of the same bytes.
  absl::StatusOr<std::vector<const uint8_t*>> InGgufOrder(
      const Part& part, const TensorSource& source,
      const std::vector<const uint8_t*>& rows) const {
    if (part.rule->gguf_layout == TensorLayout::kPlain) return rows;
    Tensor stored = *part.tensor;
    stored.shape = tensors_[&part - parts_.data()].shape;
    LANEWISE_ASSIGN_OR_RETURN(
        TensorSource place,
        TensorSource::Create(stored, *part.rule, /*gguf=*/true, exported_.spec,
                             part.layer));
    std::vector<const uint8_t*> places;
    LANEWISE_RETURN_IF_ERROR(place.AppendRows(&places));
    const size_t stride = BytesOf(source.type(), source.cols());
    std::vector<const uint8_t*> ordered(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      ordered[static_cast<size_t>(places[i] - stored.data.data()) / stride] =
          rows[i];
    }
    return ordered;
  }

  static std::string WithLayer(absl::string_view pattern,
                               std::optional<size_t> layer) {
    if (!layer.has_value()) return std::string(pattern);
    return absl::StrReplaceAll(pattern, {{"{}", absl::StrCat(*layer)}});
  }

  const Tensor* FindPrefixed(const std::string& name) const {
    for (const absl::string_view prefix : family_->prefixes) {
      const Tensor* tensor = checkpoint_.FindTensor(absl::StrCat(prefix, name));
      if (tensor != nullptr) return tensor;
    }
    return nullptr;
  }

  bool SpecHasBias(const TensorRule& rule, size_t layer) const {
    const LayerSpec& spec = spec_.layers[layer];
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
    if (rule.slot == Slot::kHead) return false;
    if (rule.bias && layer.has_value()) return SpecHasBias(rule, *layer);
    return rule.presence == Presence::kRequired;
  }

  bool IsWanted(const TensorRule& rule, std::optional<size_t> layer) const {
    if (rule.slot == Slot::kHead) return !spec_.head.tied;
    return !rule.bias || !layer.has_value() || SpecHasBias(rule, *layer);
  }

  void NoteUnused() {
    size_t count = 0;
    const Tensor* first = nullptr;
    for (const Tensor& tensor : checkpoint_.tensors()) {
      if (used_.contains(&tensor)) continue;
      if (count++ == 0) first = &tensor;
    }
    if (count == 0) return;
    notices_.push_back(absl::StrCat("left out ", count, " tensors that family ",
                                    family_->name,
                                    " does not use, the first: ", first->name));
  }

  const Checkpoint& checkpoint_;
  const Family* family_ = nullptr;
  ModelSpec spec_;
  ExportedModel exported_;
  std::vector<SourceTensor> tensors_;
  std::vector<Part> parts_;  // of each
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
