// Bytes per second that norms read and write, by target and width.
#include <vector>

#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "simd/norm.h"

namespace lanewise {
namespace {

void SetBytes(benchmark::State& state, size_t floats) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(floats * sizeof(float)));
}

void BM_RmsNorm(benchmark::State& state, const Target& target) {
  const size_t width = static_cast<size_t>(state.range(0));
  const std::vector<float> x(width, 0.5f);
  const std::vector<float> weight(width, 2.0f);
  std::vector<float> out(width);
  for (auto _ : state) {
    RmsNorm(target, x.data(), weight.data(), 1e-6f, width, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, 3 * width);
}

void BM_LayerNorm(benchmark::State& state, const Target& target) {
  const size_t width = static_cast<size_t>(state.range(0));
  const std::vector<float> x(width, 0.5f);
  const std::vector<float> weight(width, 2.0f);
  const std::vector<float> bias(width, 1.0f);
  std::vector<float> out(width);
  for (auto _ : state) {
    LayerNorm(target, x.data(), weight.data(), bias.data(), 1e-6f, width,
              out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, 4 * width);
}

[[maybe_unused]] const bool kRegistered = [] {
  RegisterPerTarget("BM_RmsNorm", {384, 576, 4096}, BM_RmsNorm);
  RegisterPerTarget("BM_LayerNorm", {384, 768, 4096}, BM_LayerNorm);
  return true;
}();

}  // namespace
}  // namespace lanewise
