#include "simd/attention.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/simd/attention_reference.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Every target: the bits of the contract where it has FMA, close to the plain
// formula everywhere.
void ExpectContract(const AttentionCase& c, double tolerance = 1e-5) {
  const std::vector<float> exact = ExactAttention(c);
  const std::vector<double> plain = PlainAttention(c);
  ExpectClose(plain, exact, tolerance);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const std::vector<float> found = RunKernel(*context, c);
    ExpectClose(plain, found, tolerance);
    if (target.has_fma()) ExpectSameBits(exact, found);
  });
}

AttentionCase Decoder(size_t rows, size_t keys) {
  AttentionCase c;
  c.rows = rows;
  c.keys = keys;
  c.position = keys - rows;
  return c;
}

TEST(Attention, HeadDimensions) {
  for (const size_t dim : {1, 3, 12, 16, 48, 64, 80, 96, 128, 256}) {
    SCOPED_TRACE(dim);
    AttentionCase c = Decoder(7, 70);
    c.qk_dim = c.v_dim = dim;
    c.scale = 1.0f / std::sqrt(static_cast<float>(dim));
    ExpectContract(c.Fill());
  }
}

TEST(Attention, DifferentQkAndVDimensions) {
  for (const auto& [qk_dim, v_dim] : std::vector<std::pair<size_t, size_t>>{
           {24, 16}, {192, 128}, {5, 33}, {16, 7}}) {
    AttentionCase c = Decoder(3, 20);
    c.qk_dim = qk_dim;
    c.v_dim = v_dim;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, HeadGroups) {
  for (const auto& [heads, kv_heads] : std::vector<std::pair<size_t, size_t>>{
           {1, 1}, {4, 4}, {9, 3}, {8, 2}, {5, 1}, {14, 2}, {71, 1}}) {
    SCOPED_TRACE(heads);
    AttentionCase c = Decoder(9, 40);
    c.heads = heads;
    c.kv_heads = kv_heads;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, A5TileEdges) {
  for (size_t keys = 1; keys <= 65; ++keys) {
    SCOPED_TRACE(keys);
    AttentionCase c = Decoder(1, keys);
    c.seed = keys;
    ExpectContract(c.Fill());
    c.rows = std::min<size_t>(keys, 5);
    c.position = keys - c.rows;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, PageAndSegmentBoundaries) {
  for (const size_t keys :
       {127, 128, 129, 1023, 1024, 1025, 1088, 2047, 2048, 2049, 2100}) {
    SCOPED_TRACE(keys);
    AttentionCase c = Decoder(3, keys);
    c.qk_dim = c.v_dim = 8;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, PrefillAcrossTwoSegments) {
  AttentionCase c = Decoder(40, 1050);
  c.qk_dim = c.v_dim = 8;
  ExpectContract(c.Fill());
}

TEST(Attention, WithoutCausalMask) {
  AttentionCase c;
  c.causal = false;
  c.rows = 20;
  for (const size_t keys : {1, 13, 64, 100}) {
    c.keys = keys;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, A7WindowEdges) {
  for (size_t keys = 7; keys <= 10; ++keys) {
    SCOPED_TRACE(keys);
    AttentionCase c = Decoder(keys, keys);
    c.window = 8;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, WindowsSkipTilesAndSegments) {
  for (const size_t window : {1, 5, 63, 64, 65, 100, 1024}) {
    SCOPED_TRACE(window);
    AttentionCase c = Decoder(30, 1110);
    c.qk_dim = c.v_dim = 8;
    c.window = window;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, WindowOnBothSidesWithoutCausalMask) {
  AttentionCase c;
  c.causal = false;
  c.rows = c.keys = 150;
  c.window = 33;
  ExpectContract(c.Fill());
}

TEST(Attention, PagesBehindTheWindowMayBeFreed) {
  AttentionCase c = Decoder(4, 300);
  c.window = 50;
  c.Fill();
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const std::vector<float> expected = RunKernel(*context, c);
    const TestCache cache = MakeCache(*context, c);
    std::vector<uint8_t*> pages(cache.view().pages.begin(),
                                cache.view().pages.end());
    for (size_t i = 0; i < 3; ++i) pages[i] = nullptr;
    std::vector<float> out(expected.size());
    AttentionSequence sequence = SequenceOf(c, cache, out.data());
    sequence.kv.pages = pages;
    RunSequences(*context, c.params(), {sequence});
    ExpectSameBits(expected, out);
  });
}

// A1, A2: rows that see nothing are zero, whatever the cache holds.
TEST(Attention, A1RowsWithoutKeysGiveZeros) {
  AttentionCase c;
  c.rows = 10;
  c.keys = 0;
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    AttentionCase none = c;
    for (const float value : RunKernel(*context, none.Fill())) {
      ASSERT_EQ(BitsOfFloat(value), 0u);
    }
  });
}

TEST(Attention, A2WindowBeyondTheKeysGivesZeros) {
  AttentionCase c;
  c.rows = 30;
  c.keys = 70;
  c.position = 60;  // rows from position 77 on see no key
  c.causal = false;
  c.window = 8;
  c.Fill();
  const std::vector<float> exact = ExactAttention(c);
  for (size_t i = 17 * c.heads * c.v_dim; i < exact.size(); ++i) {
    ASSERT_EQ(exact[i], 0.0f);
  }
  ExpectContract(c);
  c.sinks = {0.5f, -1.0f, 3.0f};
  ExpectContract(c);
}

class TestBias : public ScoreBias {
 public:
  explicit TestBias(size_t first_seen = 0) : first_seen_(first_seen) {}
  void Fill(size_t sequence, size_t head, size_t row, size_t first_key,
            float* bias) const override {
    TestRandom random((sequence * 31 + head) * 1000 + row * 7 + first_key);
    for (size_t j = 0; j < kKeysPerPage; ++j) {
      bias[j] = random.Uniform(-3.0f, 3.0f);
      if (first_key + j < first_seen_) bias[j] = -kInfinity;
    }
  }

 private:
  size_t first_seen_;
};

TEST(Attention, BiasIsAdded) {
  const TestBias bias;
  AttentionCase c = Decoder(9, 140);
  c.bias = &bias;
  ExpectContract(c.Fill());
}

TEST(Attention, A1LeftPaddingByBiasOfMinusInfinity) {
  const TestBias bias(80);
  AttentionCase c = Decoder(100, 100);
  c.bias = &bias;
  ExpectContract(c.Fill());
}

TEST(Attention, Slopes) {
  AttentionCase c = Decoder(9, 1100);
  c.qk_dim = c.v_dim = 8;
  c.slopes = {0.5f, 0.0625f, 0.00390625f};
  ExpectContract(c.Fill(), 1e-4);  // biases in the hundreds
}

TEST(Attention, Sinks) {
  AttentionCase c = Decoder(9, 100);
  for (const float sink : {-50.0f, 0.0f, 1.5f, 90.0f}) {
    c.sinks = {sink, 0.25f, -1.0f};
    ExpectContract(c.Fill());
  }
}

TEST(Attention, SoftCap) {
  AttentionCase c = Decoder(9, 100);
  c.query_size = 8.0f;  // scores on both sides of the cap
  c.slopes = {0.5f, 0.0625f, 0.00390625f};
  for (const float softcap : {0.5f, 2.0f, 50.0f}) {
    c.softcap = softcap;
    ExpectContract(c.Fill());
  }
}

TEST(Attention, HugeScores) {
  AttentionCase c = Decoder(7, 200);
  c.query_size = 2000.0f;
  c.scale = 1.0f;
  // scores near 1e4 have a spacing of 1e-3
  ExpectContract(c.Fill(), 5e-3);
}

TEST(Attention, RoundedCaches) {
  for (const CacheType type : {CacheType::kF16, CacheType::kBF16}) {
    for (const size_t dim : {4, 12, 64, 80}) {
      SCOPED_TRACE(dim);
      AttentionCase c = Decoder(11, 150);
      c.type = type;
      c.qk_dim = c.v_dim = dim;
      ExpectContract(c.Fill());
    }
  }
}

TEST(Attention, SubnormalAndInfiniteHalves) {
  AttentionCase c = Decoder(1, 3);
  c.type = CacheType::kF16;
  c.Fill();
  for (float& value : c.v) value *= 0x1p-18f;  // subnormal as f16
  const std::vector<float> exact = ExactAttention(c);
  c.v[0] = 1e6f;  // rounds to infinity
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const std::vector<float> found = RunKernel(*context, c);
    ASSERT_EQ(found[0], kInfinity);
    for (size_t i = 1; i < c.v_dim; ++i) {
      ASSERT_NEAR(found[i], exact[i], 1e-6f * 0x1p-18f);
    }
  });
}

// Keys and values behind the mask hold NaN, and so do those behind the last.
TEST(Attention, MaskedKeysAndValuesAreNotRead) {
  AttentionCase c = Decoder(20, 90);
  c.Fill();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const CacheType type :
       {CacheType::kF32, CacheType::kF16, CacheType::kBF16}) {
    c.type = type;
    AttentionCase poisoned = c;
    poisoned.keys = 90;
    for (size_t i = 80 * c.qk_dim; i < 90 * c.qk_dim; ++i) {
      poisoned.k[i] = poisoned.v[i] = nan;
    }
    ForEachTarget([&](const Target& target) {
      const auto context = MakeContext(target);
      std::vector<float> expected = RunKernel(*context, c);
      std::vector<float> found = RunKernel(*context, poisoned);
      const size_t seen = 10 * c.heads * c.v_dim;  // rows at 70 … 79
      expected.resize(seen);
      found.resize(seen);
      ExpectSameBits(expected, found);
    });
  }
}

