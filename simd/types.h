// Storage types of tensors and the block formats of quantized weights.
//
// A quantized row is a sequence of blocks; each block holds `block_size`
// consecutive elements of k. The formats are those of GGUF (ggml); the structs
// below mirror the bytes in a file, at any alignment.
//
//   const DTypeTraits& traits = Traits(DType::kQ4_K);
//   std::vector<float> row(512);
//   traits.decode(bytes, row.size(), row.data());  // two blocks of 144 bytes
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
// A NaN stays a NaN; what is too large becomes infinite.
float F32FromF16(uint16_t bits);
uint16_t F16FromF32(float value);
float F32FromBF16(uint16_t bits);
uint16_t BF16FromF32(float value);

// Elements of one block: 32 for the simple formats, 256 for the "K" ones, whose
// blocks share a float scale and have integer scales for parts of them.
inline constexpr size_t kBlockSize = 32;
inline constexpr size_t kSuperblockSize = 256;

// A little-endian 16-bit number in a file: the bits of a half.
struct LittleU16 {
  uint8_t bytes[2];

  uint16_t get() const {
    return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  }
};

// Blocks of 32. In the 4- and 5-bit formats byte j of q holds element j in its
// low half and element j + 16 in its high half.

struct BlockQ4_0 {  // d · (q − 8)
  LittleU16 d;
  uint8_t q[16];
};
struct BlockQ4_1 {  // d · q + m
  LittleU16 d, m;
  uint8_t q[16];
};
struct BlockQ5_0 {  // d · (q − 16); bit j of high is bit 4 of element j
  LittleU16 d;
  uint8_t high[4];
  uint8_t q[16];
};
struct BlockQ5_1 {  // d · q + m
  LittleU16 d, m;
  uint8_t high[4];
  uint8_t q[16];
};
struct BlockQ8_0 {  // d · q
  LittleU16 d;
  int8_t q[32];
};
struct BlockIQ4_NL {  // d · table[q]
  LittleU16 d;
  uint8_t q[16];
};
struct BlockMXFP4 {  // 2^(e − 127) · E2M1 (OCP Microscaling Formats 1.0)
  uint8_t e;
  uint8_t q[16];
};

// Blocks of 256.

struct BlockQ2_K {     // d · scale · q − dmin · min; 16 parts of 16
  uint8_t scales[16];  // scale in the low half, min in the high half
  uint8_t q[64];
  LittleU16 d, dmin;
};
struct BlockQ3_K {  // d · (scale − 32) · (q − 4); 16 parts of 16
  uint8_t high[32];
  uint8_t q[64];
  uint8_t scales[12];  // 6 bits each
  LittleU16 d;
};
struct BlockQ4_K {  // d · scale · q − dmin · min; 8 parts of 32
  LittleU16 d, dmin;
  uint8_t scales[12];  // 6 bits each: GetScaleMin
  uint8_t q[128];
};
struct BlockQ5_K {
  LittleU16 d, dmin;
  uint8_t scales[12];
  uint8_t high[32];
  uint8_t q[128];
};
struct BlockQ6_K {  // d · scale · (q − 32); 16 parts of 16
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  LittleU16 d;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockQ2_K) == 84);
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

// Scale and minimum of part `part` (< 8) of a Q4_K or Q5_K block.
struct ScaleMin {
  uint8_t scale, min;
};
ScaleMin GetScaleMin(const uint8_t* scales, size_t part);

// The 256 values q (0 to 63) of a Q6_K block, in order.
void UnpackQ6K(const BlockQ6_K& block, uint8_t* q);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_TYPES_H_
