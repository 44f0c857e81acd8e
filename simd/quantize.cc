#include "simd/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lanewise {
namespace {

constexpr float kMaxHalf = 65504.0f;
constexpr float kMinHalf = 0x1p-24f;
constexpr float kMaxBFloat = 0x1.FEp127f;
// Far beyond what a block can hold, and small enough for sums of squares.
constexpr float kMaxValue = 0x1p40f;
// Half of the smallest scale: what is not larger rounds to 0 under any.
constexpr float kNegligible = 0x1p-25f;

// The integers of a format.
struct Range {
  float low, high;
};

// Nearest even; |x| < 2^22.
float Round(float x) { return x + 0x1.8p23f - 0x1.8p23f; }

float Quantize(float x, float inverse, const Range& range) {
  return Round(std::clamp(x * inverse, range.low, range.high));
}

LittleU16 Little(uint16_t bits) {
  return {{static_cast<uint8_t>(bits & 0xFF), static_cast<uint8_t>(bits >> 8)}};
}

// A half as a file holds it, with its value.
struct Half {
  LittleU16 bits;
  float value;
};

Half ToHalf(float x) {
  const uint16_t bits = F16FromF32(std::clamp(x, -kMaxHalf, kMaxHalf));
  return {Little(bits), F32FromF16(bits)};
}

// As ToHalf, but 0 for 0 only, and that without a sign.
Half ToScale(float x) {
  if (x == 0.0f) return {};
  if (x > 0.0f && x < kMinHalf) x = kMinHalf;
  if (x < 0.0f && x > -kMinHalf) x = -kMinHalf;
  return ToHalf(x);
}

float Inverse(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

float Square(float x) { return x * x; }

// The element of the largest magnitude; the first of equals.
float Peak(const float* x, size_t n) {
  float peak = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    if (std::abs(x[i]) > std::abs(peak)) peak = x[i];
  }
  return peak;
}

// x ≈ scale · q + offset.
struct Line {
  float scale, offset;
};

// The squared error when q is what Quantize gives under this very line.
float ErrorOf(const float* x, size_t n, const Line& line, const Range& range) {
  const float inverse = Inverse(line.scale);
  float error = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    const float q = Quantize(x[i] - line.offset, inverse, range);
    error += Square(x[i] - (line.scale * q + line.offset));
  }
  return error;
}

// The scale of x ≈ scale · q that has the least squared error among those that
// put the peak near range.low.
float FitScale(const float* x, size_t n, const Range& range) {
  const float peak = Peak(x, n);
  if (std::abs(peak) <= kNegligible) return 0.0f;
  float best_gain = -1.0f, best_scale = 0.0f;
  for (int step = -9; step <= 9; ++step) {
    const float inverse = (range.low - 0.1f * static_cast<float>(step)) / peak;
    float xq = 0.0f, qq = 0.0f;
    for (size_t i = 0; i < n; ++i) {
      const float q = Quantize(x[i], inverse, range);
      xq += x[i] * q;
      qq += q * q;
    }
    // The error is Σx² − gain at the best scale for these q.
    const float gain = xq / qq * xq;
    if (gain > best_gain) {
      best_gain = gain;
      best_scale = xq / qq;
    }
  }
  return best_scale;
}

// The best line for the q that `inverse` gives; keeps `offset` where asked.
Line Regress(const float* x, size_t n, float inverse, float offset,
             const Range& range, bool offset_below_0) {
  float q1 = 0.0f, qq = 0.0f, x1 = 0.0f, xq = 0.0f;
  for (size_t i = 0; i < n; ++i) {
    const float q = Quantize(x[i] - offset, inverse, range);
    q1 += q;
    qq += q * q;
    x1 += x[i];
    xq += x[i] * q;
  }
  const float count = static_cast<float>(n);
  const float determinant = count * qq - q1 * q1;
  if (determinant <= 0.0f) return {0.0f, offset};
  const Line line = {(count * xq - q1 * x1) / determinant,
                     (qq * x1 - q1 * xq) / determinant};
  if (offset_below_0 && line.offset > 0.0f) return {xq / qq, 0.0f};
  return line;
}