TEST(Attention, MisalignedQueriesAndOutputs) {
  AttentionCase c = Decoder(5, 70);
  c.v_dim = 20;
  c.Fill();
  const std::vector<float> exact = ExactAttention(c);
  ForEachTarget([&](const Target& target) {
    const auto context = MakeContext(target);
    const TestCache cache = MakeCache(*context, c);
    const size_t q_row = c.heads * c.qk_dim, out_row = c.heads * c.v_dim;
    std::vector<float> q(1 + c.rows * (q_row + 3)), out(1 + 5 * (out_row + 5));
    for (size_t r = 0; r < c.rows; ++r) {
      std::copy_n(c.q.data() + r * q_row, q_row, &q[1 + r * (q_row + 3)]);
    }
    std::fill(out.begin(), out.end(), -7.0f);
    RunSequences(*context, c.params(),
                 {{q.data() + 1, q_row + 3, out.data() + 1, out_row + 5, c.rows,
                   c.position, c.keys, cache.view()}});
    for (size_t r = 0; r < c.rows; ++r) {
      for (size_t i = 0; i < out_row; ++i) {
        ASSERT_NEAR(out[1 + r * (out_row + 5) + i], exact[r * out_row + i],
                    1e-5);
      }
      for (size_t i = out_row; i < out_row + 5 && r + 1 < c.rows; ++i) {
        ASSERT_EQ(out[1 + r * (out_row + 5) + i], -7.0f);  // not written
      }
    }
  });
}

}  // namespace
}  // namespace lanewise
