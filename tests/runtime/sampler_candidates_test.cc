#include "runtime/sampler_candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/runtime/test_random.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

struct Filters {
  double temperature = 1.0;
  size_t top_k = 0;
  double top_p = 1.0, min_p = 0.0, typical_p = 1.0, epsilon = 0.0;
};

void Apply(const Filters& f, SortedCandidates& candidates) {
  if (f.top_k > 0) candidates.KeepTopK(f.top_k);
  if (f.top_p < 1) candidates.KeepTopP(f.top_p);
  if (f.min_p > 0) candidates.KeepMinP(f.min_p);
  if (f.typical_p < 1) candidates.KeepTypical(f.typical_p);
  if (f.epsilon > 0) candidates.KeepEpsilon(f.epsilon);
}

// The filters over a whole sorted vocabulary with the standard library's exp,
// each as the reference defines it: softmax of what is left, then the rule.
class Reference {
 public:
  Reference(const std::vector<float>& logits, const Filters& f) {
    for (size_t i = 0; i < logits.size(); ++i) {
      if (logits[i] != kForbidden) ids_.push_back(static_cast<int32_t>(i));
    }
    std::stable_sort(ids_.begin(), ids_.end(), [&](int32_t a, int32_t b) {
      return logits[a] > logits[b];
    });
    for (const int32_t id : ids_) x_.push_back(logits[id] / f.temperature);
    if (f.top_k > 0 && f.top_k < ids_.size()) {
      const double kth = x_[f.top_k - 1];
      Keep([&](size_t i) { return x_[i] >= kth; });
    }
    if (f.top_p < 1) {
      const std::vector<double> p = Softmax();
      double before = 0;
      std::vector<bool> keep;
      for (const double value : p) {
        Margin(before - f.top_p);
        keep.push_back(keep.empty() || before < f.top_p);
        before += value;
      }
      Keep([&](size_t i) { return keep[i]; });
    }
    if (f.min_p > 0) {
      const std::vector<double> p = Softmax();
      for (const double value : p) Margin(value / p[0] - f.min_p);
      Keep([&](size_t i) { return p[i] >= f.min_p * p[0]; });
    }
    if (f.typical_p < 1) KeepTypical(f.typical_p);
    if (f.epsilon > 0) {
      const std::vector<double> p = Softmax();
      for (const double value : p) Margin(value - f.epsilon);
      Keep([&](size_t i) { return i == 0 || p[i] >= f.epsilon; });
    }
  }

  const std::vector<int32_t>& ids() const { return ids_; }
  std::vector<double> Softmax() const {
    std::vector<double> p;
    double sum = 0;
    for (const double x : x_) p.push_back(std::exp(x - x_[0]));
    for (const double value : p) sum += value;
    for (double& value : p) value /= sum;
    return p;
  }
  // Smallest distance from a decision that could go either way.
  double margin() const { return margin_; }

 private:
  template <class Predicate>
  void Keep(Predicate keep) {
    std::vector<int32_t> ids;
    std::vector<double> x;
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (!keep(i)) continue;
      ids.push_back(ids_[i]);
      x.push_back(x_[i]);
    }
    ids_ = ids;
    x_ = x;
  }

  void KeepTypical(double mass) {
    const std::vector<double> p = Softmax();
    double entropy = 0;
    for (const double value : p) {
      if (value > 0) entropy -= value * std::log(value);
    }
    std::vector<double> distance;
    for (const double value : p) {
      distance.push_back(std::abs(-std::log(value) - entropy));
    }
    std::vector<size_t> order(p.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return distance[a] < distance[b];
    });
    size_t last = 0;
    double reached = 0;
    for (const size_t i : order) {
      reached += p[i];
      Margin(reached - mass);
      if (reached < mass) ++last;
    }
    last = std::min(last, p.size() - 1);
    for (size_t i = 1; i < order.size(); ++i) {
      const double gap = distance[order[i]] - distance[order[i - 1]];
      if (x_[order[i]] != x_[order[i - 1]]) Margin(gap);
    }
    const double farthest = distance[order[last]];
    Keep([&](size_t i) { return distance[i] <= farthest; });
  }

  void Margin(double distance) {
    margin_ = std::min(margin_, std::abs(distance));
  }

  std::vector<int32_t> ids_;
  std::vector<double> x_;
  double margin_ = 1.0;
};

