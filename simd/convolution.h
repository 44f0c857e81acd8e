// Convolutions as matrix products: what makes rows of their inputs. Audio stems
// and DeBERTa-v2 have 1-D ones, image stems cut an image into patches.
//
//   const Conv1dShape shape{/*in_channels=*/80, /*kernel=*/3, /*stride=*/2,
//                           /*padding=*/1};
//   // Once, at load: weights [out, 80, 3] -> [out, 3, 80], then Pack().
//   ReorderConv1dWeights(w, sizeof(float), shape, out, reordered);
//   // Per input [frames, 80]:
//   std::vector<float> padded(shape.PaddedRows(frames) * 80);
//   PadRows(x, 80, frames, shape, padded.data());
//   PrepareConv1d(context, shape, padded.data(), shape.OutputRows(frames),
//                 representation, &activations);
//   MatMul(context, activations, type, weights, y, ldc, {bias});
//
// An output is one chain of the matrix product: taps ascending, within a tap
// the channels; of a patch the channels, rows, columns.
#ifndef LANEWISE_SIMD_CONVOLUTION_H_
#define LANEWISE_SIMD_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>

#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {

// A 1-D convolution over rows [rows, in_channels]. All but padding are at least
// 1. One group, no dilation.
struct Conv1dShape {
  size_t in_channels;
  size_t kernel;
  size_t stride = 1;
  size_t padding = 0;  // rows of zeros on either side

  size_t PaddedRows(size_t rows) const { return rows + 2 * padding; }
  // 0 where the padded input is shorter than the kernel.
  size_t OutputRows(size_t rows) const {
    const size_t padded = PaddedRows(rows);
    return padded < kernel ? 0 : (padded - kernel) / stride + 1;
  }
  size_t Columns() const { return kernel * in_channels; }  // of the product
};

// out [out_channels, kernel, in_channels] = w [out_channels, in_channels,
// kernel], elements of any type of `element_bytes` bytes. Not in place.
void ReorderConv1dWeights(const uint8_t* w, size_t element_bytes,
                          const Conv1dShape& shape, size_t out_channels,
                          uint8_t* out);

// out [PaddedRows(rows), in_channels]: x [rows, in_channels] (row r at x + r *
// x_stride) between rows of zeros.
void PadRows(const float* x, size_t x_stride, size_t rows,
             const Conv1dShape& shape, float* out);

// The same of x [in_channels, length], as spectrograms are stored: column t
// becomes row t.
void PadColumns(const float* x, size_t length, const Conv1dShape& shape,
                float* out);

// Prepares the `rows` products that read padded rows 0, stride, 2 · stride, …,
// [rows, Columns()], without copying them out. Outputs from `first` on, to run
// a long input in parts: padded + first * stride * in_channels.
void PrepareConv1d(const Context& context, const Conv1dShape& shape,
                   const float* padded, size_t rows,
                   Representation representation, Activations* activations);

// An image [channels, height, width] in patches that do not overlap; what is
// left at the right and the bottom is not read. Patch sizes are at least 1.
struct PatchShape {
  size_t channels;
  size_t height, width;
  size_t patch_height, patch_width;

  size_t Rows() const { return height / patch_height; }
  size_t Columns() const { return width / patch_width; }
  size_t Patches() const { return Rows() * Columns(); }
  // Floats of a patch: the columns of weights [out, channels, patch_height,
  // patch_width], which are packed as they are.
  size_t Size() const { return channels * patch_height * patch_width; }
};

// out [count, Size()]: patches first, first + 1, …, row by row of the image.
void GatherPatches(const float* pixels, const PatchShape& shape, size_t first,
                   size_t count, float* out);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_CONVOLUTION_H_
