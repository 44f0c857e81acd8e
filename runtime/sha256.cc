#include "runtime/sha256.h"

#include <algorithm>
#include <cstring>

namespace lanewise {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64
// primes.
constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t RotateRight(uint32_t x, int bits) {
  return (x >> bits) | (x << (32 - bits));
}

uint32_t LoadBigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 |
         uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

void StoreBigEndian(uint32_t value, uint8_t* bytes) {
  for (int i = 0; i < 4; ++i) {
    bytes[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
  }
}

}  // namespace

void Sha256::AddBlock(const uint8_t* block) {
  uint32_t w[64];
  for (size_t t = 0; t < 16; ++t) w[t] = LoadBigEndian(block + 4 * t);
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t s0 = RotateRight(w[t - 15], 7) ^ RotateRight(w[t - 15], 18) ^
                        (w[t - 15] >> 3);
    const uint32_t s1 = RotateRight(w[t - 2], 17) ^ RotateRight(w[t - 2], 19) ^
                        (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  uint32_t a = state_[0], b = state_[1], c = state_[2], d = state_[3];
  uint32_t e = state_[4], f = state_[5], g = state_[6], h = state_[7];
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t sum1 =
        RotateRight(e, 6) ^ RotateRight(e, 11) ^ RotateRight(e, 25);
    const uint32_t choose = (e & f) ^ (~e & g);
    const uint32_t t1 = h + sum1 + choose + kRoundConstants[t] + w[t];
    const uint32_t sum0 =
        RotateRight(a, 2) ^ RotateRight(a, 13) ^ RotateRight(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const uint32_t t2 = sum0 + majority;
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += added[i];
}

void Sha256::Update(absl::Span<const uint8_t> bytes) {
  if (bytes.empty()) return;
  const size_t held = bytes_ % kBlockBytes;
  bytes_ += bytes.size();
  const uint8_t* data = bytes.data();
  size_t left = bytes.size();
  if (held > 0) {
    const size_t taken = std::min(kBlockBytes - held, left);
    std::memcpy(pending_.data() + held, data, taken);
    data += taken;
    left -= taken;
    if (held + taken < kBlockBytes) return;
    AddBlock(pending_.data());
  }
  for (; left >= kBlockBytes; left -= kBlockBytes, data += kBlockBytes) {
    AddBlock(data);
  }
  if (left > 0) std::memcpy(pending_.data(), data, left);
}

void Sha256::Update(absl::string_view bytes) {
  Update(absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                             bytes.size()));
}

void Sha256::UpdateFloats(absl::Span<const float> values) {
  static_assert(sizeof(float) == 4, "IEEE single precision");
  uint8_t buffer[256 * sizeof(float)];
  while (!values.empty()) {
    const size_t count = std::min<size_t>(values.size(), 256);
    for (size_t i = 0; i < count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, &values[i], sizeof(bits));
      for (size_t byte = 0; byte < 4; ++byte) {
        buffer[4 * i + byte] = static_cast<uint8_t>(bits >> (8 * byte));
      }
    }
    Update(absl::MakeConstSpan(buffer, 4 * count));
    values.remove_prefix(count);
  }
}

Sha256::Digest Sha256::Finish() const {
  Sha256 last = *this;
  // One bit 1, zeros to 8 bytes before the end of a block, the length in bits.
  uint8_t padding[kBlockBytes + 8] = {0x80};
  const size_t held = bytes_ % kBlockBytes;
  const size_t zeros_end = (held < 56 ? 56 : 120) - held;
  const uint64_t bits = bytes_ * 8;
  StoreBigEndian(static_cast<uint32_t>(bits >> 32), padding + zeros_end);
  StoreBigEndian(static_cast<uint32_t>(bits), padding + zeros_end + 4);
  last.Update(absl::MakeConstSpan(padding, zeros_end + 8));
  Digest digest;
  for (size_t i = 0; i < 8; ++i) {
    StoreBigEndian(last.state_[i], digest.data() + 4 * i);
  }
  return digest;
}

std::string Sha256::HexDigest() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * kDigestBytes);
  for (const uint8_t byte : Finish()) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace lanewise