std::vector<int32_t> Ids(SortedCandidates& candidates) {
  std::vector<int32_t> ids(candidates.Count());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = candidates.id(i);
  return ids;
}

TEST(SortedCandidates, TopKKeepsAllThatTieWithTheLast) {
  const std::vector<float> logits = {1, 3, 2, 2, 2, 0};
  SortedCandidates candidates(logits.size());
  const auto kept = [&](size_t k) {
    candidates.Reset(Target::Best(), logits, 1.0, k + 1);
    candidates.KeepTopK(k);
    return Ids(candidates);
  };
  EXPECT_EQ(kept(1), (std::vector<int32_t>{1}));
  EXPECT_EQ(kept(2), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(kept(4), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(kept(5), (std::vector<int32_t>{1, 2, 3, 4, 0}));
  EXPECT_EQ(kept(6).size(), 6u);
  EXPECT_EQ(kept(1000).size(), 6u);
}

TEST(SortedCandidates, TopPKeepsTheOneThatCrosses) {
  // Probabilities 1/2, 1/4, 1/8, 1/8.
  const float ln2 = 0.693147180559945f;
  const std::vector<float> logits = {0, 2 * ln2, ln2, 0};
  SortedCandidates candidates(logits.size());
  const auto kept = [&](double p) {
    candidates.Reset(Target::Best(), logits, 1.0, 1);
    candidates.KeepTopP(p);
    return Ids(candidates).size();
  };
  EXPECT_EQ(kept(0.0), 1u);
  EXPECT_EQ(kept(0.49), 1u);
  EXPECT_EQ(kept(0.51), 2u);
  EXPECT_EQ(kept(0.74), 2u);
  EXPECT_EQ(kept(0.76), 3u);
  EXPECT_EQ(kept(0.99), 4u);
}

TEST(SortedCandidates, EmptyWhenAllAreForbidden) {
  for (const size_t n : {1u, 10u, 1000u}) {
    std::vector<float> logits(n, kForbidden);
    SortedCandidates candidates(n);
    candidates.Reset(Target::Best(), logits, 1.0, 1);
    EXPECT_TRUE(candidates.empty());
    logits[n / 2] = -5;
    candidates.Reset(Target::Best(), logits, 0.5, 1);
    EXPECT_FALSE(candidates.empty());
    EXPECT_EQ(Ids(candidates), (std::vector<int32_t>{int32_t(n / 2)}));
    EXPECT_EQ(candidates.Probability(0), 1.0);
    EXPECT_EQ(candidates.Pick(0.999999), int32_t(n / 2));
  }
}

std::vector<float> RandomLogits(TestBits& random) {
  const std::vector<size_t> sizes = {1, 2, 63, 64, 65, 700, 3000};
  const double spread = random.Uniform() * 12;
  const bool coarse = random.Below(3) == 0;  // many ties
  const bool bans = random.Below(3) == 0;
  std::vector<float> logits(sizes[random.Below(sizes.size())]);
  for (float& logit : logits) {
    logit = static_cast<float>((random.Uniform() - 0.5) * spread);
    if (coarse) logit = std::round(logit);
    if (bans && random.Below(4) == 0) logit = kForbidden;
  }
  logits[random.Below(logits.size())] = 1.5f;
  return logits;
}

Filters RandomFilters(TestBits& random, size_t n) {
  Filters f;
  f.temperature = random.Below(2) ? 1.0 : 0.3 + random.Uniform() * 2;
  if (random.Below(2)) f.top_k = 1 + random.Below(2 * n);
  if (random.Below(2)) f.top_p = random.Uniform();
  if (random.Below(3) == 0) f.min_p = random.Uniform() * 0.3;
  if (random.Below(3) == 0) f.typical_p = 0.05 + random.Uniform() * 0.9;
  if (random.Below(3) == 0) f.epsilon = random.Uniform() * 0.05;
  return f;
}

TEST(SortedCandidates, EqualsSortingEverything) {
  TestBits random(5);
  const std::vector<Target> targets = Target::Available();
  size_t compared = 0;
  for (size_t round = 0; round < 600; ++round) {
    const std::vector<float> logits = RandomLogits(random);
    const Filters f = RandomFilters(random, logits.size());
    const Reference reference(logits, f);
    // The whole mass is summed in f32: nearer decisions may differ.
    if (reference.margin() < 1e-6) continue;
    ++compared;
    SortedCandidates candidates(logits.size());
    candidates.Reset(targets[round % targets.size()], logits, f.temperature,
                     random.Below(100));
    Apply(f, candidates);
    ASSERT_EQ(Ids(candidates), reference.ids()) << round;
    const std::vector<double> p = reference.Softmax();
    double cumulative = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      ASSERT_NEAR(candidates.Probability(i), p[i], 1e-5 * p[0]) << round;
      if (p[i] > 1e-3) {
        EXPECT_EQ(candidates.Pick(cumulative + 0.5 * p[i]), reference.ids()[i]);
      }
      cumulative += p[i];
    }
  }
  EXPECT_GT(compared, 400u);
}

// As far as a draw needs, in stages, or all at once.
TEST(SortedCandidates, LazySortingChangesNoDraw) {
  TestBits random(11);
  const Target target = Target::Best();
  for (const double spread : {1.0, 12.0, 40.0}) {
    std::vector<float> logits(3000);
    for (float& logit : logits) {
      logit = static_cast<float>(random.Uniform() * spread);
    }
    SortedCandidates lazy(logits.size()), sorted(logits.size());
    for (int i = 0; i < 300; ++i) {
      const double temperature = 0.5 + random.Uniform();
      const double u =
          1 - 0x1p-53 - random.Uniform() * random.Uniform() * 0.999;
      lazy.Reset(target, logits, temperature, 1);
      sorted.Reset(target, logits, temperature, 1);
      ASSERT_EQ(sorted.Count(), logits.size());
      ASSERT_EQ(lazy.Pick(u), sorted.Pick(u)) << spread << " " << u;
    }
  }
}

TEST(SortedCandidates, LargestDrawIsTheLastWithAnyProbability) {
  std::vector<float> logits(300, -1e4f);  // exp gives 0
  logits[7] = 1;
  logits[5] = 0.5;
  SortedCandidates candidates(logits.size());
  const double last = 1.0 - 0x1p-53;
  for (const double temperature : {1.0, 0.5, 1e-300}) {
    candidates.Reset(Target::Best(), logits, temperature, 1);
    EXPECT_EQ(candidates.Pick(last), temperature > 0.1 ? 5 : 7);
    candidates.Reset(Target::Best(), logits, temperature, 1);
    candidates.KeepTopK(200);
    EXPECT_EQ(candidates.Pick(last), temperature > 0.1 ? 5 : 7);
    EXPECT_EQ(candidates.Pick(0.0), 7);
  }
}

TEST(SortedCandidates, SameOnEveryTargetWithFma) {
  TestBits random(9);
  std::vector<float> logits(5001);
  for (float& logit : logits) {
    logit = static_cast<float>(random.Uniform() * 9);
  }
  std::vector<int32_t> expected;
  ForEachTarget([&](const Target& target) {
    if (!target.has_fma()) return;
    SortedCandidates candidates(logits.size());
    std::vector<int32_t> picked;
    for (int i = 0; i < 200; ++i) {
      candidates.Reset(target, logits, i % 2 ? 1.0 : 0.8, 1);
      if (i % 3 == 0) candidates.KeepTopP(0.97);
      picked.push_back(candidates.Pick(UniformAt(1, 0, i)));
    }
    if (expected.empty()) expected = picked;
    EXPECT_EQ(picked, expected);
  });
}

}  // namespace
}  // namespace lanewise
