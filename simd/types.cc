#include "simd/types.h"

#include <cstring>

#include "absl/strings/match.h"

namespace lanewise {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

float Half(LittleU16 half) { return F32FromF16(half.get()); }

// Plain types, little-endian.

template <class T>
T LoadLittle(const uint8_t* bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>(value | static_cast<T>(bytes[i]) << (8 * i));
  }
  return value;
}

void DecodeF32(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i)
    out[i] = FloatOf(LoadLittle<uint32_t>(in + 4 * i));
}

void DecodeF16(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i)
    out[i] = F32FromF16(LoadLittle<uint16_t>(in + 2 * i));
}

void DecodeBF16(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i)
    out[i] = F32FromBF16(LoadLittle<uint16_t>(in + 2 * i));
}

// Rounded to float by nearest even; a finite double beyond the largest float
// becomes infinite.
void DecodeF64(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    const uint64_t bits = LoadLittle<uint64_t>(in + 8 * i);
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (value >= 0x1.ffffffp127) {
      out[i] = FloatOf(0x7F800000u);
    } else if (value <= -0x1.ffffffp127) {
      out[i] = FloatOf(0xFF800000u);
    } else {
      out[i] = static_cast<float>(value);
    }
  }
}

void DecodeI8(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<int8_t>(in[i]);
}

void DecodeU8(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) out[i] = in[i];
}

// E4M3 of the OCP 8-bit floating point specification: bias 7, no infinities,
// 0x7F and 0xFF are NaN.
void DecodeF8E4M3(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    const uint32_t sign = static_cast<uint32_t>(in[i] & 0x80) << 24;
    const uint32_t exponent = in[i] >> 3 & 15, mantissa = in[i] & 7;
    if ((in[i] & 0x7F) == 0x7F) {
      out[i] = FloatOf(sign | 0x7FC00000u);
    } else if (exponent != 0) {
      out[i] = FloatOf(sign | (exponent + 120) << 23 | mantissa << 20);
    } else {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
      out[i] = FloatOf(sign | BitsOf(magnitude));
    }
  }
}

// Blocks of 32.

void DecodeBlock(const BlockQ4_0& block, float* out) {
  const float d = Half(block.d);
  for (size_t j = 0; j < 16; ++j) {
    out[j] = static_cast<float>((block.q[j] & 15) - 8) * d;
    out[j + 16] = static_cast<float>((block.q[j] >> 4) - 8) * d;
  }
}

void DecodeBlock(const BlockQ4_1& block, float* out) {
  const float d = Half(block.d), m = Half(block.m);
  for (size_t j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(block.q[j] & 15) * d + m;
    out[j + 16] = static_cast<float>(block.q[j] >> 4) * d + m;
  }
}

// Bit 4 of element j, in place.
int HighBit(const uint8_t* high, size_t j) {
  return (high[j / 8] >> (j % 8) & 1) << 4;
}

void DecodeBlock(const BlockQ5_0& block, float* out) {
  const float d = Half(block.d);
  for (size_t j = 0; j < 16; ++j) {
    const int low = (block.q[j] & 15) | HighBit(block.high, j);
    const int high = block.q[j] >> 4 | HighBit(block.high, j + 16);
    out[j] = static_cast<float>(low - 16) * d;
    out[j + 16] = static_cast<float>(high - 16) * d;
  }
}

void DecodeBlock(const BlockQ5_1& block, float* out) {
  const float d = Half(block.d), m = Half(block.m);
  for (size_t j = 0; j < 16; ++j) {
    const int low = (block.q[j] & 15) | HighBit(block.high, j);
    const int high = block.q[j] >> 4 | HighBit(block.high, j + 16);
    out[j] = static_cast<float>(low) * d + m;
    out[j + 16] = static_cast<float>(high) * d + m;
  }
}

void DecodeBlock(const BlockQ8_0& block, float* out) {
  const float d = Half(block.d);
  for (size_t j = 0; j < 32; ++j) out[j] = static_cast<float>(block.q[j]) * d;
}

