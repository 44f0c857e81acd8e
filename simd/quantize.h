// Encoders of the block formats: what simd/types.h decodes, written.
//
//   std::vector<uint8_t> blocks(BytesOf(DType::kQ4_K, row.size()));
//   Encode(DType::kQ4_K, row.data(), row.size(), blocks.data());
//
// Scales are chosen for the least sum of squared errors among some tens of
// candidates, each judged with the scale as the file will hold it (a half).
// Scalar code in a fixed order: the same bytes on every machine.
#ifndef LANEWISE_SIMD_QUANTIZE_H_
#define LANEWISE_SIMD_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "simd/types.h"

namespace lanewise {

// F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K.
bool CanEncode(DType type);

// Encodes `n` elements (a multiple of the block size) to BytesOf(type, n)
// bytes. The values must be finite and CanEncode(type) true. Decoding gives
// finite values always: what is beyond the largest number that the type holds
// becomes that number. A block whose values all round to 0 has scale 0 and
// decodes to zeros.
void Encode(DType type, const float* values, size_t n, uint8_t* out);

// The place of the first NaN or infinity among `n` values, or `n`.
size_t FirstNonFinite(const float* values, size_t n);

// What storing values in another type cost.
struct RoundTripError {
  double squared_error = 0;  // sum over the elements
  double squared_value = 0;  // of the original
  double largest = 0;        // magnitude of an error

  void Add(const RoundTripError& other);
  // Root of the mean squared error over that of the mean squared value; 0 when
  // all values are 0 and stayed so.
  double RelativeRms() const;
};
RoundTripError Compare(const float* values, const float* stored, size_t n);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_QUANTIZE_H_
