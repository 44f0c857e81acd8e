// Routing of rows to experts. Against recorded values:
// //tests/conformance/kernels.
#include "model/routing.h"

#include <vector>

#include "gtest/gtest.h"
#include "model/spec.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

MoeSpec Spec(size_t experts, size_t top_k, bool renormalize) {
  MoeSpec moe;
  moe.experts = experts;
  moe.top_k = top_k;
  moe.renormalize = renormalize;
  return moe;
}

std::vector<IndexedValue> Route(const Target& target, const MoeSpec& moe,
                                std::vector<float> logits) {
  std::vector<IndexedValue> routes(moe.top_k);
  RouteRow(target, moe, logits.data(), routes.data());
  return routes;
}

// docs/design.md, section 2: ties go to the lower expert, outputs are added in
// ascending order.
TEST(Routing, TiesGoToTheLowerExpert) {
  ForEachTarget([&](const Target& target) {
    for (const bool renormalize : {false, true}) {
      const auto routes =
          Route(target, Spec(7, 3, renormalize), {1, 5, 2, 5, 5, 5, 0});
      EXPECT_EQ(routes[0].index, 1);
      EXPECT_EQ(routes[1].index, 3);
      EXPECT_EQ(routes[2].index, 4);
      EXPECT_EQ(routes[0].value, routes[2].value);
      if (renormalize) {
        EXPECT_NEAR(routes[0].value, 1.0 / 3.0, 1e-7);
      } else {
        EXPECT_LT(routes[0].value, 0.25f);
      }
    }
  });
}

TEST(Routing, OneExpertAndAllExperts) {
  ForEachTarget([&](const Target& target) {
    EXPECT_EQ(Route(target, Spec(1, 1, false), {-3.0f})[0].value, 1.0f);
    EXPECT_EQ(Route(target, Spec(5, 1, true), {1, 2, 9, 3, 4})[0].value, 1.0f);
    TestRandom random(4);
    const std::vector<float> logits = random.Uniforms(64, -5, 5);
    const auto all = Route(target, Spec(64, 64, false), logits);
    const auto chosen = Route(target, Spec(64, 64, true), logits);
    float sum = 0.0f;
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(all[i].index, static_cast<int32_t>(i));
      EXPECT_EQ(all[i].value, chosen[i].value);
      sum += all[i].value;
    }
    EXPECT_NEAR(sum, 1.0f, 1e-6f);
  });
}

}  // namespace
}  // namespace lanewise
