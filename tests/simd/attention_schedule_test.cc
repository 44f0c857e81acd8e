// No bit of attention depends on how the work is cut up.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "simd/attention.h"
#include "tests/simd/attention_reference.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

AttentionCase LongCase(size_t rows, size_t keys) {
  AttentionCase c;
  c.heads = 6;
  c.kv_heads = 2;
  c.qk_dim = 12;
  c.v_dim = 20;
  c.type = CacheType::kF16;
  c.rows = rows;
  c.keys = keys;
  c.position = keys - rows;
  return c.Fill();
}

// Rows in chunks of the given size, each call over the same cache.
std::vector<float> RunChunked(const Context& context, const AttentionCase& c,
                              size_t chunk) {
  std::vector<float> out;
  for (size_t first = 0; first < c.rows; first += chunk) {
    AttentionCase part = c.Part(first, std::min(chunk, c.rows - first));
    if (c.causal) {  // later keys are not there yet
      part.keys = part.position + part.rows;
    }
    const std::vector<float> rows = RunKernel(context, part);
    out.insert(out.end(), rows.begin(), rows.end());
  }
  return out;
}

TEST(AttentionSchedule, ChunkedPrefillEqualsWhole) {
  const AttentionCase c = LongCase(200, 200);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const std::vector<float> whole = RunKernel(*context, c);
    for (const size_t chunk : {1, 16, 37}) {
      ExpectSameBits(whole, RunChunked(*context, c, chunk));
    }
  });
}

TEST(AttentionSchedule, DecodeEqualsPrefillAcrossSegments) {
  AttentionCase c = LongCase(60, 2100);
  for (const size_t window : {0, 1030}) {
    c.window = window;
    ForEachTarget([&](const Target& target) {
      const auto context = MakeContext(target);
      ExpectSameBits(RunKernel(*context, c), RunChunked(*context, c, 1));
    });
  }
}

TEST(AttentionSchedule, ThreadsDoNotMatter) {
  const std::vector<AttentionCase> cases = {
      LongCase(1, 6000), LongCase(3, 2100), LongCase(70, 2100),
      LongCase(300, 300)};
  for (const AttentionCase& c : cases) {
    ForEachTarget([&](const Target& target) {
      const std::vector<float> one = RunKernel(*MakeContext(target, 1), c);
      for (const size_t threads : {2, 3, 7}) {
        ExpectSameBits(one, RunKernel(*MakeContext(target, threads), c));
      }
    });
  }
}

TEST(AttentionSchedule, SharedSegmentsOfRowsWithoutKeys) {
  AttentionCase c = LongCase(90, 2100);  // rows from 2140 on see nothing
  c.position = 2080;
  c.causal = false;
  c.window = 40;
  c.Fill();
  ForEachTarget([&](const Target& target) {
    ExpectSameBits(RunKernel(*MakeContext(target, 1), c),
                   RunKernel(*MakeContext(target, 7), c));
  });
}

TEST(AttentionSchedule, SequencesOfOneCallEqualEachAlone) {
  std::vector<AttentionCase> cases = {LongCase(1, 1500), LongCase(50, 50),
                                      LongCase(1, 1), LongCase(7, 300),
                                      LongCase(0, 10)};
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].seed = i + 1;
    cases[i].Fill();
  }
  ForEachTarget([&](const Target& target) {
    for (const size_t threads : {1, 3}) {
      const auto context = MakeContext(target, threads);
      std::vector<TestCache> caches;
      std::vector<std::vector<float>> outs;
      std::vector<AttentionSequence> sequences;
      for (const AttentionCase& c : cases) {
        caches.push_back(MakeCache(*context, c));
        outs.emplace_back(c.rows * c.heads * c.v_dim);
        sequences.push_back(SequenceOf(c, caches.back(), outs.back().data()));
      }
      RunSequences(*context, cases[0].params(), sequences);
      for (size_t i = 0; i < cases.size(); ++i) {
        ExpectSameBits(RunKernel(*context, cases[i]), outs[i]);
      }
    }
  });
}

// Merging into an empty state by the formula gives what copying gives, so one
// segment needs no special case.
TEST(AttentionSchedule, FirstSegmentIsACopy) {
  TestRandom random(5);
  ScalarState segment, merged;
  segment.m = 1.25f;
  for (float& sum : segment.l) sum = random.Uniform(0.0f, 64.0f);
  segment.o = random.Uniforms(40, -30.0f, 30.0f);
  merged.o.resize(40);
  MergeScalar(segment, &merged);
  EXPECT_EQ(merged.m, segment.m);
  EXPECT_TRUE(std::equal(merged.l, merged.l + 16, segment.l));
  EXPECT_EQ(merged.o, segment.o);
}

TEST(AttentionSchedule, ScratchIsEnoughAndBounded) {
  const AttentionCase c = LongCase(3, 9000);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target, 3);
    const TestCache cache = MakeCache(*context, c);
    std::vector<float> out(c.rows * c.heads * c.v_dim);
    const AttentionSequence one = SequenceOf(c, cache, out.data());
    const std::vector<AttentionSequence> many(100, one);
    const size_t few = AttentionScratchFloats(*context, c.params(), {one});
    const size_t lot = AttentionScratchFloats(*context, c.params(), many);
    EXPECT_LE(few, lot);
    EXPECT_LT(lot, few * 4);  // not in proportion to the sequences
    std::vector<float> scratch(few + 32, -3.5f);
    const uintptr_t address = reinterpret_cast<uintptr_t>(scratch.data());
    float* aligned = scratch.data() + (64 - address % 64) % 64 / sizeof(float);
    Attention(*context, c.params(), {&one, 1}, aligned);
    for (float* p = aligned + few; p < scratch.data() + few + 32; ++p) {
      ASSERT_EQ(*p, -3.5f);  // nothing written behind the end
    }
  });
}

}  // namespace
}  // namespace lanewise