// The line of least squared error with q from 0 to range.high among those
// that spread q about over all values.
Line FitLine(const float* x, size_t n, const Range& range,
             bool offset_below_0) {
  float low = *std::min_element(x, x + n);
  const float high = *std::max_element(x, x + n);
  if (offset_below_0) low = std::min(low, 0.0f);
  const float spread = high - low;
  if (spread <= kNegligible) return {0.0f, low};
  Line best = {spread / range.high, low};
  float best_error = ErrorOf(x, n, best, range);
  for (int step = -10; step <= 10; ++step) {
    const float inverse =
        (range.high + 0.1f * static_cast<float>(step)) / spread;
    const Line line = Regress(x, n, inverse, low, range, offset_below_0);
    if (!(line.scale > 0.0f)) continue;
    const float error = ErrorOf(x, n, line, range);
    if (error < best_error) {
      best_error = error;
      best = line;
    }
  }
  return best;
}

// Blocks of 32.

void PackNibbles(const uint8_t* q, uint8_t* out) {
  for (size_t j = 0; j < 16; ++j) {
    out[j] = static_cast<uint8_t>(q[j] | q[j + 16] << 4);
  }
}

void EncodeBlock(const float* x, BlockQ8_0* block) {
  constexpr Range kRange = {-127.0f, 127.0f};
  const float peak = std::abs(Peak(x, kBlockSize));
  const Half d = ToScale(peak <= kNegligible ? 0.0f : peak / kRange.high);
  const float inverse = Inverse(d.value);
  block->d = d.bits;
  for (size_t j = 0; j < kBlockSize; ++j) {
    block->q[j] = static_cast<int8_t>(Quantize(x[j], inverse, kRange));
  }
}

void EncodeBlock(const float* x, BlockQ4_0* block) {
  constexpr Range kRange = {-8.0f, 7.0f};
  const float peak = Peak(x, kBlockSize);
  Half d = ToScale(FitScale(x, kBlockSize, kRange));
  const Half plain =
      ToScale(std::abs(peak) <= kNegligible ? 0.0f : peak / kRange.low);
  if (ErrorOf(x, kBlockSize, {plain.value, 0.0f}, kRange) <=
      ErrorOf(x, kBlockSize, {d.value, 0.0f}, kRange)) {
    d = plain;
  }
  const float inverse = Inverse(d.value);
  uint8_t q[kBlockSize];
  for (size_t j = 0; j < kBlockSize; ++j) {
    q[j] = static_cast<uint8_t>(Quantize(x[j], inverse, kRange) - kRange.low);
  }
  block->d = d.bits;
  PackNibbles(q, block->q);
}

void EncodeBlock(const float* x, BlockQ4_1* block) {
  constexpr Range kRange = {0.0f, 15.0f};
  const Line fit = FitLine(x, kBlockSize, kRange, /*offset_below_0=*/false);
  const float low = *std::min_element(x, x + kBlockSize);
  const float high = *std::max_element(x, x + kBlockSize);
  const float spread = high - low <= kNegligible ? 0.0f : high - low;
  Half d = ToScale(fit.scale), m = ToHalf(fit.offset);
  const Half plain = ToScale(spread / kRange.high), plain_m = ToHalf(low);
  if (ErrorOf(x, kBlockSize, {plain.value, plain_m.value}, kRange) <=
      ErrorOf(x, kBlockSize, {d.value, m.value}, kRange)) {
    d = plain;
    m = plain_m;
  }
  const float inverse = Inverse(d.value);
  uint8_t q[kBlockSize];
  for (size_t j = 0; j < kBlockSize; ++j) {
    q[j] = static_cast<uint8_t>(Quantize(x[j] - m.value, inverse, kRange));
  }
  block->d = d.bits;
  block->m = m.bits;
  PackNibbles(q, block->q);
}

// Blocks of 256.

constexpr size_t kParts = 8;
constexpr size_t kPartSize = kSuperblockSize / kParts;

// Q4_K and Q5_K before they are packed.
struct AffineSuperblock {
  Half d, dmin;
  ScaleMin parts[kParts];
  uint8_t q[kSuperblockSize];
};

Line LineOf(const AffineSuperblock& block, const ScaleMin& part) {
  return {block.d.value * static_cast<float>(part.scale),
          -block.dmin.value * static_cast<float>(part.min)};
}

