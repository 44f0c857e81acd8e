#include "runtime/random.h"

#include <chrono>
#include <cstdio>

namespace lanewise {

uint64_t SeedFromSystem() {
  uint64_t seed = 0;
  // Not std::random_device: it may throw.
  if (std::FILE* file = std::fopen("/dev/urandom", "rb")) {
    const size_t read = std::fread(&seed, sizeof(seed), 1, file);
    std::fclose(file);
    if (read == 1) return seed;
  }
  const auto now = std::chrono::high_resolution_clock::now();
  const uint64_t ticks = static_cast<uint64_t>(now.time_since_epoch().count());
  const PhiloxCounter mixed = RandomBitsAt(ticks, 0, 0);
  return uint64_t{mixed[1]} << 32 | mixed[0];
}

}  // namespace lanewise
