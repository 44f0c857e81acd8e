// Matrix products of the shapes of a 135M-parameter decoder:
// BM_MatMul/<type>/<K>x<N>/threads:<n>/<target>/<M>. M = 512 is bound by the
// multipliers; M = 1 by the reading of weights: 576x49152 exceeds the caches in
// the wider types, the small shapes show the caches.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {
namespace {

struct Shape {
  size_t k, n;
};

std::vector<uint8_t> RandomBytes(size_t n) {
  std::vector<uint8_t> bytes(n);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

absl::StatusOr<PackedMatrix> MakeMatrix(const Context& context, DType type,
                                        const Shape& shape) {
  const size_t row_bytes = BytesOf(type, shape.k);
  std::vector<uint8_t> bytes = RandomBytes(shape.n * row_bytes);
  // A clear bit below the top one keeps halves and floats finite; in integers
  // it does no harm.
  for (uint8_t& byte : bytes) byte &= 0xBF;
  std::vector<const uint8_t*> rows;
  for (size_t i = 0; i < shape.n; ++i) {
    rows.push_back(bytes.data() + i * row_bytes);
  }
  return Pack(context, type, shape.k, rows);
}

void BenchMatMul(benchmark::State& state, const Target& target, DType type,
                 const Shape& shape, size_t threads) {
  Context::Options options;
  options.threads = threads;
  options.target = target;
  const auto context = Context::Create(options);
  const size_t m = static_cast<size_t>(state.range(0));
  if (!context.ok()) return state.SkipWithError("no context");
  auto b = MakeMatrix(**context, type, shape);
  if (!b.ok()) return state.SkipWithError("no memory for weights");
  Activations a;
  if (!a.Reserve(m, shape.k).ok()) return state.SkipWithError("no memory");
  std::vector<float> x(m * shape.k);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i % 251) / 125.0f - 1.0f;
  }
  a.Prepare(**context, x.data(), shape.k, m, shape.k,
            RepresentationFor(ActivationType::kNative, b->type()));
  std::vector<float> c(m * shape.n);
  for (auto _ : state) {
    MatMul(**context, a, ActivationType::kNative, *b, c.data(), shape.n);
    benchmark::ClobberMemory();
  }
  const double runs = static_cast<double>(state.iterations());
  const double products = static_cast<double>(m * shape.k * shape.n);
  const double moved =
      static_cast<double>(b->bytes() + (x.size() + c.size()) * sizeof(float));
  state.counters["op/s"] =
      benchmark::Counter(2.0 * products * runs, benchmark::Counter::kIsRate);
  state.counters["bytes/s"] =
      benchmark::Counter(moved * runs, benchmark::Counter::kIsRate);
}

void RegisterMatMul(DType type, const Shape& shape, size_t threads) {
  for (const Target& target : Target::Available()) {
    auto* registered = benchmark::RegisterBenchmark(
        absl::StrCat("BM_MatMul/", Traits(type).name, "/", shape.k, "x",
                     shape.n, "/threads:", threads, "/", target.name())
            .c_str(),
        [=](benchmark::State& state) {
          BenchMatMul(state, target, type, shape, threads);
        });
    registered->Arg(1)->Arg(512);
    if (threads > 1) registered->UseRealTime();
  }
}

void BenchPrepare(benchmark::State& state, const Target& target,
                  Representation representation) {
  Context::Options options;
  options.threads = 1;
  options.target = target;
  const auto context = Context::Create(options);
  if (!context.ok()) return state.SkipWithError("no context");
  const size_t m = static_cast<size_t>(state.range(0)), k = 1536;
  Activations a;
  if (!a.Reserve(m, k).ok()) return state.SkipWithError("no memory");
  std::vector<float> x(m * k, 0.5f);
  for (auto _ : state) {
    a.Prepare(**context, x.data(), k, m, k, representation);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<int64_t>(x.size() * sizeof(float)));
}

const int kRegistered = [] {
  constexpr Shape kShapes[] = {{576, 1536}, {1536, 576}, {576, 49152}};
  for (const DType type :
       {DType::kQ4_1, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ6_K,
        DType::kF32, DType::kF16, DType::kBF16}) {
    for (Shape shape : kShapes) {
      // Superblocks need a multiple of 256.
      if (Traits(type).block_size == 256) shape.k = (shape.k + 255) / 256 * 256;
      for (const size_t threads : {1, 2}) RegisterMatMul(type, shape, threads);
    }
  }
  RegisterPerTarget("BM_Quantize", {1, 512},
                    [](benchmark::State& state, const Target& target) {
                      BenchPrepare(state, target, Representation::kInt8);
                    });
  RegisterPerTarget("BM_RoundToBF16", {1, 512},
                    [](benchmark::State& state, const Target& target) {
                      BenchPrepare(state, target, Representation::kBF16);
                    });
  return 0;
}();

}  // namespace
}  // namespace lanewise
