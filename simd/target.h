// Instruction-set targets as values.
//
// Every kernel is compiled once per target of HWY_TARGETS and called through a
// table. Which entry is used is a value that the caller passes down, not global
// state: two engines in one process can run different targets, and a test can
// walk through all of them.
//
//   for (const Target& target : Target::Available()) {
//     RmsNorm(target, ...);  // runs the code compiled for target.name()
//   }
#ifndef LANEWISE_SIMD_TARGET_H_
#define LANEWISE_SIMD_TARGET_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise {

class Target {
 public:
  // The best target that both this library was built with and this CPU has.
  static Target Best();

  // All such targets, best first; never empty. These are the *library's*
  // targets: what a test reports as run.
  static std::vector<Target> Available();

  // All targets the library was built with, whether or not this CPU has them,
  // best first.
  static std::vector<Target> Compiled();

  // The available target of this name ("AVX2", "AVX3_ZEN4", …; case matters
  // not). NOT_FOUND lists the available ones.
  static absl::StatusOr<Target> FromName(absl::string_view name);

  absl::string_view name() const;

  // Whether the target has fused multiply-add, and so belongs to the set whose
  // results are bit-equal (docs/design.md, section 2).
  bool has_fma() const;

  // Position in the dispatch tables of dispatch.h.
  size_t dispatch_index() const { return index_; }

  friend bool operator==(const Target& a, const Target& b) {
    return a.bit_ == b.bit_;
  }

 private:
  Target(int64_t bit, size_t index) : bit_(bit), index_(index) {}

  int64_t bit_;  // HWY_AVX2, …
  size_t index_;
};

}  // namespace lanewise

#endif  // LANEWISE_SIMD_TARGET_H_