void DecodeBlock(const BlockIQ4_NL& block, float* out) {
  static constexpr int8_t kValues[16] = {
      -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const float d = Half(block.d);
  for (size_t j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(kValues[block.q[j] & 15]) * d;
    out[j + 16] = static_cast<float>(kValues[block.q[j] >> 4]) * d;
  }
}

void DecodeBlock(const BlockMXFP4& block, float* out) {
  // Twice the values of E2M1, and half the scale: all are integers.
  static constexpr int8_t kValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                         0, -1, -2, -3, -4, -6, -8, -12};
  const uint32_t e = block.e;
  const float half_scale = FloatOf(e < 2 ? 0x00200000u << e : (e - 1) << 23);
  for (size_t j = 0; j < 16; ++j) {
    out[j] = static_cast<float>(kValues[block.q[j] & 15]) * half_scale;
    out[j + 16] = static_cast<float>(kValues[block.q[j] >> 4]) * half_scale;
  }
}

// Blocks of 256. Products of scales and integers are exact in float; only the
// subtraction of a minimum rounds.

// 2-bit field of element i of Q2_K and Q3_K: 32 bytes hold 128 elements, 32 of
// them in each bit pair.
int TwoBits(const uint8_t* q, size_t i) {
  return q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

void DecodeBlock(const BlockQ2_K& block, float* out) {
  const float d = Half(block.d), dmin = Half(block.dmin);
  for (size_t i = 0; i < kSuperblockSize; ++i) {
    const uint8_t scale = block.scales[i / 16];
    const float ds = d * static_cast<float>(scale & 15);
    const float m = dmin * static_cast<float>(scale >> 4);
    out[i] = ds * static_cast<float>(TwoBits(block.q, i)) - m;
  }
}

void DecodeBlock(const BlockQ3_K& block, float* out) {
  const float d = Half(block.d);
  for (size_t i = 0; i < kSuperblockSize; ++i) {
    const size_t part = i / 16;
    const int low =
        part < 8 ? block.scales[part] & 15 : block.scales[part - 8] >> 4;
    const int high = block.scales[8 + part % 4] >> (part / 4 * 2) & 3;
    const int scale = (low | high << 4) - 32;
    const int top = block.high[i % 32] >> (i / 32) & 1;
    const int q = TwoBits(block.q, i) + 4 * top - 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q);
  }
}

void DecodeBlock(const BlockQ4_K& block, float* out) {
  const float d = Half(block.d), dmin = Half(block.dmin);
  for (size_t i = 0; i < kSuperblockSize; ++i) {
    const ScaleMin part = GetScaleMin(block.scales, i / 32);
    const int q = block.q[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    out[i] = d * static_cast<float>(part.scale) * static_cast<float>(q) -
             dmin * static_cast<float>(part.min);
  }
}

void DecodeBlock(const BlockQ5_K& block, float* out) {
  const float d = Half(block.d), dmin = Half(block.dmin);
  for (size_t i = 0; i < kSuperblockSize; ++i) {
    const ScaleMin part = GetScaleMin(block.scales, i / 32);
    const int low = block.q[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;
    const int q = low | (block.high[i % 32] >> (i / 32) & 1) << 4;
    out[i] = d * static_cast<float>(part.scale) * static_cast<float>(q) -
             dmin * static_cast<float>(part.min);
  }
}

void DecodeBlock(const BlockQ6_K& block, float* out) {
  const float d = Half(block.d);
  uint8_t q[kSuperblockSize];
  UnpackQ6K(block, q);
  for (size_t i = 0; i < kSuperblockSize; ++i) {
    out[i] = d * static_cast<float>(block.scales[i / 16]) *
             static_cast<float>(q[i] - 32);
  }
}

template <class Block, size_t kSize>
void DecodeBlocks(const uint8_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kSize, in += sizeof(Block)) {
    Block block;
    std::memcpy(&block, in, sizeof(block));
    DecodeBlock(block, out + i);
  }
}

template <class Block>
constexpr DTypeTraits BlockTraits(absl::string_view name) {
  return {name, kBlockSize, sizeof(Block), &DecodeBlocks<Block, kBlockSize>};
}

template <class Block>
constexpr DTypeTraits SuperblockTraits(absl::string_view name) {
  return {name, kSuperblockSize, sizeof(Block),
          &DecodeBlocks<Block, kSuperblockSize>};
}

// In the order of DType.
constexpr DTypeTraits kTraits[] = {
    {"F32", 1, 4, &DecodeF32},
    {"F16", 1, 2, &DecodeF16},
    {"BF16", 1, 2, &DecodeBF16},
    {"F64", 1, 8, &DecodeF64},
    {"I8", 1, 1, &DecodeI8},
    {"I16", 1, 2, nullptr},
    {"I32", 1, 4, nullptr},
    {"I64", 1, 8, nullptr},
    {"U8", 1, 1, &DecodeU8},
    {"BOOL", 1, 1, nullptr},
    {"F8_E4M3", 1, 1, &DecodeF8E4M3},
    BlockTraits<BlockQ4_0>("Q4_0"),
    BlockTraits<BlockQ4_1>("Q4_1"),
    BlockTraits<BlockQ5_0>("Q5_0"),
    BlockTraits<BlockQ5_1>("Q5_1"),
    BlockTraits<BlockQ8_0>("Q8_0"),
    SuperblockTraits<BlockQ2_K>("Q2_K"),
    SuperblockTraits<BlockQ3_K>("Q3_K"),
    SuperblockTraits<BlockQ4_K>("Q4_K"),
    SuperblockTraits<BlockQ5_K>("Q5_K"),
    SuperblockTraits<BlockQ6_K>("Q6_K"),
    BlockTraits<BlockIQ4_NL>("IQ4_NL"),
    BlockTraits<BlockMXFP4>("MXFP4"),
};
constexpr size_t kTypes = sizeof(kTraits) / sizeof(kTraits[0]);
static_assert(kTypes == static_cast<size_t>(DType::kMXFP4) + 1,
              "one row for each DType");

}  // namespace

