#include "model/image_stem.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "simd/convolution.h"
#include "simd/status_macros.h"

namespace lanewise {

ImageStem::ImageStem(const Model& model, const Context& context,
                     ActivationType type)
    : model_(model),
      context_(context),
      spec_(*model.spec().patches),
      type_(type) {}

absl::StatusOr<std::unique_ptr<ImageStem>> ImageStem::Create(
    const Model& model, const Context& context, ActivationType activations) {
  if (!model.spec().patches.has_value()) {
    return absl::InvalidArgumentError(
        "image: expected a model that reads patches of images");
  }
  auto stem = absl::WrapUnique(new ImageStem(model, context, activations));
  const PatchSpec& spec = stem->spec_;
  LANEWISE_RETURN_IF_ERROR(
      stem->activations_.Reserve(spec.patches(), spec.values()));
  const size_t floats = spec.patches() * spec.values();
  stem->patches_ = hwy::AllocateAligned<float>(floats);
  if (stem->patches_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "image: no memory for the ", floats, " values of patches"));
  }
  return stem;
}

absl::Status ImageStem::Run(absl::Span<const float> pixels, float* out) {
  if (pixels.size() != this->pixels()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "image: expected ", spec_.channels, " x ", spec_.height, " x ",
        spec_.width, " pixel values, found ", pixels.size()));
  }
  const ScopedFloatEnvironment environment;
  GatherPatches(
      pixels.data(),
      {spec_.channels, spec_.height, spec_.width, spec_.size, spec_.size}, 0,
      spec_.patches(), patches_.get());
  const Weights& weights = model_.weights();
  const size_t width = model_.spec().width;
  out = std::copy(weights.class_token.begin(), weights.class_token.end(), out);
  const Projection& projection = weights.patches;
  const PackedMatrix& matrix = projection.parts.front();
  activations_.Prepare(context_, patches_.get(), spec_.values(),
                       spec_.patches(), spec_.values(),
                       RepresentationFor(type_, matrix.type()));
  MatMulEpilogue epilogue;
  if (!projection.bias.empty()) epilogue.bias = projection.bias.data();
  MatMul(context_, activations_, type_, matrix, out, width, epilogue);
  return absl::OkStatus();
}

}  // namespace lanewise
