// Bytes per second that row operations read, by target and row length: those of
// the vocabularies they run over.
#include <cstdint>
#include <vector>

#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

// Logits without order.
std::vector<float> Logits(size_t n) {
  std::vector<float> x(n);
  uint32_t state = 1;
  for (float& value : x) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-20f;
  }
  return x;
}

// function(target, values, n)
template <class Function>
void Run(benchmark::State& state, const Target& target, Function function) {
  const size_t n = static_cast<size_t>(state.range(0));
  std::vector<float> x = Logits(n);
  for (auto _ : state) {
    function(target, x.data(), n);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(n * sizeof(float)));
}

template <class Function>
void Register(const char* name, Function function) {
  RegisterPerTarget(name, {576, 49152, 256000},
                    [function](benchmark::State& state, const Target& target) {
                      Run(state, target, function);
                    });
}

[[maybe_unused]] const bool kRegistered = [] {
  Register("BM_Softmax", [](const Target& target, float* x, size_t n) {
    Softmax(target, n, x);
  });
  Register("BM_LogSumExp", [](const Target& target, float* x, size_t n) {
    benchmark::DoNotOptimize(LogSumExp(target, x, n));
  });
  Register("BM_ArgMax", [](const Target& target, float* x, size_t n) {
    benchmark::DoNotOptimize(ArgMax(target, x, n));
  });
  Register("BM_AllFinite", [](const Target& target, float* x, size_t n) {
    benchmark::DoNotOptimize(AllFinite(target, x, n));
  });
  Register("BM_TopK40", [](const Target& target, float* x, size_t n) {
    IndexedValue top[40];
    benchmark::DoNotOptimize(TopK(target, x, n, 40, top));
  });
  Register("BM_AddTo", [](const Target& target, float* x, size_t n) {
    AddTo(target, x, n, x);
  });
  return true;
}();

}  // namespace
}  // namespace lanewise
