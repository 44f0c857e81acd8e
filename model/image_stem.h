// An image's pixels as the rows that a vision model's first layer reads
// (PatchSpec), without positions: those the executor adds.
//
//   LANEWISE_ASSIGN_OR_RETURN(auto stem, ImageStem::Create(*model, context,
//   {})); std::vector<float> rows(stem->rows() * model->spec().width);
//   LANEWISE_RETURN_IF_ERROR(stem->Run(pixels, rows.data()));
//   Executor::Entry entry;
//   entry.vectors = rows;
//
// Pixels are as the model's image processor gives them (model/features/
// image_processor.h): [channels, height, width], normalized.
#ifndef LANEWISE_MODEL_IMAGE_STEM_H_
#define LANEWISE_MODEL_IMAGE_STEM_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "hwy/aligned_allocator.h"
#include "model/model.h"
#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {

class ImageStem {
 public:
  // `model` and `context` must outlive the stem. INVALID_ARGUMENT for a model
  // without patches, RESOURCE_EXHAUSTED without memory.
  static absl::StatusOr<std::unique_ptr<ImageStem>> Create(
      const Model& model, const Context& context,
      ActivationType activations = ActivationType::kNative);

  size_t rows() const { return spec_.rows(); }  // of one image
  // Values of an image: channels · height · width.
  size_t pixels() const { return spec_.channels * spec_.height * spec_.width; }

  // out [rows(), width]. INVALID_ARGUMENT for another number of pixels. One
  // image at a time: not to be called from two threads at once.
  absl::Status Run(absl::Span<const float> pixels, float* out);

 private:
  ImageStem(const Model& model, const Context& context, ActivationType type);

  const Model& model_;
  const Context& context_;
  const PatchSpec& spec_;
  const ActivationType type_;
  hwy::AlignedFreeUniquePtr<float[]> patches_;  // [patches, values of one]
  Activations activations_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_IMAGE_STEM_H_
