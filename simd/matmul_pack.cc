// Packing of weights into panels, and the way back.
#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "simd/matmul.h"
#include "simd/matmul_layout.h"

namespace lanewise {
namespace {

// Offset, within a block of quads of one byte each, of element k of a column.
size_t ByteOffset(size_t k, size_t column) {
  return k / 4 * kQuadBytes + column * 4 + k % 4;
}

// Stores 32 values below 16 as 4-bit quads.
void PackNibbles(const uint8_t* values, size_t column, uint8_t* q) {
  for (size_t k = 0; k < 16; ++k) {
    q[ByteOffset(k, column)] =
        static_cast<uint8_t>(values[k] | values[k + 16] << 4);
  }
}

void UnpackNibbles(const uint8_t* q, size_t column, uint8_t* values) {
  for (size_t k = 0; k < 16; ++k) {
    const uint8_t byte = q[ByteOffset(k, column)];
    values[k] = byte & 15;
    values[k + 16] = byte >> 4;
  }
}

// Byte and shift of the 2-bit field of element k.
size_t FieldByte(size_t k, size_t column) {
  return k / 4 % 2 * kQuadBytes + column * 4 + k % 4;
}
size_t FieldShift(size_t k) { return k / 8 * 2; }

LittleU16 Little(uint16_t bits) {
  return {{static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)}};
}

// Put copies one block of a row into column `column` of a panel unit; Get is
// its inverse and restores what decoding reads.

// In Q4_0 and Q4_1 byte j already holds elements j and j + 16.
void PutBytes(const uint8_t (&in)[16], size_t column, uint8_t* q) {
  for (size_t k = 0; k < 16; k += 4) {
    std::memcpy(q + ByteOffset(k, column), in + k, 4);
  }
}

void GetBytes(const uint8_t* q, size_t column, uint8_t (&out)[16]) {
  for (size_t k = 0; k < 16; k += 4) {
    std::memcpy(out + k, q + ByteOffset(k, column), 4);
  }
}

void Put(const BlockQ4_0& in, size_t column, PanelQ4_0* out) {
  out->d[column] = in.d.get();
  PutBytes(in.q, column, out->q);
}

void Get(const PanelQ4_0& in, size_t column, BlockQ4_0* out) {
  out->d = Little(in.d[column]);
  GetBytes(in.q, column, out->q);
}

void Put(const BlockQ4_1& in, size_t column, PanelQ4_1* out) {
  out->d[column] = in.d.get();
  out->m[column] = in.m.get();
  PutBytes(in.q, column, out->q);
}

void Get(const PanelQ4_1& in, size_t column, BlockQ4_1* out) {
  out->d = Little(in.d[column]);
  out->m = Little(in.m[column]);
  GetBytes(in.q, column, out->q);
}

void Put(const BlockQ8_0& in, size_t column, PanelQ8_0* out) {
  out->d[column] = in.d.get();
  for (size_t k = 0; k < kBlockSize; ++k) {
    out->q[ByteOffset(k, column)] = static_cast<uint8_t>(in.q[k] + 128);
  }
}

void Get(const PanelQ8_0& in, size_t column, BlockQ8_0* out) {
  out->d = Little(in.d[column]);
  for (size_t k = 0; k < kBlockSize; ++k) {
    out->q[k] = static_cast<int8_t>(in.q[ByteOffset(k, column)] - 128);
  }
}

// Part p of Q4_K: 32 bytes hold part 2 (p / 2) in the low and the next in the
// high halves.
void Put(const BlockQ4_K& in, size_t column, PanelQ4_K* out) {
  out->d[column] = in.d.get();
  out->dmin[column] = in.dmin.get();
  for (size_t p = 0; p < 8; ++p) {
    const ScaleMin part = GetScaleMin(in.scales, p);
    out->parts[p].scale[column] = part.scale;
    out->parts[p].min[column] = part.min;
    uint8_t values[kBlockSize];
    for (size_t k = 0; k < kBlockSize; ++k) {
      values[k] = in.q[p / 2 * 32 + k] >> (p % 2 * 4) & 15;
    }
    PackNibbles(values, column, out->parts[p].q);
  }
}

void Get(const PanelQ4_K& in, size_t column, BlockQ4_K* out) {
  *out = {};
  out->d = Little(in.d[column]);
  out->dmin = Little(in.dmin[column]);
  for (size_t p = 0; p < 8; ++p) {
    const uint8_t scale = in.parts[p].scale[column];
    const uint8_t min = in.parts[p].min[column];
    uint8_t* scales = out->scales;
    if (p < 4) {
      scales[p] = static_cast<uint8_t>(scales[p] | scale);
      scales[p + 4] = static_cast<uint8_t>(scales[p + 4] | min);
    } else {
      scales[p + 4] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
      scales[p - 4] = static_cast<uint8_t>(scales[p - 4] | scale >> 4 << 6);
      scales[p] = static_cast<uint8_t>(scales[p] | min >> 4 << 6);
    }
    uint8_t values[kBlockSize];
    UnpackNibbles(in.parts[p].q, column, values);
    for (size_t k = 0; k < kBlockSize; ++k) {
      uint8_t& byte = out->q[p / 2 * 32 + k];
      byte = static_cast<uint8_t>(byte | values[k] << (p % 2 * 4));
    }
  }
}

void Put(const BlockQ6_K& in, size_t column, PanelQ6_K* out) {
  out->d[column] = in.d.get();
  uint8_t values[kSuperblockSize];
  UnpackQ6K(in, values);
  for (size_t p = 0; p < 8; ++p) {
    PanelQ6_K::Part& part = out->parts[p];
    const uint8_t* q = values + p * kBlockSize;
    part.scale[0][column] = in.scales[2 * p];
    part.scale[1][column] = in.scales[2 * p + 1];
    uint8_t low[kBlockSize];
    for (size_t k = 0; k < kBlockSize; ++k) low[k] = q[k] & 15;
    PackNibbles(low, column, part.low);
    for (size_t k = 0; k < 8; ++k) {
      part.high[FieldByte(k, column)] =
          static_cast<uint8_t>(q[k] >> 4 | q[k + 8] >> 4 << 2 |
                               q[k + 16] >> 4 << 4 | q[k + 24] >> 4 << 6);
    }
  }
}

void Get(const PanelQ6_K& in, size_t column, BlockQ6_K* out) {
  *out = {};
  out->d = Little(in.d[column]);
  for (size_t p = 0; p < 8; ++p) {
    const PanelQ6_K::Part& part = in.parts[p];
    out->scales[2 * p] = part.scale[0][column];
    out->scales[2 * p + 1] = part.scale[1][column];
    uint8_t low[kBlockSize];
    UnpackNibbles(part.low, column, low);
    for (size_t k = 0; k < kBlockSize; ++k) {
      const size_t i = p * kBlockSize + k;
      const size_t half = i / 128, in_half = i % 128;
      const int high = part.high[FieldByte(k, column)] >> FieldShift(k) & 3;
      uint8_t& low_byte = out->low[half * 64 + in_half % 64];
      low_byte = static_cast<uint8_t>(low_byte | low[k] << in_half / 64 * 4);
      uint8_t& high_byte = out->high[half * 32 + in_half % 32];
      high_byte = static_cast<uint8_t>(high_byte | high << in_half / 32 * 2);
    }
  }
}

template <class Block, class Panel>
void PutRow(const uint8_t* row, size_t units, size_t column, uint8_t* panel) {
  for (size_t i = 0; i < units; ++i) {
    Block block;
    std::memcpy(&block, row + i * sizeof(Block), sizeof(Block));
    Put(block, column, reinterpret_cast<Panel*>(panel) + i);
  }
}

template <class Block, class Panel>
void GetRow(DType type, const uint8_t* panel, size_t units, size_t column,
            float* out) {
  const DTypeTraits& traits = Traits(type);
  for (size_t i = 0; i < units; ++i) {
    Block block;
    Get(reinterpret_cast<const Panel*>(panel)[i], column, &block);
    traits.decode(reinterpret_cast<const uint8_t*>(&block), traits.block_size,
                  out + i * traits.block_size);
  }
}

uint16_t LoadU16(const uint8_t* bytes) {
  return LittleU16{{bytes[0], bytes[1]}}.get();
}

void PutBF16(const uint8_t* row, size_t cols, size_t column, uint8_t* panel) {
  uint32_t* pairs = reinterpret_cast<uint32_t*>(panel) + column;
  for (size_t k = 0; k < cols; ++k) {
    uint32_t bits = LoadU16(row + 2 * k);
    if ((bits & 0x7FFF) < kSmallestBF16Operand >> 16) bits = 0;
    pairs[k / 2 * kPanelColumns] |= bits << (k % 2 * 16);
  }
}

// Any type, as the float it decodes to.
void PutF32(DType type, const uint8_t* row, size_t cols, size_t column,
            uint8_t* panel) {
  const DTypeTraits& traits = Traits(type);
  float* out = reinterpret_cast<float*>(panel) + column;
  float values[kSuperblockSize];
  const size_t step = kSuperblockSize / traits.block_size * traits.block_size;
  for (size_t k = 0; k < cols; k += step) {
    const size_t n = std::min(step, cols - k);
    traits.decode(row + BytesOf(type, k), n, values);
    for (size_t i = 0; i < n; ++i) out[(k + i) * kPanelColumns] = values[i];
  }
}

void PutColumn(DType source, DType type, const uint8_t* row, size_t cols,
               size_t column, uint8_t* panel) {
  const size_t units = cols / Traits(type).block_size;
  switch (type) {
    case DType::kF16:
      for (size_t k = 0; k < cols; ++k) {
        reinterpret_cast<uint16_t*>(panel)[k * kPanelColumns + column] =
            LoadU16(row + 2 * k);
      }
      return;
    case DType::kBF16:
      return PutBF16(row, cols, column, panel);
    case DType::kQ4_0:
      return PutRow<BlockQ4_0, PanelQ4_0>(row, units, column, panel);
    case DType::kQ4_1:
      return PutRow<BlockQ4_1, PanelQ4_1>(row, units, column, panel);
    case DType::kQ8_0:
      return PutRow<BlockQ8_0, PanelQ8_0>(row, units, column, panel);
    case DType::kQ4_K:
      return PutRow<BlockQ4_K, PanelQ4_K>(row, units, column, panel);
    case DType::kQ6_K:
      return PutRow<BlockQ6_K, PanelQ6_K>(row, units, column, panel);
    default:
      return PutF32(source, row, cols, column, panel);
  }
}

// The type of the panels that hold weights of `type`.
DType PackedType(DType type) {
  switch (type) {
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ8_0:
    case DType::kQ4_K:
    case DType::kQ6_K:
      return type;
    default:
      return DType::kF32;
  }
}

}  // namespace

