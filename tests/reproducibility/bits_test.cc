// The first promise: the same bits for any number of threads, batch, prefill
// chunk and instruction set with fused multiply-add; on the others, the same
// values within a tolerance.
#include "tests/reproducibility/bits.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/model.h"

namespace lanewise {
namespace {

// What the reference's suite allows float32 arithmetic, relative to the size of
// the logits.
constexpr double kFloatTolerance = 1e-3;

constexpr const char* kCases[] = {
    "models/llama",      "models/gpt2",
    "models/llama_f16",  "models/llama_sharded_bf16",
    "models/gemma3",     "models/falcon_new",
    "models/gpt_oss",    "gguf/llama_bf16",
    "gguf/llama_q8_0",   "gguf/llama_q4_0",
    "gguf/llama_q4_1",   "gguf/llama_q5_0",
    "gguf/llama_q4_k_m", "gguf/llama_q6_k",
    "models/t5",
};

// The largest difference, relative to the root mean square of `expected`.
double RelativeError(const std::vector<float>& found,
                     const std::vector<float>& expected) {
  double squares = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    squares += double{expected[i]} * expected[i];
    worst = std::max(worst, std::fabs(double{found[i]} - expected[i]));
  }
  return worst / std::sqrt(squares / static_cast<double>(expected.size()));
}

class BitsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string path = std::string("tests/data/") + GetParam();
    auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto context = Context::Create({});
    ASSERT_TRUE(context.ok());
    auto model = Model::Load(**checkpoint, **context, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    const int vocab = static_cast<int>(model_->spec().vocab_size);
    for (int i = 0; i < 37; ++i) ids_.push_back((i * 7919 + 11) % vocab);
    for (int i = 0; i < 5; ++i) decoded_.push_back((i * 104729 + 3) % vocab);
  }

  std::vector<float> Compute(const Schedule& schedule,
                             const Precision& precision) {
    auto logits = ComputeLogits(*model_, schedule, precision, ids_, decoded_);
    EXPECT_TRUE(logits.ok()) << logits.status();
    return logits.ok() ? *logits : std::vector<float>();
  }

  void ExpectEqualBits(const Precision& precision) {
    EXPECT_EQ(CompareSchedules(*model_, precision, ids_, decoded_), "");
  }

  // Targets without FMA differ in last bits; where activations are rounded to
  // int8 or bf16, or keys and values to f16, such a bit can become a whole
  // step, but never more than the rounding itself costs.
  void ExpectNear(const Precision& precision) {
    if (FmaTargets().empty()) return;
    const Schedule fma{FmaTargets().front()};
    const std::vector<float> expected = Compute(fma, precision);
    const double cost = RelativeError(
        expected, Compute(fma, {ActivationType::kF32, CacheType::kF32}));
    const double tolerance = std::max(kFloatTolerance, cost);
    for (const Target& target : OtherTargets()) {
      const std::vector<float> found = Compute({target}, precision);
      ASSERT_EQ(found.size(), expected.size());
      EXPECT_LE(RelativeError(found, expected), tolerance) << target.name();
    }
    std::printf("%s: within %g on: %s\n", GetParam(), tolerance,
                Names(OtherTargets()).c_str());
  }

  std::unique_ptr<const Model> model_;
  std::vector<int32_t> ids_, decoded_;
};

TEST_P(BitsTest, NativeActivations) { ExpectEqualBits({}); }

TEST_P(BitsTest, FloatActivationsAndCache) {
  ExpectEqualBits({ActivationType::kF32, CacheType::kF32});
}

TEST_P(BitsTest, TargetsWithoutFmaAreNear) {
  ExpectNear({});
  ExpectNear({ActivationType::kF32, CacheType::kF32});
}

std::string TestName(const testing::TestParamInfo<const char*>& param) {
  std::string name = param.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, BitsTest, testing::ValuesIn(kCases), TestName);

}  // namespace
}  // namespace lanewise
