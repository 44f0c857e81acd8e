// A11: a request gives the same bits alone and beside any number of others.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "simd/context.h"
#include "tests/reproducibility/bits.h"

namespace lanewise {
namespace {

TEST(BatchFaults, A11AloneAndBesideOthers) {
  for (const char* path :
       {"models/llama", "models/gpt_oss", "gguf/llama_q4_k_m"}) {
    auto checkpoint = Checkpoint::Open(std::string("tests/data/") + path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto context = Context::Create({});
    ASSERT_TRUE(context.ok());
    auto model = Model::Load(**checkpoint, **context, {});
    ASSERT_TRUE(model.ok()) << model.status();
    const auto vocab = static_cast<int32_t>((*model)->spec().vocab_size);
    std::vector<int32_t> ids, decoded;
    for (int32_t i = 0; i < 70; ++i) ids.push_back((i * 7919 + 11) % vocab);
    for (int32_t i = 0; i < 3; ++i) decoded.push_back((i * 31 + 3) % vocab);
    std::vector<float> expected;
    for (const size_t batch : {1, 2, 4, 32}) {
      Schedule schedule;
      schedule.threads = 2;
      schedule.batch = batch;
      schedule.chunk = 16;
      const auto logits = ComputeLogits(**model, schedule, {}, ids, decoded);
      ASSERT_TRUE(logits.ok()) << logits.status();
      if (expected.empty()) expected = *logits;
      EXPECT_TRUE(*logits == expected) << path << ", batch " << batch;
    }
  }
}

}  // namespace
}  // namespace lanewise