PanelUnit PanelUnitOf(DType type) {
  switch (type) {
    case DType::kF16:
      return {1, 2 * kPanelColumns};
    case DType::kBF16:
      return {2, 4 * kPanelColumns};
    case DType::kQ4_0:
      return {kBlockSize, sizeof(PanelQ4_0)};
    case DType::kQ4_1:
      return {kBlockSize, sizeof(PanelQ4_1)};
    case DType::kQ8_0:
      return {kBlockSize, sizeof(PanelQ8_0)};
    case DType::kQ4_K:
      return {kSuperblockSize, sizeof(PanelQ4_K)};
    case DType::kQ6_K:
      return {kSuperblockSize, sizeof(PanelQ6_K)};
    default:
      return {1, 4 * kPanelColumns};
  }
}

absl::StatusOr<PackedMatrix> Pack(const Context& context, DType type,
                                  size_t cols,
                                  absl::Span<const uint8_t* const> rows) {
  const DTypeTraits& traits = Traits(type);
  if (traits.decode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights: expected a floating-point or quantized type, "
                     "found ",
                     traits.name));
  }
  if (cols == 0 || cols % traits.block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "weights of type ", traits.name, ": expected rows of a multiple of ",
        traits.block_size, " elements, found ", cols));
  }
  PackedMatrix matrix;
  matrix.type_ = PackedType(type);
  matrix.rows_ = rows.size();
  matrix.cols_ = cols;
  const PanelUnit unit = PanelUnitOf(matrix.type_);
  const size_t units = (cols - 1) / unit.step + 1;
  const size_t panels =
      rows.size() / kPanelColumns + (rows.size() % kPanelColumns != 0);
  constexpr size_t kMaxBytes = std::numeric_limits<size_t>::max() / 2;
  if (units > (kMaxBytes - kQuadBytes) / unit.bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("weights: rows of ", cols, " elements are too long"));
  }
  matrix.panel_bytes_ =
      (units * unit.bytes + kQuadBytes - 1) / kQuadBytes * kQuadBytes;
  if (panels > kMaxBytes / matrix.panel_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "weights: ", rows.size(), " rows of ", cols, " elements are too many"));
  }
  matrix.bytes_ = panels * matrix.panel_bytes_;
  if (panels == 0) return matrix;
  matrix.data_ = hwy::AllocateAligned<uint8_t>(matrix.bytes_);
  if (matrix.data_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("weights: no memory for ", matrix.bytes_, " bytes"));
  }
  context.ParallelFor(panels, [&](size_t index, size_t) {
    uint8_t* panel = matrix.data_.get() + index * matrix.panel_bytes_;
    std::memset(panel, 0, matrix.panel_bytes_);
    const size_t first = index * kPanelColumns;
    const size_t columns = std::min(kPanelColumns, rows.size() - first);
    for (size_t column = 0; column < columns; ++column) {
      PutColumn(type, matrix.type_, rows[first + column], cols, column, panel);
    }
  });
  return matrix;
}

