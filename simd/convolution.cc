#include "simd/convolution.h"

#include <algorithm>
#include <cstring>

namespace lanewise {

void ReorderConv1dWeights(const uint8_t* w, size_t element_bytes,
                          const Conv1dShape& shape, size_t out_channels,
                          uint8_t* out) {
  const size_t channels = shape.in_channels, taps = shape.kernel;
  for (size_t row = 0; row < out_channels; ++row) {
    for (size_t tap = 0; tap < taps; ++tap) {
      for (size_t channel = 0; channel < channels; ++channel) {
        const size_t from = (row * channels + channel) * taps + tap;
        std::memcpy(out, w + from * element_bytes, element_bytes);
        out += element_bytes;
      }
    }
  }
}

void PadRows(const float* x, size_t x_stride, size_t rows,
             const Conv1dShape& shape, float* out) {
  const size_t channels = shape.in_channels;
  const size_t zeros = shape.padding * channels;
  out = std::fill_n(out, zeros, 0.0f);
  for (size_t row = 0; row < rows; ++row) {
    out = std::copy_n(x + row * x_stride, channels, out);
  }
  std::fill_n(out, zeros, 0.0f);
}

void PadColumns(const float* x, size_t length, const Conv1dShape& shape,
                float* out) {
  const size_t channels = shape.in_channels;
  const size_t zeros = shape.padding * channels;
  out = std::fill_n(out, zeros, 0.0f);
  // A block of columns at a time, so that its rows stay in the cache.
  constexpr size_t kBlock = 16;
  for (size_t begin = 0; begin < length; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, length);
    for (size_t channel = 0; channel < channels; ++channel) {
      for (size_t t = begin; t < end; ++t) {
        out[t * channels + channel] = x[channel * length + t];
      }
    }
  }
  std::fill_n(out + length * channels, zeros, 0.0f);
}

void PrepareConv1d(const Context& context, const Conv1dShape& shape,
                   const float* padded, size_t rows,
                   Representation representation, Activations* activations) {
  // Rows of the product overlap where the stride is smaller than the kernel.
  activations->Prepare(context, padded, shape.stride * shape.in_channels, rows,
                       shape.Columns(), representation);
}

void GatherPatches(const float* pixels, const PatchShape& shape, size_t first,
                   size_t count, float* out) {
  for (size_t patch = first; patch < first + count; ++patch) {
    const size_t top = patch / shape.Columns() * shape.patch_height;
    const size_t left = patch % shape.Columns() * shape.patch_width;
    for (size_t channel = 0; channel < shape.channels; ++channel) {
      for (size_t y = top; y < top + shape.patch_height; ++y) {
        const float* line =
            pixels + (channel * shape.height + y) * shape.width + left;
        out = std::copy_n(line, shape.patch_width, out);
      }
    }
  }
}

}  // namespace lanewise
