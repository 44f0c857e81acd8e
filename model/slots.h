// What a ModelSpec says about the tensors of its weights: which there are and
// how large they are.
#ifndef LANEWISE_MODEL_SLOTS_H_
#define LANEWISE_MODEL_SLOTS_H_

#include <cstddef>

#include "model/families/family.h"
#include "model/spec.h"

namespace lanewise {

// Whether the model has this weight or bias. `layer` is null for slots outside
// of layers. Several slots may hold the same (kQkv, or kQuery, kKey and
// kValue): a family lists those of its files.
bool HasSlot(const ModelSpec& spec, const LayerSpec* layer, Slot slot,
             bool bias);

// Whether the slot is filled once per expert.
bool IsExpertSlot(Slot slot);

// The first layer of the group that `layer` belongs to: the one whose weights
// it runs with.
size_t FirstOfGroup(const ModelSpec& spec, size_t layer);

size_t SizeOf(Dim dim, const ModelSpec& spec, const LayerSpec* layer);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_SLOTS_H_