// The integer scale and minimum of least error next to `fit`.
ScaleMin ChooseScaleMin(const float* x, const Line& fit,
                        const AffineSuperblock& block, const Range& range) {
  constexpr Range kSixBits = {0.0f, 63.0f};
  const int scale =
      static_cast<int>(Quantize(fit.scale, Inverse(block.d.value), kSixBits));
  const int min = static_cast<int>(
      Quantize(-fit.offset, Inverse(block.dmin.value), kSixBits));
  ScaleMin best = {static_cast<uint8_t>(scale), static_cast<uint8_t>(min)};
  float best_error = ErrorOf(x, kPartSize, LineOf(block, best), range);
  for (int s = std::max(scale - 1, 0); s <= std::min(scale + 1, 63); ++s) {
    for (int m = std::max(min - 1, 0); m <= std::min(min + 1, 63); ++m) {
      const ScaleMin part = {static_cast<uint8_t>(s), static_cast<uint8_t>(m)};
      const float error = ErrorOf(x, kPartSize, LineOf(block, part), range);
      if (error < best_error) {
        best_error = error;
        best = part;
      }
    }
  }
  return best;
}

AffineSuperblock QuantizeAffine(const float* x, float high) {
  const Range range = {0.0f, high};
  Line fits[kParts];
  float max_scale = 0.0f, max_min = 0.0f;
  for (size_t part = 0; part < kParts; ++part) {
    fits[part] = FitLine(x + part * kPartSize, kPartSize, range,
                         /*offset_below_0=*/true);
    max_scale = std::max(max_scale, fits[part].scale);
    max_min = std::max(max_min, -fits[part].offset);
  }
  AffineSuperblock block;
  block.d = ToScale(max_scale / 63.0f);
  block.dmin = ToScale(max_min <= kNegligible ? 0.0f : max_min / 63.0f);
  for (size_t part = 0; part < kParts; ++part) {
    const float* in = x + part * kPartSize;
    block.parts[part] = ChooseScaleMin(in, fits[part], block, range);
    const Line line = LineOf(block, block.parts[part]);
    const float inverse = Inverse(line.scale);
    for (size_t i = 0; i < kPartSize; ++i) {
      block.q[part * kPartSize + i] =
          static_cast<uint8_t>(Quantize(in[i] - line.offset, inverse, range));
    }
  }
  return block;
}

// The inverse of GetScaleMin.
void PackScaleMins(const ScaleMin* parts, uint8_t* out) {
  for (size_t j = 0; j < 4; ++j) {
    const ScaleMin& a = parts[j];
    const ScaleMin& b = parts[j + 4];
    out[j] = static_cast<uint8_t>(a.scale | b.scale >> 4 << 6);
    out[j + 4] = static_cast<uint8_t>(a.min | b.min >> 4 << 6);
    out[j + 8] = static_cast<uint8_t>((b.scale & 15) | (b.min & 15) << 4);
  }
}

void PackLowNibbles(const uint8_t* q, uint8_t* out) {
  for (size_t i = 0; i < kSuperblockSize / 2; ++i) {
    const size_t first = i / 32 * 64 + i % 32;
    out[i] = static_cast<uint8_t>((q[first] & 15) | (q[first + 32] & 15) << 4);
  }
}

void EncodeBlock(const float* x, BlockQ4_K* out) {
  const AffineSuperblock block = QuantizeAffine(x, 15.0f);
  out->d = block.d.bits;
  out->dmin = block.dmin.bits;
  PackScaleMins(block.parts, out->scales);
  PackLowNibbles(block.q, out->q);
}

void EncodeBlock(const float* x, BlockQ5_K* out) {
  const AffineSuperblock block = QuantizeAffine(x, 31.0f);
  out->d = block.d.bits;
  out->dmin = block.dmin.bits;
  PackScaleMins(block.parts, out->scales);
  PackLowNibbles(block.q, out->q);
  std::fill(std::begin(out->high), std::end(out->high), uint8_t{0});
  for (size_t i = 0; i < kSuperblockSize; ++i) {
    out->high[i % 32] =
        static_cast<uint8_t>(out->high[i % 32] | (block.q[i] >> 4) << (i / 32));
  }
}

// The integer scale of least error next to `fit`, for 16 elements.
int8_t ChooseScale(const float* x, float fit, float d, const Range& range) {
  constexpr Range kEightBits = {-128.0f, 127.0f};
  const int scale = static_cast<int>(Quantize(fit, Inverse(d), kEightBits));
  int best = scale;
  float best_error = -1.0f;
  for (int s = std::max(scale - 1, -128); s <= std::min(scale + 1, 127); ++s) {
    const float error =
        ErrorOf(x, 16, {d * static_cast<float>(s), 0.0f}, range);
    if (best_error < 0.0f || error < best_error) {
      best_error = error;
      best = s;
    }
  }
  return static_cast<int8_t>(best);
}

