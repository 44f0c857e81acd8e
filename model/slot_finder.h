// Finds the tensors of a checkpoint for the slots that a spec has, by the rules
// of its family.
//
//   SlotFinder finder(checkpoint, family, family.tensors, &spec, &notes);
//   SlotTable slots;
//   LANEWISE_RETURN_IF_ERROR(finder.Find({}, &slots));        // outside layers
//   LANEWISE_RETURN_IF_ERROR(finder.Find({layer, {}}, &slots));
#ifndef LANEWISE_MODEL_SLOT_FINDER_H_
#define LANEWISE_MODEL_SLOT_FINDER_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/spec.h"
#include "model/tensor_source.h"

namespace lanewise {

// The tensors that were found for one slot.
struct SlotSources {
  std::optional<TensorSource> weight;
  std::optional<TensorSource> bias;
};

struct SlotTable {
  SlotSources& operator[](Slot slot) {
    return sources[static_cast<size_t>(slot)];
  }
  const SlotSources& operator[](Slot slot) const {
    return sources[static_cast<size_t>(slot)];
  }

  std::array<SlotSources, static_cast<size_t>(Slot::kCount)> sources;
};

// The part of the model whose tensors are looked up: a layer, an expert of it,
// or what is outside of layers.
struct SlotScope {
  std::optional<size_t> layer, expert;
};

// `pattern` with the numbers of the layer and the expert in place of its "{}";
// where the scope has no number it stays.
std::string ExpandTensorName(absl::string_view pattern, const SlotScope& scope);

// The tensor of a folder under one of the family's prefixes. Null when there is
// none; UNIMPLEMENTED when its type is not supported (it must not pass for an
// absent one).
absl::StatusOr<const Tensor*> FindPrefixed(const Checkpoint& checkpoint,
                                           const Family& family,
                                           absl::string_view name);

class SlotFinder {
 public:
  struct Notes {
    std::vector<std::string> notices;  // one line each
    absl::flat_hash_set<const Tensor*> used;
  };

  // Everything must outlive the finder. `rules` are those of one stack.
  SlotFinder(const Checkpoint& checkpoint, const Family& family,
             absl::Span<const TensorRule> rules, ModelSpec* spec, Notes* notes);

  // Published encoders of sentences often name the class that they were made
  // from, with a masked-token head, and hold nothing of it: then the spec loses
  // its head, with a notice.
  absl::Status DropAbsentHead();

  // Fills in the tensors of one scope. Rules of one slot are alternatives.
  // NOT_FOUND names the first that is missing.
  absl::Status Find(const SlotScope& scope, SlotTable* slots);

 private:
  const LayerSpec* LayerOf(const SlotScope& scope) const;
  bool Counts(const TensorRule& rule, const SlotScope& scope) const;
  std::string Expand(absl::string_view pattern, SlotScope scope) const;
  absl::string_view Pattern(const TensorRule& rule) const;
  absl::StatusOr<const Tensor*> FindTensor(const std::string& name) const;
  absl::Status CheckComplete(const SlotScope& scope,
                             const SlotTable& slots) const;
  bool IsRequired(const TensorRule& rule, const SlotScope& scope) const;
  bool IsWanted(const TensorRule& rule, const SlotScope& scope) const;
  void NoteUnwanted(const TensorRule& rule, const Tensor& tensor);

  const Checkpoint& checkpoint_;
  const Family& family_;
  const absl::Span<const TensorRule> rules_;
  ModelSpec& spec_;
  Notes& notes_;
  const bool gguf_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_SLOT_FINDER_H_
