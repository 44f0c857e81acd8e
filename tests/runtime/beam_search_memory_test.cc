// Beam search over an encoder-decoder: which memory a beam reads.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "runtime/beam_search.h"
#include "runtime/beam_search_decoder.h"
#include "simd/context.h"
#include "tests/conformance/seq2seq_model.h"

namespace lanewise {
namespace {

using testing::HasSubstr;
using Results = std::vector<std::vector<BeamHypothesis>>;

class BeamMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    context_ = std::move(Context::Create({})).value();
    const auto checkpoint = Checkpoint::Open("tests/data/models/t5");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto model = Seq2SeqModel::Load(**checkpoint, *context_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    auto encoded = model_->Encode(
        Seq2SeqInputs::FromIds({{5, 6, 7, 8, 1}, {400, 30, 1}, {77, 1}}));
    ASSERT_TRUE(encoded.ok()) << encoded.status();
    encoded_ = *std::move(encoded);
    for (const KvCache& memory : encoded_.memories) {
      memories_.push_back(&memory);
    }
  }

  absl::StatusOr<Results> Search(std::vector<const KvCache*> memories,
                                 size_t inputs) {
    BeamSearchRequest request;
    request.prompts.assign(inputs, {&start_, 1});
    request.beams.num_beams = request.beams.num_return_sequences = 3;
    request.vocab_size = model_->vocab_size();
    request.eos_ids = {1};
    request.max_new_tokens = 12;
    auto stepper =
        DecoderBeamStepper::Create(model_->decoder(), model_->pool(),
                                   DecoderInputs{request.prompts, memories});
    if (!stepper.ok()) return stepper.status();
    return BeamSearch(*context_, request, **stepper);
  }

  static void ExpectEqual(const std::vector<BeamHypothesis>& a,
                          const std::vector<BeamHypothesis>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].ids, b[i].ids);
      EXPECT_EQ(a[i].score, b[i].score);
    }
  }

  const int32_t start_ = 0;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Seq2SeqModel> model_;
  Encoded encoded_;
  std::vector<const KvCache*> memories_;
};

TEST_F(BeamMemoryTest, BeamsReadTheMemoryOfTheirInput) {
  const auto all = Search(memories_, 3);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_NE((*all)[0][0].ids, (*all)[1][0].ids);
  for (size_t i = 0; i < 3; ++i) {
    const auto alone = Search({memories_[i]}, 1);
    ASSERT_TRUE(alone.ok()) << alone.status();
    ExpectEqual((*alone)[0], (*all)[i]);
  }
  const auto turned = Search({memories_[2], memories_[0], memories_[1]}, 3);
  ASSERT_TRUE(turned.ok()) << turned.status();
  ExpectEqual((*turned)[0], (*all)[2]);
  ExpectEqual((*turned)[1], (*all)[0]);
  ExpectEqual((*turned)[2], (*all)[1]);
}

TEST_F(BeamMemoryTest, OneMemoryForEachInput) {
  for (const size_t count : {1, 2}) {
    const absl::Status status =
        Search({memories_.begin(), memories_.begin() + count}, 3).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("memories: expected one of each of 3 prompts"));
  }
  EXPECT_THAT(std::string(Search({}, 3).status().message()),
              HasSubstr("memory: expected the encoder's keys and values"));
}

}  // namespace
}  // namespace lanewise
