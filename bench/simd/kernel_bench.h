// Registers a benchmark once per available target: BM_RmsNorm/AVX2/4096.
#ifndef LANEWISE_BENCH_SIMD_KERNEL_BENCH_H_
#define LANEWISE_BENCH_SIMD_KERNEL_BENCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "simd/target.h"

namespace lanewise {

// function(benchmark::State&, const Target&); `args` become state.range(0).
template <class Function>
void RegisterPerTarget(const std::string& name,
                       const std::vector<int64_t>& args, Function function) {
  for (const Target& target : Target::Available()) {
    auto* registered = benchmark::RegisterBenchmark(
        absl::StrCat(name, "/", target.name()).c_str(),
        [target, function](benchmark::State& state) {
          function(state, target);
        });
    for (const int64_t arg : args) registered->Arg(arg);
  }
}

}  // namespace lanewise

#endif  // LANEWISE_BENCH_SIMD_KERNEL_BENCH_H_
