// Compares the bits of logits over everything that must not change them.
#ifndef LANEWISE_TESTS_REPRODUCIBILITY_BITS_H_
#define LANEWISE_TESTS_REPRODUCIBILITY_BITS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/model.h"
#include "simd/attention.h"
#include "simd/matmul.h"
#include "simd/target.h"

namespace lanewise {

// One way to compute the same logits.
struct Schedule {
  Target target = Target::Best();
  size_t threads = 1;
  size_t batch = 1;  // sequences that run together
  size_t chunk = 0;  // prompt tokens per pass; 0: all at once

  std::string ToString() const;
};

struct Precision {
  ActivationType activations = ActivationType::kNative;
  CacheType cache = CacheType::kF16;
};

// Logits of every position of `ids`, and of `decoded` tokens fed one by one
// after them. With batch > 1, other sequences (rotations of `ids`, of other
// lengths) run beside; only the first one's logits are returned.
// An encoder-decoder's encoder reads `ids` too, whole.
absl::StatusOr<std::vector<float>> ComputeLogits(
    const Model& model, const Schedule& schedule, const Precision& precision,
    const std::vector<int32_t>& ids, const std::vector<int32_t>& decoded);

// Computes the logits by every schedule of AllSchedules(FmaTargets()) and
// compares their bits. Empty when all are equal, else the first schedule that
// differs or the error; prints how many were compared and on which targets.
std::string CompareSchedules(const Model& model, const Precision& precision,
                             const std::vector<int32_t>& ids,
                             const std::vector<int32_t>& decoded);

// All schedules of the product {targets} × {1, 2, 3, 7 threads} × {batch 1, 4}
// × {chunk 1, 16, all}.
std::vector<Schedule> AllSchedules(const std::vector<Target>& targets);

// Targets of the library that run here: those whose results are bit-equal, and
// the others.
std::vector<Target> FmaTargets();
std::vector<Target> OtherTargets();

// Names of the targets, for the log.
std::string Names(const std::vector<Target>& targets);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_REPRODUCIBILITY_BITS_H_