const DTypeTraits& Traits(DType type) {
  return kTraits[static_cast<size_t>(type)];
}

std::optional<DType> DTypeFromName(absl::string_view name) {
  for (size_t i = 0; i < kTypes; ++i) {
    if (absl::EqualsIgnoreCase(kTraits[i].name, name)) {
      return static_cast<DType>(i);
    }
  }
  return std::nullopt;
}

float F32FromF16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 0x3FF;
  if (exponent == 31) return FloatOf(sign | 0x7F800000u | mantissa << 13);
  if (exponent != 0) {
    return FloatOf(sign | (exponent + 112) << 23 | mantissa << 13);
  }
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return FloatOf(sign | BitsOf(magnitude));
}

uint16_t F16FromF32(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t half;
  if (magnitude > 0x7F800000u) {  // NaN
    half = 0x7E00 | (magnitude >> 13 & 0x3FF);
  } else if (magnitude >= 0x477FF000u) {  // rounds to 65536 or beyond
    half = 0x7C00;
  } else if (magnitude >= 0x38800000u) {  // normal
    const uint32_t odd = magnitude >> 13 & 1;
    half = (magnitude - 0x38000000u + 0xFFF + odd) >> 13;
  } else if (magnitude > 0x33000000u) {  // above half the smallest subnormal
    const uint32_t shift = 126 - (magnitude >> 23);  // 14 to 24
    const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    const uint32_t kept = significand >> shift;
    const uint32_t rest = significand & ((1u << shift) - 1);
    const uint32_t tie = 1u << (shift - 1);
    half = kept + (rest > tie || (rest == tie && (kept & 1) != 0));
  } else {
    half = 0;
  }
  return static_cast<uint16_t>(sign | half);
}

float F32FromBF16(uint16_t bits) {
  return FloatOf(static_cast<uint32_t>(bits) << 16);
}

uint16_t BF16FromF32(float value) {
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  }
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

ScaleMin GetScaleMin(const uint8_t* scales, size_t part) {
  if (part < 4) {
    return {static_cast<uint8_t>(scales[part] & 63),
            static_cast<uint8_t>(scales[part + 4] & 63)};
  }
  return {static_cast<uint8_t>((scales[part + 4] & 15) |
                               scales[part - 4] >> 6 << 4),
          static_cast<uint8_t>(scales[part + 4] >> 4 | scales[part] >> 6 << 4)};
}

void UnpackQ6K(const BlockQ6_K& block, uint8_t* q) {
  for (size_t i = 0; i < kSuperblockSize; ++i) {
    const size_t half = i / 128, in_half = i % 128;
    const uint8_t low = block.low[half * 64 + in_half % 64];
    const uint8_t high = block.high[half * 32 + in_half % 32];
    q[i] = static_cast<uint8_t>((low >> (in_half / 64 * 4) & 15) |
                                (high >> (in_half / 32 * 2) & 3) << 4);
  }
}

}  // namespace lanewise
