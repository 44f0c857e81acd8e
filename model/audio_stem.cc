#include "model/audio_stem.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "simd/activation.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

Conv1dShape ShapeOf(size_t channels, size_t stride) {
  return {channels, kConv1dTaps, stride, /*padding=*/kConv1dTaps / 2};
}

}  // namespace

AudioStem::AudioStem(const Model& model, const Context& context,
                     ActivationType activations)
    : model_(model),
      context_(context),
      type_(activations),
      first_(ShapeOf(model.spec().audio_stem->bands, 1)),
      second_(ShapeOf(model.spec().width, 2)) {}

absl::StatusOr<std::unique_ptr<AudioStem>> AudioStem::Create(
    const Model& model, const Context& context, ActivationType activations) {
  if (!model.spec().audio_stem.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("audio: expected a model with an audio encoder, found ",
                     model.spec().family));
  }
  return absl::WrapUnique(new AudioStem(model, context, activations));
}

size_t AudioStem::RowsOf(size_t frames) const {
  return second_.OutputRows(first_.OutputRows(frames));
}

absl::Status AudioStem::Run(absl::Span<const float> spectrogram,
                            std::vector<float>* rows) {
  const ModelSpec& spec = model_.spec();
  const size_t bands = first_.in_channels;
  const size_t frames = spectrogram.size() / bands;
  if (frames == 0 || spectrogram.size() % bands != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("audio: expected one or more frames of ", bands,
                     " bands, found ", spectrogram.size(), " values"));
  }
  if (RowsOf(frames) > spec.max_positions) {
    return absl::OutOfRangeError(
        absl::StrCat("audio: expected at most ", 2 * spec.max_positions,
                     " frames (the model's limit), found ", frames));
  }
  const ScopedFloatEnvironment environment;
  padded_.resize(first_.PaddedRows(frames) * bands);
  PadColumns(spectrogram.data(), frames, first_, padded_.data());
  std::vector<float> hidden;
  LANEWISE_RETURN_IF_ERROR(
      Convolve(model_.weights().audio_conv1, first_, frames, &hidden));
  const size_t between = first_.OutputRows(frames);
  padded_.resize(second_.PaddedRows(between) * spec.width);
  PadRows(hidden.data(), spec.width, between, second_, padded_.data());
  return Convolve(model_.weights().audio_conv2, second_, between, rows);
}

absl::Status AudioStem::Convolve(const Projection& weights,
                                 const Conv1dShape& shape, size_t frames,
                                 std::vector<float>* out) {
  const size_t width = model_.spec().width;
  const size_t rows = shape.OutputRows(frames);
  const PackedMatrix& matrix = weights.parts.front();
  LANEWISE_RETURN_IF_ERROR(activations_.Reserve(rows, shape.Columns()));
  PrepareConv1d(context_, shape, padded_.data(), rows,
                RepresentationFor(type_, matrix.type()), &activations_);
  out->resize(rows * width);
  MatMulEpilogue epilogue;
  if (!weights.bias.empty()) epilogue.bias = weights.bias.data();
  MatMul(context_, activations_, type_, matrix, out->data(), width, epilogue);
  context_.ParallelFor(rows, [&](size_t row, size_t) {
    Activate(context_.target(), Activation::kGelu, out->data() + row * width,
             width);
  });
  return absl::OkStatus();
}

}  // namespace lanewise
