#include "simd/target.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "hwy/highway.h"
#include "hwy/targets.h"

namespace lanewise {
namespace {

// Index of `bit` in the tables that HWY_EXPORT makes in this library: all files
// are compiled with the same HWY_TARGETS.
size_t DispatchIndex(int64_t bit) {
#if HWY_IDE || ((HWY_TARGETS & (HWY_TARGETS - 1)) == 0)
  return 0;  // one target only: tables have a single entry
#else
  hwy::ChosenTarget chosen;
  chosen.Update(bit);
  return chosen.GetIndex();
#endif
}

}  // namespace

std::vector<Target> Target::Compiled() {
  std::vector<Target> targets;
  for (int64_t rest = HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const int64_t bit = rest & -rest;  // smaller bits are better targets
    targets.push_back(Target(bit, DispatchIndex(bit)));
  }
  return targets;
}

std::vector<Target> Target::Available() {
  const int64_t supported = hwy::SupportedTargets();
  std::vector<Target> targets;
  for (const Target& target : Compiled()) {
    if (target.bit_ & supported) targets.push_back(target);
  }
  if (targets.empty())
    targets.push_back(
        Target(HWY_STATIC_TARGET, DispatchIndex(HWY_STATIC_TARGET)));
  return targets;
}

Target Target::Best() { return Available().front(); }

absl::StatusOr<Target> Target::FromName(absl::string_view name) {
  const std::vector<Target> available = Available();
  for (const Target& target : available) {
    if (absl::EqualsIgnoreCase(target.name(), name)) return target;
  }
  return absl::NotFoundError(absl::StrCat(
      "target '", name, "' is not available here; available: ",
      absl::StrJoin(available, ", ", [](std::string* out, const Target& t) {
        absl::StrAppend(out, t.name());
      })));
}

absl::string_view Target::name() const { return hwy::TargetName(bit_); }

bool Target::has_fma() const {
  return (bit_ & (HWY_SSE2 | HWY_SSSE3 | HWY_SSE4 | HWY_EMU128 | HWY_SCALAR |
                  HWY_WASM | HWY_WASM_EMU256)) == 0;
}

}  // namespace lanewise
