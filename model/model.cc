#include "model/model.h"

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "simd/status_macros.h"

namespace lanewise {

absl::StatusOr<std::unique_ptr<const Model>> Model::Load(
    const Checkpoint& checkpoint, const Context& context,
    const LoadProgress& progress) {
  const ScopedFloatEnvironment environment;
  LANEWISE_ASSIGN_OR_RETURN(const Family* family, FindFamily(checkpoint));
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadSpec(checkpoint, *family));
  LANEWISE_ASSIGN_OR_RETURN(
      LoadedWeights loaded,
      LoadWeights(checkpoint, *family, std::move(spec), context, progress));
  auto model = absl::WrapUnique(new Model);
  model->spec_ = std::move(loaded.spec);
  model->weights_ = std::move(loaded.weights);
  model->notices_ = std::move(loaded.notices);
  for (const RopeSpec& rope : model->spec_.ropes) {
    model->ropes_.emplace_back(rope);
  }
  return model;
}

}  // namespace lanewise
