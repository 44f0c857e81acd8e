// From the last layer's rows to logits or pooled vectors.
#include <algorithm>
#include <cstring>

#include "model/executor.h"
#include "simd/activation.h"
#include "simd/vector_ops.h"

namespace lanewise {

// Moves what the head reads of `rows` [all rows, width] to the front of
// normed_ and counts it. `rows` may be normed_ itself.
size_t Executor::GatherHeadRows(absl::Span<const Entry> batch,
                                const float* rows) {
  const size_t width = model_.spec().width;
  const Pooling pooling = model_.spec().head.pooling;
  size_t wanted = 0, row = 0;
  for (const Entry& entry : batch) {
    const size_t count = RowsOf(entry);
    if (entry.logits == Logits::kNone || count == 0) {
      row += count;
      continue;
    }
    size_t begin = 0, end = count;
    if (pooling == Pooling::kFirst || pooling == Pooling::kMean) end = 1;
    if (pooling == Pooling::kLast ||
        (pooling == Pooling::kNone && entry.logits == Logits::kLast)) {
      begin = count - 1;
    }
    float* out = normed_.get() + wanted * width;
    std::memmove(out, rows + (row + begin) * width,
                 (end - begin) * width * sizeof(float));
    if (pooling == Pooling::kMean) {
      for (size_t i = 1; i < count; ++i) {
        AddTo(context_.target(), rows + (row + i) * width, width, out);
      }
      Scale(context_.target(), 1.0f / static_cast<float>(count), width, out);
    }
    wanted += end - begin;
    row += count;
  }
  return wanted;
}

const float* Executor::TransformHeadRows(const float* rows, size_t count) {
  const ModelSpec& spec = model_.spec();
  const Weights& weights = model_.weights();
  const size_t width = spec.width;
  if (spec.head.transform.has_value()) {
    const HeadTransformSpec& transform = *spec.head.transform;
    Project(weights.head_dense, {rows, width, count, width}, residual_.get(),
            transform.width, false);
    ForRows(count, [&](size_t row) {
      Activate(context_.target(), transform.activation,
               residual_.get() + row * transform.width, transform.width);
    });
    if (transform.norm.has_value()) {
      Norm(*transform.norm, weights.head_norm, residual_.get(),
           {count, transform.width}, residual_.get());
    }
    return residual_.get();
  }
  if (spec.embedding_width.has_value() && !spec.embedding_projected_last) {
    Project(weights.embedding_out, {rows, width, count, width}, residual_.get(),
            spec.token_width(), false);
    return residual_.get();
  }
  return rows;
}

void Executor::FinishLogits(size_t rows, float* logits) {
  const ModelSpec& spec = model_.spec();
  if (spec.head.scale == 1.0f && spec.head.softcap == 0.0f) return;
  const size_t width = spec.head_width();
  ForRows(rows, [&](size_t row) {
    float* x = logits + row * width;
    if (spec.head.scale != 1.0f) {
      Scale(context_.target(), spec.head.scale, width, x);
    }
    if (spec.head.softcap > 0.0f) {
      SoftCap(context_.target(), spec.head.softcap, width, x);
    }
  });
}

void Executor::RunHead(absl::Span<const Entry> batch, const Outputs& outputs) {
  const ModelSpec& spec = model_.spec();
  const Weights& weights = model_.weights();
  const bool norm_all =
      outputs.hidden != nullptr || spec.head.pooling == Pooling::kMean;
  const float* rows = residual_.get();
  if (norm_all) {
    float* hidden = outputs.hidden != nullptr ? outputs.hidden : normed_.get();
    if (spec.final_norm.has_value()) {
      Norm(*spec.final_norm, weights.final_norm, rows, {rows_, spec.width},
           hidden);
    } else {
      std::memcpy(hidden, rows, rows_ * spec.width * sizeof(float));
    }
    rows = hidden;
  }
  if (outputs.logits == nullptr || spec.head.task == HeadTask::kNone) return;
  const size_t wanted = GatherHeadRows(batch, rows);
  if (wanted == 0) return;
  if (!norm_all && spec.final_norm.has_value()) {
    Norm(*spec.final_norm, weights.final_norm, normed_.get(),
         {wanted, spec.width}, normed_.get());
  }
  const float* input = TransformHeadRows(normed_.get(), wanted);
  if (spec.head.outputs == size_t{0}) {
    std::memcpy(outputs.logits, input,
                wanted * spec.head_width() * sizeof(float));
    return;
  }
  const PackedMatrix& head =
      spec.head.tied ? *weights.token_embedding : weights.head.parts.front();
  activations_.Prepare(context_, input, head.cols(), wanted, head.cols(),
                       RepresentationFor(options_.activations, head.type()));
  MatMulEpilogue epilogue;
  if (spec.head.bias) epilogue.bias = weights.head.bias.data();
  MatMul(context_, activations_, options_.activations, head, outputs.logits,
         spec.head_width(), epilogue);
  FinishLogits(wanted, outputs.logits);
}

}  // namespace lanewise
