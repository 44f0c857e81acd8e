// Cosines and sines of rotary embeddings, row by row.
#ifndef LANEWISE_MODEL_ROPE_TABLE_H_
#define LANEWISE_MODEL_ROPE_TABLE_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "model/spec.h"

namespace lanewise {

// Inverse frequencies of a RopeSpec with its scaling applied, rounded to float
// as the reference (Transformers) rounds them.
//
//   std::vector<float> scratch(table.half());
//   const auto frequencies = table.Frequencies(length, scratch.data());
//   table.Fill(frequencies, position, cos, sin);
class RopeTable {
 public:
  explicit RopeTable(const RopeSpec& spec);

  size_t half() const { return frequencies_.size(); }

  // Those of a row whose sequence counts as `length` tokens long:
  // docs/design.md, section 2. Only dynamic scaling and longrope depend on it.
  // The result may lie in scratch [half()].
  absl::Span<const float> Frequencies(size_t length, float* scratch) const;

  // cos and sin [half()] of one position. The angle is rounded to float before
  // its cosine is taken, as in the reference.
  void Fill(absl::Span<const float> frequencies, size_t position, float* cos,
            float* sin) const;

 private:
  RopeSpec spec_;
  std::vector<float> frequencies_;       // up to the original length
  std::vector<float> long_frequencies_;  // longrope: beyond
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_ROPE_TABLE_H_