void DecodeRow(const PackedMatrix& matrix, size_t row, float* out) {
  const uint8_t* panel = matrix.panel(row / kPanelColumns);
  const size_t column = row % kPanelColumns;
  const DType type = matrix.type();
  const size_t cols = matrix.cols();
  const size_t units = cols / Traits(type).block_size;
  switch (type) {
    case DType::kF16:
      for (size_t k = 0; k < cols; ++k) {
        out[k] = F32FromF16(reinterpret_cast<const uint16_t*>(
            panel)[k * kPanelColumns + column]);
      }
      return;
    case DType::kBF16:
      for (size_t k = 0; k < cols; ++k) {
        const uint32_t pair = reinterpret_cast<const uint32_t*>(
            panel)[k / 2 * kPanelColumns + column];
        out[k] = F32FromBF16(static_cast<uint16_t>(pair >> (k % 2 * 16)));
      }
      return;
    case DType::kQ4_0:
      return GetRow<BlockQ4_0, PanelQ4_0>(type, panel, units, column, out);
    case DType::kQ4_1:
      return GetRow<BlockQ4_1, PanelQ4_1>(type, panel, units, column, out);
    case DType::kQ8_0:
      return GetRow<BlockQ8_0, PanelQ8_0>(type, panel, units, column, out);
    case DType::kQ4_K:
      return GetRow<BlockQ4_K, PanelQ4_K>(type, panel, units, column, out);
    case DType::kQ6_K:
      return GetRow<BlockQ6_K, PanelQ6_K>(type, panel, units, column, out);
    default:
      for (size_t k = 0; k < cols; ++k) {
        out[k] =
            reinterpret_cast<const float*>(panel)[k * kPanelColumns + column];
      }
  }
}

}  // namespace lanewise
