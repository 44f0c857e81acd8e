// Runs the body of a kernel test on every target that the *library* was built
// with and this CPU has, and says which ran.
#ifndef LANEWISE_TESTS_SIMD_KERNEL_TEST_H_
#define LANEWISE_TESTS_SIMD_KERNEL_TEST_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "simd/context.h"
#include "simd/target.h"

namespace lanewise {

// body(const Target&). Prints "ran on AVX2 …" once per call, so that a log
// shows what was exercised.
template <class Body>
void ForEachTarget(Body&& body) {
  std::string ran;
  for (const Target& target : Target::Available()) {
    SCOPED_TRACE(std::string(target.name()));
    body(target);
    ran += " " + std::string(target.name());
  }
  ASSERT_FALSE(ran.empty());
  std::printf("ran on%s\n", ran.c_str());
}

inline std::unique_ptr<Context> MakeContext(const Target& target,
                                            size_t threads = 1) {
  Context::Options options;
  options.threads = threads;
  options.target = target;
  return std::move(Context::Create(options)).value();
}

// Deterministic pseudo-random numbers for test data; the standard's
// distributions differ between libraries.
class TestRandom {
 public:
  explicit TestRandom(uint64_t seed) : state_(seed * 2 + 1) {}

  uint64_t Bits() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  float Uniform(float low, float high) {
    return low + (high - low) * (static_cast<float>(Bits() >> 40) * 0x1p-24f);
  }
  std::vector<float> Uniforms(size_t n, float low = -1.0f, float high = 1.0f) {
    std::vector<float> values(n);
    for (float& value : values) value = Uniform(low, high);
    return values;
  }

 private:
  uint64_t state_;
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_SIMD_KERNEL_TEST_H_
