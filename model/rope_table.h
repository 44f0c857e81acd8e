// Cosines and sines of rotary embeddings, row by row.
#ifndef LANEWISE_MODEL_ROPE_TABLE_H_
#define LANEWISE_MODEL_ROPE_TABLE_H_

#include <cstddef>
#include <vector>

#include "model/spec.h"

namespace lanewise {

// Inverse frequencies of a RopeSpec with its scaling applied, rounded to float
// as the reference (Transformers) rounds them.
class RopeTable {
 public:
  explicit RopeTable(const RopeSpec& spec);

  size_t half() const { return inverse_frequencies_.size(); }

  // cos and sin [half()] of one position. The angle is rounded to float before
  // its cosine is taken, as in the reference.
  void Fill(size_t position, float* cos, float* sin) const;

  const std::vector<float>& inverse_frequencies() const {
    return inverse_frequencies_;
  }

 private:
  std::vector<float> inverse_frequencies_;
  float attention_factor_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_ROPE_TABLE_H_
