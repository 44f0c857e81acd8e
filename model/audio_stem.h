// What turns a spectrogram into the rows an audio encoder reads
// (ModelSpec::audio_stem): two convolutions with GELU, the second at half the
// rate.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       auto stem, AudioStem::Create(*model->encoder(), context, activations));
//   std::vector<float> rows;  // [stem->RowsOf(frames), width]
//   LANEWISE_RETURN_IF_ERROR(stem->Run(spectrogram, &rows));
//   Executor::Entry entry;
//   entry.vectors = rows;  // the executor adds the positions
#ifndef LANEWISE_MODEL_AUDIO_STEM_H_
#define LANEWISE_MODEL_AUDIO_STEM_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/model.h"
#include "simd/context.h"
#include "simd/convolution.h"
#include "simd/matmul.h"

namespace lanewise {

class AudioStem {
 public:
  // `model` (the encoder) and `context` must outlive the stem. INVALID_ARGUMENT
  // for a model without one.
  static absl::StatusOr<std::unique_ptr<AudioStem>> Create(
      const Model& model, const Context& context, ActivationType activations);

  // Rows of the encoder that `frames` frames become: half as many, rounded up.
  size_t RowsOf(size_t frames) const;

  // rows = [RowsOf(frames), width] of spectrogram [bands, frames]. Its bits
  // depend on neither threads nor (with FMA) target. INVALID_ARGUMENT for a
  // size that is no multiple of the bands, OUT_OF_RANGE for more rows than the
  // model has positions, RESOURCE_EXHAUSTED without memory.
  absl::Status Run(absl::Span<const float> spectrogram,
                   std::vector<float>* rows);

 private:
  AudioStem(const Model& model, const Context& context,
            ActivationType activations);

  // out [shape.OutputRows(frames), width] of padded_ [frames + padding, …].
  absl::Status Convolve(const Projection& weights, const Conv1dShape& shape,
                        size_t frames, std::vector<float>* out);

  const Model& model_;
  const Context& context_;
  const ActivationType type_;
  const Conv1dShape first_, second_;
  std::vector<float> padded_;
  Activations activations_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_AUDIO_STEM_H_
