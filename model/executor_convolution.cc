// The convolution beside the first layer (ConvolutionSpec).
#include <algorithm>
#include <cstring>

#include "model/executor.h"
#include "simd/activation.h"
#include "simd/vector_ops.h"

namespace lanewise {

// Keeps what the convolution reads until the first layer is done.
void Executor::KeepConvolved() {
  std::memcpy(convolved_.get(), residual_.get(),
              rows_ * model_.spec().width * sizeof(float));
}

// residual_ = norm(residual_ + activation(convolution(kept rows))). The rows of
// a channel's kernel lie side by side, so that the convolution is a projection.
void Executor::AddConvolution(absl::Span<const Entry> batch) {
  const ConvolutionSpec& spec = *model_.spec().convolution;
  const size_t width = model_.spec().width;
  const size_t kernel = spec.kernel;
  const size_t columns = width * kernel;
  size_t first = 0;
  for (const Entry& entry : batch) {
    const size_t count = RowsOf(entry);
    for (size_t row = 0; row < count; ++row) {
      float* out = kernel_rows_.get() + (first + row) * columns;
      for (size_t tap = 0; tap < kernel; ++tap) {
        // Zeros beyond the ends of the sequence.
        const size_t at = row + tap;
        const bool inside = at >= kernel / 2 && at - kernel / 2 < count;
        const float* in =
            inside ? convolved_.get() + (first + at - kernel / 2) * width
                   : nullptr;
        for (size_t i = 0; i < width; ++i) {
          out[i * kernel + tap] = inside ? in[i] : 0.0f;
        }
      }
    }
    first += count;
  }
  Project(model_.weights().convolution,
          {kernel_rows_.get(), columns, rows_, columns}, normed_.get(), width,
          false);
  ForRows(rows_, [&](size_t row) {
    float* x = normed_.get() + row * width;
    Activate(context_.target(), spec.activation, x, width);
    AddTo(context_.target(), x, width, residual_.get() + row * width);
  });
  Norm(spec.norm, model_.weights().convolution_norm, residual_.get(),
       {rows_, width}, residual_.get());
}

}  // namespace lanewise
