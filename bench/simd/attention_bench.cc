// Attention of SmolLM2-135M's shape (9 heads, 3 kv heads, dimension 64):
// prefill of 512 rows and decoding of one row against a long cache.
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/simd/kernel_bench.h"
#include "benchmark/benchmark.h"
#include "simd/attention.h"
#include "simd/context.h"

namespace lanewise {
namespace {

constexpr size_t kHeads = 9;
constexpr KvShape kShape = {3, 64, 64, CacheType::kF16};

// Counts multiply-adds of visible keys only, as two operations each, and the
// bytes of K and V once per call.
void BM_Attention(benchmark::State& state, const Target& target, CacheType type,
                  size_t threads, size_t rows, size_t keys) {
  Context::Options options;
  options.threads = threads;
  options.target = target;
  auto context = Context::Create(options);
  if (!context.ok()) return state.SkipWithError("no context");
  KvShape shape = kShape;
  shape.type = type;
  const size_t page = shape.page_bytes();
  std::vector<uint8_t> memory(keys / kKeysPerPage * page + 64);
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory.data());
  std::vector<uint8_t*> pages;
  for (size_t i = 0; i < keys / kKeysPerPage; ++i) {
    pages.push_back(memory.data() + (64 - address % 64) % 64 + i * page);
  }
  std::vector<float> kv(keys * shape.kv_heads * shape.qk_dim);
  std::vector<float> q(rows * kHeads * shape.qk_dim), out(q.size());
  for (size_t i = 0; i < kv.size(); ++i) {
    kv[i] = static_cast<float>(i * 2654435761u % 1000) * 0.002f - 1.0f;
  }
  for (size_t i = 0; i < q.size(); ++i) q[i] = kv[i * 7 % kv.size()];
  const size_t stride = shape.kv_heads * shape.qk_dim;
  StoreKv(**context, shape, {pages, 0}, 0, keys, kv.data(), stride, kv.data(),
          stride);
  AttentionParams params = {};
  params.heads = kHeads;
  params.kv = shape;
  params.scale = 0.125f;
  const AttentionSequence sequence = {
      q.data(), kHeads * shape.qk_dim, out.data(), kHeads * shape.v_dim,
      rows,     keys - rows,           keys,       {pages, 0}};
  std::vector<float> scratch(
      AttentionScratchFloats(**context, params, {&sequence, 1}) + 16);
  float* aligned =
      scratch.data() +
      (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64 / 4;
  for (auto _ : state) {
    Attention(**context, params, {&sequence, 1}, aligned);
    benchmark::ClobberMemory();
  }
  const double visible =
      static_cast<double>(rows) * (keys - rows) + 0.5 * rows * (rows + 1);
  const double calls = static_cast<double>(state.iterations());
  state.counters["flop/s"] = benchmark::Counter(
      calls * 2.0 * visible * kHeads * (shape.qk_dim + shape.v_dim),
      benchmark::Counter::kIsRate);
  state.SetBytesProcessed(static_cast<int64_t>(calls) *
                          static_cast<int64_t>(keys / kKeysPerPage * page));
}

void BM_StoreKv(benchmark::State& state, const Target& target) {
  Context::Options options;
  options.threads = 1;
  options.target = target;
  auto context = Context::Create(options);
  if (!context.ok()) return state.SkipWithError("no context");
  const size_t rows = static_cast<size_t>(state.range(0));
  const size_t pages_needed = (rows + kKeysPerPage - 1) / kKeysPerPage;
  std::vector<uint8_t> memory(pages_needed * kShape.page_bytes());
  std::vector<uint8_t*> pages;
  for (size_t i = 0; i < pages_needed; ++i) {
    pages.push_back(memory.data() + i * kShape.page_bytes());
  }
  const size_t stride = kShape.kv_heads * kShape.qk_dim;
  const std::vector<float> kv(rows * stride, 0.5f);
  for (auto _ : state) {
    StoreKv(**context, kShape, {pages, 0}, 0, rows, kv.data(), stride,
            kv.data(), stride);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * rows *
                                               stride * 2 * sizeof(float)));
}

const bool kRegistered = [] {
  const std::vector<std::pair<const char*, CacheType>> types = {
      {"F32", CacheType::kF32},
      {"F16", CacheType::kF16},
      {"BF16", CacheType::kBF16}};
  for (const auto& [name, type] : types) {
    for (const size_t threads : {1, 2}) {
      const std::string suffix = absl::StrCat("/", name, "/threads:", threads);
      RegisterPerTarget("BM_Prefill" + suffix, {512},
                        [type = type, threads](benchmark::State& state,
                                               const Target& target) {
                          BM_Attention(state, target, type, threads, 512,
                                       static_cast<size_t>(state.range(0)));
                        });
      RegisterPerTarget("BM_Decode" + suffix, {512, 2048, 8192},
                        [type = type, threads](benchmark::State& state,
                                               const Target& target) {
                          BM_Attention(state, target, type, threads, 1,
                                       static_cast<size_t>(state.range(0)));
                        });
    }
  }
  RegisterPerTarget("BM_StoreKv", {1, 512}, BM_StoreKv);
  return true;
}();

}  // namespace
}  // namespace lanewise
