// Random numbers that are a function of (seed, stream, step) and nothing else:
// Philox4x32-10, J. K. Salmon et al., "Parallel Random Numbers: As Easy as 1,
// 2, 3", SC 2011 (https://doi.org/10.1145/2063384.2063405). There is no state
// to save, restore or share: step 17 of a sequence draws the same number
// whatever else ran before it, on every machine.
//
//   const double u = UniformAt(seed, /*stream=*/0, /*step=*/17);  // [0, 1)
#ifndef LANEWISE_RUNTIME_RANDOM_H_
#define LANEWISE_RUNTIME_RANDOM_H_

#include <array>
#include <cstdint>

namespace lanewise {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// The ten-round bijection of the paper.
inline PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;  // golden ratio
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return counter;
}

// The 128 random bits at one place: the seed is the key; the counter is step
// (two low words), then stream, least significant word first.
inline PhiloxCounter RandomBitsAt(uint64_t seed, uint64_t stream,
                                  uint64_t step) {
  return Philox4x32(
      {static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32),
       static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

// A multiple of 2^-53 in [0, 1), each equally likely: the upper 53 bits of
// words 1 and 0.
inline double UniformAt(uint64_t seed, uint64_t stream, uint64_t step) {
  const PhiloxCounter bits = RandomBitsAt(seed, stream, step);
  const uint64_t word = uint64_t{bits[1]} << 32 | bits[0];
  return static_cast<double>(word >> 11) * 0x1p-53;
}

// A seed for those who gave none, from the system's entropy source and, should
// that fail, from the clock. To be reported, so that a run can be repeated.
uint64_t SeedFromSystem();

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_RANDOM_H_
