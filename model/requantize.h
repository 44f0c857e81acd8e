// Quantizing a model's float matrices while they are loaded, and those that
// would be floats in memory: of types without kernels (Q5_K, MXFP4, …).
//
//   Requantizer requantizer(DType::kQ8_0);
//   LANEWISE_RETURN_IF_ERROR(
//       requantizer.Apply(slot, checkpoint, context, &source));
//   …                      // source.type() is Q8_0 now; pack its rows
//   requantizer.Notices()  // what stayed as it was
//
// The types, and so every bit of the results, are those of a file that the
// program `quantize` writes (tools/quantize_types.h), but matrices whose rows
// are no whole blocks of 32, which it makes F16: those stay as stored.
#ifndef LANEWISE_MODEL_REQUANTIZE_H_
#define LANEWISE_MODEL_REQUANTIZE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/tensor_source.h"
#include "simd/context.h"
#include "simd/types.h"

namespace lanewise {

class Requantizer {
 public:
  // `type`: one that simd/quantize.h can encode; without it everything stays as
  // stored.
  explicit Requantizer(std::optional<DType> type) : type_(type) {}

  // Converts the matrix of a slot. Of a quantized type with kernels it stays as
  // stored. Q4_K and Q6_K
  // need rows of whole blocks of 256: others become Q8_0. The matrices that
  // route to experts become F32. Embeddings and output matrices are worth more
  // bits than the types of 4 give: Q6_K, else Q8_0. INVALID_ARGUMENT names a
  // tensor, a row and a column that hold no finite number.
  absl::Status Apply(Slot slot, const Checkpoint& checkpoint,
                     const Context& context, TensorSource* source);

  // One line for each reason why matrices have another type than asked for.
  std::vector<std::string> Notices() const;

 private:
  // Matrices of one reason.
  struct Exceptions {
    size_t count = 0;
    std::string first;  // its tensor
  };

  DType TypeFor(Slot slot, const Context& context, const TensorSource& source);
  static void Note(const TensorSource& source, Exceptions* exceptions);

  std::optional<DType> type_;
  Exceptions quantized_;  // in the file
  Exceptions odd_;        // no whole blocks at all
  Exceptions smaller_;    // whole blocks of 32 only
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_REQUANTIZE_H_
