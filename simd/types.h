// Storage types of tensors and the block formats of quantized weights.
//
// A quantized row is a sequence of blocks; each block holds `block_size`
// consecutive elements of k. The formats are those of GGUF (ggml); the structs
// below mirror the bytes in a file. Halves are kept as their bits.
#ifndef LANEWISE_SIMD_TYPES_H_
#define LANEWISE_SIMD_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace lanewise {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kBool,
  kF8E4M3,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kMXFP4,
};

struct DTypeTraits {
  absl::string_view name;  // as in messages and flags: "F32", "Q4_K", …
  uint32_t block_size;     // elements per block; 1 for plain types
  uint32_t block_bytes;
  // Decodes `n` elements (a multiple of block_size) to float exactly as the
  // format defines. Null for types that never hold weights (integers wider than
  // 8 bits, bool).
  void (*decode)(const uint8_t* blocks, size_t n, float* out);
};

const DTypeTraits& Traits(DType type);

// The type of this name, if any; case matters not.
std::optional<DType> DTypeFromName(absl::string_view name);

// Bytes of `elements` elements, which must be a multiple of the block size.
// Does not check for overflow.
inline size_t BytesOf(DType type, size_t elements) {
  const DTypeTraits& traits = Traits(type);
  return elements / traits.block_size * traits.block_bytes;
}

// Scalar conversions, by integer code, nearest even; the same on every machine.
float F32FromF16(uint16_t bits);
uint16_t F16FromF32(float value);
float F32FromBF16(uint16_t bits);
uint16_t BF16FromF32(float value);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_TYPES_H_
