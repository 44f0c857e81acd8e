#include "model/model.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "model/families/family.h"
#include "model/position_tables.h"
#include "model/slots.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// `table` [buckets, heads] by distance instead of by bucket.
DistanceBias ByDistance(const RelativeBiasSpec& spec,
                        const std::vector<float>& table) {
  // Below this many buckets near distances have one each, however few
  // max_distance allows for.
  const size_t farthest = std::max(spec.max_distance, spec.buckets);
  DistanceBias bias;
  bias.max_distance = farthest;
  const RelativeBuckets buckets{static_cast<int64_t>(spec.buckets),
                                static_cast<int64_t>(spec.max_distance),
                                spec.bidirectional};
  const size_t heads = table.size() / spec.buckets;
  const auto far = static_cast<int64_t>(farthest);
  bias.values.reserve(heads * (2 * farthest + 1));
  for (size_t head = 0; head < heads; ++head) {
    for (int64_t distance = -far; distance <= far; ++distance) {
      const auto bucket =
          static_cast<size_t>(RelativeBucket(distance, buckets));
      bias.values.push_back(table[bucket * heads + head]);
    }
  }
  return bias;
}

}  // namespace

Model::Model(ModelSpec spec, Weights weights)
    : spec_(std::move(spec)), weights_(std::move(weights)) {
  for (const RopeSpec& rope : spec_.ropes) ropes_.emplace_back(rope);
  for (size_t layer = 0; layer < spec_.layers.size(); ++layer) {
    layer_weights_.push_back(FirstOfGroup(spec_, layer));
  }
  const auto& relative = spec_.layers.front().attention.relative_bias;
  if (relative.has_value()) {
    distance_bias_ = ByDistance(*relative, weights_.relative_bias);
  }
}

size_t Model::weight_bytes() const {
  size_t sum = weights_.bytes();
  if (encoder_ == nullptr) return sum;
  sum += encoder_->weight_bytes();
  const auto& shared = weights_.token_embedding;
  if (shared != nullptr && shared == encoder_->weights().token_embedding) {
    sum -= shared->bytes();
  }
  return sum;
}

absl::StatusOr<std::unique_ptr<const Model>> Model::Load(
    const Checkpoint& checkpoint, const Context& context,
    const LoadOptions& options) {
  LANEWISE_ASSIGN_OR_RETURN(const Family* family, FindFamily(checkpoint));
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec, ReadSpec(checkpoint, *family));
  return FromSpec(std::move(spec), *family, checkpoint, context, options);
}

absl::StatusOr<std::unique_ptr<const Model>> Model::FromSpec(
    ModelSpec spec, const Family& family, const Checkpoint& checkpoint,
    const Context& context, const LoadOptions& options) {
  const ScopedFloatEnvironment environment;
  LANEWISE_RETURN_IF_ERROR(CheckSpec(spec, checkpoint.path()));
  LANEWISE_ASSIGN_OR_RETURN(
      LoadedWeights loaded,
      LoadWeights(checkpoint, family, std::move(spec), context, options));
  auto model =
      absl::WrapUnique(new Model(loaded.spec, std::move(loaded.weights)));
  LANEWISE_ASSIGN_OR_RETURN(
      model->relative_positions_,
      ProjectRelativePositions(model->spec_, model->weights_, context));
  if (loaded.encoder.has_value()) {
    model->encoder_ = absl::WrapUnique(new Model(
        std::move(loaded.spec.encoder.front()), std::move(*loaded.encoder)));
  }
  model->notices_ = std::move(loaded.notices);
  return model;
}

}  // namespace lanewise
