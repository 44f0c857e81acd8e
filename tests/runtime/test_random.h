// Fixed pseudo-random data for tests of the runtime.
#ifndef LANEWISE_TESTS_RUNTIME_TEST_RANDOM_H_
#define LANEWISE_TESTS_RUNTIME_TEST_RANDOM_H_

#include <cstdint>

#include "runtime/random.h"

namespace lanewise {

class TestBits {
 public:
  explicit TestBits(uint64_t seed) : seed_(seed) {}

  // In [0, bound).
  uint64_t Below(uint64_t bound) {
    return RandomBitsAt(seed_, 0, step_++)[0] % bound;
  }
  double Uniform() { return UniformAt(seed_, 0, step_++); }

 private:
  uint64_t seed_;
  uint64_t step_ = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_RUNTIME_TEST_RANDOM_H_