void EncodeBlock(const float* x, BlockQ6_K* out) {
  constexpr Range kRange = {-32.0f, 31.0f};
  float fits[16];
  for (size_t part = 0; part < 16; ++part) {
    fits[part] = FitScale(x + part * 16, 16, kRange);
  }
  const Half d = ToScale(Peak(fits, 16) / -128.0f);
  *out = {};
  out->d = d.bits;
  for (size_t part = 0; part < 16; ++part) {
    const float* in = x + part * 16;
    out->scales[part] = ChooseScale(in, fits[part], d.value, kRange);
    const float inverse =
        Inverse(d.value * static_cast<float>(out->scales[part]));
    for (size_t j = 0; j < 16; ++j) {
      const int q = static_cast<int>(Quantize(in[j], inverse, kRange)) + 32;
      const size_t i = part * 16 + j, half = i / 128, in_half = i % 128;
      uint8_t& low = out->low[half * 64 + in_half % 64];
      uint8_t& high = out->high[half * 32 + in_half % 32];
      low = static_cast<uint8_t>(low | (q & 15) << (in_half / 64 * 4));
      high = static_cast<uint8_t>(high | q >> 4 << (in_half / 32 * 2));
    }
  }
}

template <class Block, size_t kSize>
void EncodeBlocks(const float* values, size_t n, uint8_t* out) {
  float x[kSize];
  for (size_t i = 0; i < n; i += kSize, out += sizeof(Block)) {
    for (size_t j = 0; j < kSize; ++j) {
      x[j] = std::clamp(values[i + j], -kMaxValue, kMaxValue);
    }
    Block block;
    EncodeBlock(x, &block);
    std::memcpy(out, &block, sizeof(block));
  }
}

void EncodeF32(const float* values, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof(bits));
    for (size_t j = 0; j < 4; ++j) {
      out[4 * i + j] = static_cast<uint8_t>(bits >> (8 * j));
    }
  }
}

void EncodeF16(const float* values, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(out + 2 * i, ToHalf(values[i]).bits.bytes, 2);
  }
}

void EncodeBF16(const float* values, size_t n, uint8_t* out) {
  for (size_t i = 0; i < n; ++i) {
    const float value = std::clamp(values[i], -kMaxBFloat, kMaxBFloat);
    std::memcpy(out + 2 * i, Little(BF16FromF32(value)).bytes, 2);
  }
}

using Encoder = void (*)(const float* values, size_t n, uint8_t* out);

// Null for types that are not written.
Encoder EncoderOf(DType type) {
  switch (type) {
    case DType::kF32:
      return EncodeF32;
    case DType::kF16:
      return EncodeF16;
    case DType::kBF16:
      return EncodeBF16;
    case DType::kQ8_0:
      return EncodeBlocks<BlockQ8_0, kBlockSize>;
    case DType::kQ4_0:
      return EncodeBlocks<BlockQ4_0, kBlockSize>;
    case DType::kQ4_1:
      return EncodeBlocks<BlockQ4_1, kBlockSize>;
    case DType::kQ4_K:
      return EncodeBlocks<BlockQ4_K, kSuperblockSize>;
    case DType::kQ5_K:
      return EncodeBlocks<BlockQ5_K, kSuperblockSize>;
    case DType::kQ6_K:
      return EncodeBlocks<BlockQ6_K, kSuperblockSize>;
    default:
      return nullptr;
  }
}

}  // namespace

bool CanEncode(DType type) { return EncoderOf(type) != nullptr; }

void Encode(DType type, const float* values, size_t n, uint8_t* out) {
  EncoderOf(type)(values, n, out);
}

size_t FirstNonFinite(const float* values, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return n;
}

void RoundTripError::Add(const RoundTripError& other) {
  squared_error += other.squared_error;
  squared_value += other.squared_value;
  largest = std::max(largest, other.largest);
}

double RoundTripError::RelativeRms() const {
  return squared_error == 0.0 ? 0.0 : std::sqrt(squared_error / squared_value);
}

RoundTripError Compare(const float* values, const float* stored, size_t n) {
  RoundTripError error;
  for (size_t i = 0; i < n; ++i) {
    const double value = values[i];
    const double difference = value - stored[i];
    error.squared_error += difference * difference;
    error.squared_value += value * value;
    error.largest = std::max(error.largest, std::abs(difference));
  }
  return error;
}

}  // namespace lanewise
