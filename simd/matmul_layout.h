// How packed weights and stored activations lie in memory: written by
// matmul_pack.cc and matmul.cc, read by the kernels of matmul_*.cc. Internal to
// the matmul target.
//
// Weights are panels of 16 columns. A quantized panel is a sequence of blocks
// of 32 k, its scales before its integers, so that one panel is one sequential
// stream. Integers come in quads: the 4 consecutive k of one column are 4
// adjacent bytes (one 32-bit lane), 16 columns make 64 bytes, 8 quads a block.
// They are unsigned; what the format subtracts is applied to the sums.
//
// 4-bit: byte vector v (of 4) holds quad v in its low and quad v + 4 in its
// high halves. 2-bit: byte vector v (of 2) holds quad v + 2 f in bits 2 f,
// 2 f + 1.
#ifndef LANEWISE_SIMD_MATMUL_LAYOUT_H_
#define LANEWISE_SIMD_MATMUL_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "hwy/aligned_allocator.h"
#include "simd/matmul.h"
#include "simd/target.h"
#include "simd/types.h"

namespace lanewise {

inline constexpr size_t kQuadBytes = 4 * kPanelColumns;
inline constexpr size_t kQuads = kBlockSize / 4;

struct PanelQ4_0 {
  uint16_t d[16];  // bits of halves, here and below
  uint8_t q[256];
};
struct PanelQ4_1 {
  uint16_t d[16], m[16];
  uint8_t q[256];
};
struct PanelQ8_0 {
  uint16_t d[16];
  uint8_t q[512];  // weight + 128
};
struct PanelQ4_K {
  struct Part {
    uint8_t scale[16], min[16];  // 6 bits used
    uint8_t q[256];
  };
  uint16_t d[16], dmin[16];
  Part parts[8];
};
struct PanelQ6_K {
  struct Part {
    int8_t scale[2][16];  // of k < 16 and of k >= 16
    uint8_t low[256];
    uint8_t high[128];
  };
  uint16_t d[16];
  Part parts[8];
};

static_assert(sizeof(PanelQ4_0) == 16 * sizeof(BlockQ4_0));
static_assert(sizeof(PanelQ4_1) == 16 * sizeof(BlockQ4_1));
static_assert(sizeof(PanelQ8_0) == 16 * sizeof(BlockQ8_0));
static_assert(sizeof(PanelQ4_K) == 16 * (sizeof(BlockQ4_K) + 4));
static_assert(sizeof(PanelQ6_K) == 16 * sizeof(BlockQ6_K));

// One unit of a panel is `step` elements of k in `bytes` bytes. Plain types:
// F32 and F16 [k][16]; BF16 [k / 2][16] pairs, the even k in the low half of 32
// bits, an odd K padded with zero.
struct PanelUnit {
  size_t step, bytes;
};
PanelUnit PanelUnitOf(DType type);

// Smallest magnitude that bf16 operands keep: 2^-56. What is smaller (after
// rounding) becomes +0, so that no partial sum is denormal.
inline constexpr uint32_t kSmallestBF16Operand = 0x23800000;  // bits as f32

// 32 quantized activations of one row: x = d · q.
struct ActivationBlock {
  float d;
  float sum;             // of the 32 q
  int32_t minus_sum;     // −sum
  int32_t minus_sum_lo;  // − the sum of the first 16 q
};

struct Activations::Storage {
  hwy::AlignedFreeUniquePtr<float[]> f32, bf16;  // bf16: rounded, kept as f32
  hwy::AlignedFreeUniquePtr<int8_t[]> q;
  hwy::AlignedFreeUniquePtr<ActivationBlock[]> blocks;
  size_t max_m = 0, max_k = 0;

  // Distances of rows. Odd in cache lines, so that the rows of a tile do not
  // fall into one set.
  static size_t FloatStride(size_t k) { return ((k + 15) / 16 * 16) | 16; }
  static size_t ByteStride(size_t k) { return ((k + 63) / 64 * 64) | 64; }
  static size_t BlockStride(size_t k) {
    return (k + kBlockSize - 1) / kBlockSize;
  }
};

// Work of one kernel call: up to kMaxTaskRows activation rows times one panel.
inline constexpr size_t kMaxTaskRows = 128;

struct PanelProduct {
  const uint8_t* panel;
  size_t k;
  size_t rows;
  // Activations, either x (kF32, kBF16) or q and blocks (kInt8).
  const float* x = nullptr;
  size_t x_stride = 0;
  const int8_t* q = nullptr;
  size_t q_stride = 0;
  const ActivationBlock* blocks = nullptr;
  size_t block_stride = 0;
  // Output: columns (at most 16) of `rows` rows.
  float* c;
  size_t ldc;
  size_t columns;
  const float* bias = nullptr;  // [columns]
  bool accumulate = false;
};

// Kernels: one family a file. Int8 takes q and blocks, F32 takes x.
void PanelQ4_0Int8(const Target& target, const PanelProduct& product);
void PanelQ4_1Int8(const Target& target, const PanelProduct& product);
void PanelQ8_0Int8(const Target& target, const PanelProduct& product);
void PanelQ4_KInt8(const Target& target, const PanelProduct& product);
void PanelQ6_KInt8(const Target& target, const PanelProduct& product);
void PanelQ4_0F32(const Target& target, const PanelProduct& product);
void PanelQ4_1F32(const Target& target, const PanelProduct& product);
void PanelQ8_0F32(const Target& target, const PanelProduct& product);
void PanelQ4_KF32(const Target& target, const PanelProduct& product);
void PanelQ6_KF32(const Target& target, const PanelProduct& product);
void PanelF32(const Target& target, const PanelProduct& product);
void PanelF16(const Target& target, const PanelProduct& product);
void PanelBF16(const Target& target, const PanelProduct& product);  // rounded x
void PanelBF16F32(const Target& target, const PanelProduct& product);

// Fills one row of a representation; `floats` or `q` and `blocks` are that
// row's. See Activations::Prepare.
void RoundRowToBF16(const Target& target, const float* x, size_t k,
                    float* floats);
void QuantizeRow(const Target& target, const float* x, size_t k, int8_t* q,
                 ActivationBlock* blocks);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_MATMUL_LAYOUT_H_
