// Routing of rows to experts against recorded values
// (tests/data/kernels/moe.*).
#include "model/routing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/spec.h"
#include "tests/simd/golden_topic.h"
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

// Recorded routes stand in the order of their logits.
void ExpectRoutes(const std::vector<IndexedValue>& found, const float* indices,
                  const float* weights) {
  for (size_t i = 0; i < found.size(); ++i) {
    const auto route = std::find_if(
        found.begin(), found.end(), [&](const IndexedValue& candidate) {
          return static_cast<float>(candidate.index) == indices[i];
        });
    ASSERT_NE(route, found.end()) << "expert " << indices[i];
    EXPECT_NEAR(route->value, weights[i], 1e-6) << "expert " << indices[i];
    if (i > 0) {
      EXPECT_LT(found[i - 1].index, found[i].index);
    }
  }
}

TEST(Routing, EqualsTheRecordedRoutes) {
  const GoldenTopic topic("moe");
  ASSERT_EQ(topic.cases().size(), 3u);
  ForEachTarget([&](const Target& target) {
    for (const auto& golden : topic.cases()) {
      SCOPED_TRACE(golden["name"].get<std::string>());
      const GoldenArray* logits = topic.Find(golden, "inputs", "logits");
      const GoldenArray* indices = topic.Find(golden, "outputs", "indices");
      const GoldenArray* over_all =
          topic.Find(golden, "outputs", "softmax_topk");
      const GoldenArray* renormalized =
          topic.Find(golden, "outputs", "softmax_topk_renorm");
      const GoldenArray* over_chosen =
          topic.Find(golden, "outputs", "topk_softmax");
      ASSERT_TRUE(logits && indices && over_all && renormalized && over_chosen);
      const size_t experts = golden["params"]["experts"];
      const size_t top_k = golden["params"]["top_k"];
      ASSERT_EQ(logits->rows(), 13u);
      for (size_t r = 0; r < logits->rows(); ++r) {
        SCOPED_TRACE(r);
        const std::vector<float> row(logits->row(r), logits->row(r) + experts);
        const auto all = Route(target, Spec(experts, top_k, false), row);
        ExpectRoutes(all, indices->row(r), over_all->row(r));
        const auto chosen = Route(target, Spec(experts, top_k, true), row);
        ExpectRoutes(chosen, indices->row(r), renormalized->row(r));
        ExpectRoutes(chosen, indices->row(r), over_chosen->row(r));
      }
    }
  });
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
