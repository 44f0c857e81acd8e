// Rotation of the queries and keys of one token: 12 heads of 64, and 40 of 128.
#include <cstdint>
#include <vector>

#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "simd/rope.h"

namespace lanewise {
namespace {

template <RopePairing kPairing>
void BM_Rope(benchmark::State& state, const Target& target) {
  const size_t dim = static_cast<size_t>(state.range(0));
  const size_t heads = dim == 64 ? 12 : 40;
  std::vector<float> x(heads * dim, 0.5f);
  const std::vector<float> cos(dim / 2, 0.8f), sin(dim / 2, 0.6f);
  for (auto _ : state) {
    ApplyRope(target, x.data(), heads, dim, dim, kPairing, cos.data(),
              sin.data());
    benchmark::ClobberMemory();
  }
  // Read and written.
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(2 * x.size() * sizeof(float)));
}

const bool kRegistered = [] {
  RegisterPerTarget("BM_RopeHalves", {64, 128}, BM_Rope<RopePairing::kHalves>);
  RegisterPerTarget("BM_RopeInterleaved", {64, 128},
                    BM_Rope<RopePairing::kInterleaved>);
  return true;
}();

}  // namespace
}  // namespace lanewise
