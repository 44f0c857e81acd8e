// Bytes per second that activations read and write, by target.
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "simd/activation.h"

namespace lanewise {
namespace {

constexpr size_t kWidth = 4096;

std::vector<float> Inputs() {
  std::vector<float> x(kWidth);
  for (size_t i = 0; i < kWidth; ++i) {
    x[i] = static_cast<float>(i) * (8.0f / kWidth) - 4.0f;
  }
  return x;
}

void Gated(benchmark::State& state, const Target& target,
           Activation activation) {
  const std::vector<float> gate = Inputs();
  const std::vector<float> up(kWidth, 0.5f);
  std::vector<float> out(kWidth);
  for (auto _ : state) {
    ActivateGated(target, activation, gate.data(), up.data(), kWidth,
                  out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(3 * kWidth * sizeof(float)));
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const auto& [name, activation] :
       {std::pair{"BM_GatedRelu", Activation::kRelu},
        std::pair{"BM_GatedSilu", Activation::kSilu},
        std::pair{"BM_GatedGelu", Activation::kGelu},
        std::pair{"BM_GatedGeluTanh", Activation::kGeluTanh}}) {
    RegisterPerTarget(name, {},
                      [activation = activation](benchmark::State& state,
                                                const Target& target) {
                        Gated(state, target, activation);
                      });
  }
  return true;
}();

}  // namespace
}  // namespace lanewise
