#include "simd/target.h"

#include <cctype>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/simd/target_test.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

// Which target this code was compiled for.
int64_t WhichImpl() { return HWY_TARGET; }

size_t LanesImpl() {
  const hwy::HWY_NAMESPACE::ScalableTag<float> d;
  return hwy::HWY_NAMESPACE::Lanes(d);
}

// 1 + 2^-12 squared minus its rounding: not 0 only with fused multiply-add.
float FusedImpl(float x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const auto v = hn::Set(d, x);
  return hn::GetLane(hn::MulSub(v, v, hn::Mul(v, v)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

HWY_EXPORT(WhichImpl);
HWY_EXPORT(LanesImpl);
HWY_EXPORT(FusedImpl);

TEST(Target, DispatchRunsTheCodeOfTheTarget) {
  ForEachTarget([](const Target& target) {
    const int64_t bit = LANEWISE_DISPATCH(target, WhichImpl)();
    EXPECT_EQ(target.name(), hwy::TargetName(bit));
    EXPECT_GE((LANEWISE_DISPATCH(target, LanesImpl)()), 1u);
  });
}

TEST(Target, HasFmaTellsTheTruth) {
  ForEachTarget([](const Target& target) {
    const float rounding =
        LANEWISE_DISPATCH(target, FusedImpl)(1.0f + 0x1p-12f);
    EXPECT_EQ(target.has_fma(), rounding != 0.0f);
  });
}

TEST(Target, DispatchTakesAnyExpression) {
  const std::vector<Target> targets = Target::Available();
  EXPECT_EQ((LANEWISE_DISPATCH(targets[0], WhichImpl)()),
            (LANEWISE_DISPATCH(Target::Best(), WhichImpl)()));
}

TEST(Target, AvailableIsAPartOfCompiledInOrder) {
  const std::vector<Target> compiled = Target::Compiled();
  const std::vector<Target> available = Target::Available();
  ASSERT_FALSE(available.empty());
  EXPECT_TRUE(Target::Best() == available.front());
  size_t next = 0;
  for (const Target& target : compiled) {
    if (next < available.size() && target == available[next]) ++next;
  }
  EXPECT_EQ(next, available.size());
}

TEST(Target, NamesAndIndicesDiffer) {
  std::set<std::string> names;
  std::set<size_t> indices;
  for (const Target& target : Target::Compiled()) {
    EXPECT_TRUE(names.insert(std::string(target.name())).second);
    EXPECT_TRUE(indices.insert(target.dispatch_index()).second);
  }
}

#if defined(__x86_64__)
TEST(Target, B2BaselineIsAlwaysThere) {
  const absl::StatusOr<Target> baseline = Target::FromName("SSE2");
  ASSERT_TRUE(baseline.ok());
  EXPECT_FALSE(baseline->has_fma());
}
#endif

TEST(Target, FromNameFindsEachInAnyCase) {
  for (const Target& target : Target::Available()) {
    std::string name(target.name());
    absl::StatusOr<Target> found = Target::FromName(name);
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(*found == target);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    found = Target::FromName(name);
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(*found == target);
  }
}

TEST(Target, UnknownNameListsTheAvailable) {
  for (const std::string name : {"", "AVX", "AVX22", "sse2 "}) {
    const absl::StatusOr<Target> found = Target::FromName(name);
    ASSERT_EQ(found.status().code(), absl::StatusCode::kNotFound);
    const std::string message(found.status().message());
    EXPECT_NE(message.find("target '" + name + "' is not available"),
              std::string::npos)
        << message;
    for (const Target& target : Target::Available()) {
      EXPECT_NE(message.find(std::string(target.name())), std::string::npos)
          << message;
    }
  }
}

}  // namespace
}  // namespace lanewise
#endif  // HWY_ONCE
