// Parts of a ModelSpec that only some encoders have: part of model/spec.h.
#ifndef LANEWISE_MODEL_ENCODER_PARTS_H_
#define LANEWISE_MODEL_ENCODER_PARTS_H_

#include <cstddef>
#include <optional>

#include "model/norm_spec.h"
#include "simd/activation.h"

namespace lanewise {

// Disentangled attention (He et al., DeBERTa, arXiv:2006.03654): scores have
// terms of a table of relative positions, which belongs to the stack:
//   (query · key + query · relative key + key · relative query) · scale
// with the row of the table by the distance of query and key.
struct DisentangledSpec {
  size_t span = 0;     // the table has 2 * span rows; the middle one is for
                       // distance 0
  size_t buckets = 0;  // 0: a row a distance; else far distances share
                       // rows as LogBucket (model/position_tables.h) says
  size_t max_distance = 0;        // of the buckets
  bool relative_keys = false;     // query · relative key: content to position
  bool relative_queries = false;  // key · relative query: position to content
  // The table goes through the layer's own query and key matrices; else through
  // further ones.
  bool shared_projections = true;
  std::optional<NormSpec> norm;  // of the table's rows
};

// A convolution beside the first layer, over the rows of a sequence:
// norm(layer(x) + activation(convolution(x))). Beyond its ends a sequence is
// zero.
struct ConvolutionSpec {
  size_t kernel = 0;  // rows; odd
  Activation activation = Activation::kTanh;
  NormSpec norm;
};

// Rows out of an image (Dosovitskiy et al., arXiv:2010.11929): one for each
// patch, row by row of patches, behind one for the whole that is a weight. What
// is left at the right and the lower edge is not read. model/image_stem.h
// computes them.
struct PatchSpec {
  size_t channels = 0;
  size_t height = 0, width = 0;  // of the image, in pixels
  size_t size = 0;               // of a side of a patch

  size_t patches() const { return (height / size) * (width / size); }
  size_t values() const { return channels * size * size; }  // of a patch
  size_t rows() const { return 1 + patches(); }
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_ENCODER_PARTS_H_
