#include "model/slot_finder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/slots.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

bool IsOfScope(const TensorRule& rule, absl::string_view pattern,
               const SlotScope& scope) {
  return !pattern.empty() &&
         absl::StrContains(pattern, "{}") == scope.layer.has_value() &&
         IsExpertSlot(rule.slot) == scope.expert.has_value();
}

bool IsHead(const TensorRule& rule) {
  return rule.slot == Slot::kHead && !rule.bias;
}

}  // namespace

std::string ExpandTensorName(absl::string_view pattern,
                             const SlotScope& scope) {
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

absl::StatusOr<const Tensor*> FindPrefixed(const Checkpoint& checkpoint,
                                           const Family& family,
                                           absl::string_view name) {
  for (const absl::string_view prefix : family.prefixes) {
    absl::StatusOr<const Tensor*> tensor =
        checkpoint.RequireTensor(absl::StrCat(prefix, name));
    if (!absl::IsNotFound(tensor.status())) return tensor;
  }
  return nullptr;
}

SlotFinder::SlotFinder(const Checkpoint& checkpoint, const Family& family,
                       absl::Span<const TensorRule> rules, ModelSpec* spec,
                       Notes* notes)
    : checkpoint_(checkpoint),
      family_(family),
      rules_(rules),
      spec_(*spec),
      notes_(*notes),
      gguf_(checkpoint.kind() == CheckpointKind::kGguf) {}

const LayerSpec* SlotFinder::LayerOf(const SlotScope& scope) const {
  return scope.layer.has_value() ? &spec_.layers[*scope.layer] : nullptr;
}

absl::Status SlotFinder::Find(const SlotScope& scope, SlotTable* slots) {
  std::vector<std::pair<const TensorRule*, const Tensor*>> unwanted;
  absl::flat_hash_set<const Tensor*> taken;
  for (const TensorRule& rule : rules_) {
    if (!Counts(rule, scope)) continue;
    const std::string name = Expand(Pattern(rule), scope);
    LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor, FindTensor(name));
    if (tensor == nullptr) continue;
    notes_.used.insert(tensor);
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
    SlotSources& slot = (*slots)[rule.slot];
    (rule.bias ? slot.bias : slot.weight).emplace(std::move(source));
    taken.insert(tensor);
  }
  for (const auto& [rule, tensor] : unwanted) {
    if (!taken.contains(tensor)) NoteUnwanted(*rule, *tensor);
  }
  return CheckComplete(scope, *slots);
}

bool SlotFinder::Counts(const TensorRule& rule, const SlotScope& scope) const {
  return IsOfScope(rule, Pattern(rule), scope) &&
         (rule.tasks & TaskBit(spec_.head.task)) != 0;
}

absl::Status SlotFinder::DropAbsentHead() {
  if (spec_.head.task != HeadTask::kMaskedToken) return absl::OkStatus();
  for (const TensorRule& rule : rules_) {
    if (!Counts(rule, {}) || rule.tasks == kAllTasks) continue;
    LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor,
                              FindTensor(Expand(Pattern(rule), {})));
    if (tensor != nullptr) return absl::OkStatus();
  }
  spec_.head = {};
  spec_.head.task = HeadTask::kNone;
  notes_.notices.push_back(
      absl::StrCat(checkpoint_.path(),
                   ": no tensor of the masked-token head that architectures of "
                   "config.json names, so the model gives hidden states only"));
  return absl::OkStatus();
}

// A group's layers have its number.
std::string SlotFinder::Expand(absl::string_view pattern,
                               SlotScope scope) const {
  if (scope.layer.has_value()) {
    scope.layer = spec_.layers[*scope.layer].group.value_or(*scope.layer);
  }
  return ExpandTensorName(pattern, scope);
}

absl::string_view SlotFinder::Pattern(const TensorRule& rule) const {
  return gguf_ ? rule.gguf : rule.hugging_face;
}

absl::Status SlotFinder::CheckComplete(const SlotScope& scope,
                                       const SlotTable& slots) const {
  for (const TensorRule& rule : rules_) {
    if (!Counts(rule, scope)) continue;
    const SlotSources& slot = slots[rule.slot];
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

// Null when there is none.
absl::StatusOr<const Tensor*> SlotFinder::FindTensor(
    const std::string& name) const {
  if (!gguf_) return FindPrefixed(checkpoint_, family_, name);
  absl::StatusOr<const Tensor*> tensor = checkpoint_.RequireTensor(name);
  if (absl::IsNotFound(tensor.status())) return nullptr;
  return tensor;
}

bool SlotFinder::IsRequired(const TensorRule& rule,
                            const SlotScope& scope) const {
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
bool SlotFinder::IsWanted(const TensorRule& rule,
                          const SlotScope& scope) const {
  const bool wanted = HasSlot(spec_, LayerOf(scope), rule.slot, rule.bias);
  if (gguf_) return wanted || rule.bias;  // such files do not tell of biases
  return wanted && !(IsHead(rule) && spec_.head.tied);
}

void SlotFinder::NoteUnwanted(const TensorRule& rule, const Tensor& tensor) {
  notes_.notices.push_back(
      absl::StrCat(tensor.file, ": ", tensor.name,
                   ": ignored, since config.json says that the model has none",
                   IsHead(rule) ? " of its own (tie_word_embeddings)" : ""));
}

}  // namespace lanewise
