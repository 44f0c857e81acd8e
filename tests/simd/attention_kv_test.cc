// StoreKv: where keys and values land, and how they are rounded.
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "simd/attention.h"
#include "simd/types.h"
#include "tests/simd/attention_reference.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

std::vector<uint8_t> Encode(CacheType type, float value) {
  std::vector<uint8_t> bytes(BytesOf(type));
  const uint16_t half =
      type == CacheType::kF16 ? F16FromF32(value) : BF16FromF32(value);
  if (type == CacheType::kF32) {
    std::memcpy(bytes.data(), &value, 4);
  } else {
    std::memcpy(bytes.data(), &half, 2);
  }
  return bytes;
}

// Compares every byte of the pages with the layout in simd/attention.h; bytes
// of keys outside [first, first + rows) must be untouched.
void ExpectLayout(const Target& target, const KvShape& shape, size_t first,
                  size_t rows, size_t threads) {
  const auto context = MakeContext(target, threads);
  TestRandom random(first + rows);
  const size_t k_row = shape.kv_heads * shape.qk_dim + 3;
  const size_t v_row = shape.kv_heads * shape.v_dim + 1;
  const std::vector<float> k = random.Uniforms(rows * k_row, -9.0f, 9.0f);
  const std::vector<float> v = random.Uniforms(rows * v_row, -9.0f, 9.0f);
  const size_t bytes = BytesOf(shape.type);
  const TestCache cache(shape, first + rows);
  StoreKv(*context, shape, cache.view(), first, rows, k.data(), k_row, v.data(),
          v_row);
  const std::vector<uint8_t> untouched(bytes, 0xFF);
  const auto expect_at = [&](size_t key, size_t element,
                             const std::vector<uint8_t>& expected) {
    const uint8_t* at = cache.layer(key / kKeysPerPage) + element * bytes;
    ASSERT_EQ(std::memcmp(at, expected.data(), bytes), 0)
        << "key " << key << " element " << element;
  };
  const size_t end = (first + rows + 63) / 64 * 64;
  for (size_t key = 0; key < end; ++key) {
    const bool stored = key >= first && key < first + rows;
    const size_t row = key - first, slot = key % 64;
    for (size_t h = 0; h < shape.kv_heads; ++h) {
      const size_t base = h * 64 * (shape.qk_dim + shape.v_dim);
      for (size_t d = 0; d < shape.qk_dim; ++d) {
        expect_at(
            key, base + slot / 16 * shape.qk_dim * 16 + d * 16 + slot % 16,
            stored ? Encode(shape.type, k[row * k_row + h * shape.qk_dim + d])
                   : untouched);
      }
      for (size_t d = 0; d < shape.v_dim; ++d) {
        expect_at(key, base + 64 * shape.qk_dim + slot * shape.v_dim + d,
                  stored
                      ? Encode(shape.type, v[row * v_row + h * shape.v_dim + d])
                      : untouched);
      }
    }
  }
}

TEST(StoreKv, Layout) {
  for (const CacheType type :
       {CacheType::kF32, CacheType::kF16, CacheType::kBF16}) {
    ForEachTarget([&](const Target& target) {
      ExpectLayout(target, {2, 12, 20, type}, 0, 1, 1);
      ExpectLayout(target, {3, 16, 16, type}, 63, 2, 1);
      ExpectLayout(target, {1, 80, 3, type}, 10, 150, 1);
      ExpectLayout(target, {1, 1, 130, type}, 64, 64, 1);
      ExpectLayout(target, {2, 96, 96, type}, 7, 400, 3);  // in parallel
    });
  }
}

// Every bit pattern near a rounding boundary, all exponents, infinities, NaN.
TEST(StoreKv, RoundsAsTheScalarConversions) {
  std::vector<float> values;
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const uint32_t mantissa :
         {0x0u,      0x1u,      0xFFFu,   0x1000u,   0x1001u,   0x1FFFu,
          0x2FFFu,   0x3000u,   0x3001u,  0x7FFFu,   0x8000u,   0x8001u,
          0x17FFFu,  0x18000u,  0x18001u, 0x3FFFFFu, 0x400000u, 0x400001u,
          0x7FEFFFu, 0x7FF000u, 0x7FFFFFu}) {
      for (const uint32_t sign : {0u, 0x80000000u}) {
        const uint32_t bits = sign | exponent << 23 | mantissa;
        float value;
        std::memcpy(&value, &bits, sizeof(value));
        values.push_back(value);
      }
    }
  }
  TestRandom random(3);
  for (size_t i = 0; i < 20000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random.Bits());
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    values.push_back(value);
  }
  for (const CacheType type : {CacheType::kF16, CacheType::kBF16}) {
    const KvShape shape = {1, 1, values.size(), type};
    ForEachTarget([&](const Target& target) {
      const auto context = MakeContext(target);
      const TestCache cache(shape, 1);
      StoreKv(*context, shape, cache.view(), 0, 1, values.data(), 1,
              values.data(), values.size());
      std::vector<uint16_t> stored(values.size());
      std::memcpy(stored.data(), cache.layer(0) + 64 * 2, stored.size() * 2);
      for (size_t i = 0; i < values.size(); ++i) {
        const uint16_t expected = type == CacheType::kF16
                                      ? F16FromF32(values[i])
                                      : BF16FromF32(values[i]);
        ASSERT_EQ(stored[i], expected)
            << "bits " << std::hex << BitsOfFloat(values[i]);
      }
    });
  }
}

}  // namespace
}  // namespace lanewise
