#include "runtime/beam_search_decoder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "simd/context.h"

namespace lanewise {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;
using Results = std::vector<std::vector<BeamHypothesis>>;

class DecoderBeamTest : public testing::Test {
 protected:
  void SetUp() override {
    context_ = std::move(Context::Create({})).value();
    auto checkpoint = Checkpoint::Open("tests/data/models/llama");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto model = Model::Load(**checkpoint, *context_, {});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    pool_ = MakePool(1000);
    request_.vocab_size = model_->spec().vocab_size;
    request_.eos_ids = {2};
    request_.beams.num_beams = request_.beams.num_return_sequences = 4;
    request_.max_new_tokens = 12;
  }

  std::shared_ptr<KvPagePool> MakePool(size_t pages) {
    const auto probe = KvPagePool::Create(model_->spec(), CacheType::kF16, 1);
    return KvPagePool::Create(model_->spec(), CacheType::kF16,
                              pages * probe->page_bytes());
  }

  std::unique_ptr<Executor> MakeExecutor(size_t max_rows) {
    Executor::Options options;
    options.max_rows = max_rows;
    return std::move(Executor::Create(*model_, *context_, options)).value();
  }

  // Prompts of these lengths.
  void SetPrompts(const std::vector<size_t>& lengths) {
    prompts_.clear();
    for (size_t i = 0; i < lengths.size(); ++i) {
      Ids prompt;
      for (size_t j = 0; j < lengths[i]; ++j) {
        prompt.push_back(static_cast<int32_t>(3 + (i * 131 + j * j * 7) % 550));
      }
      prompts_.push_back(std::move(prompt));
    }
    request_.prompts.assign(prompts_.begin(), prompts_.end());
  }

  absl::StatusOr<Results> Search(size_t max_rows) {
    const auto executor = MakeExecutor(max_rows);
    auto stepper =
        DecoderBeamStepper::Create(*executor, pool_, request_.prompts);
    if (!stepper.ok()) return stepper.status();
    return BeamSearch(*context_, request_, **stepper);
  }

  // Logits after `ids`, from an empty cache.
  std::vector<float> Recompute(const Ids& ids) {
    const auto executor = MakeExecutor(512);
    KvCache cache(pool_);
    EXPECT_TRUE(cache.Reserve(ids.size()).ok());
    std::vector<float> logits(request_.vocab_size);
    const Executor::Entry entry{ids, &cache, Executor::Logits::kLast};
    EXPECT_TRUE(executor->Forward({&entry, 1}, logits.data()).ok());
    return logits;
  }

  std::unique_ptr<Context> context_;
  std::unique_ptr<const Model> model_;
  std::shared_ptr<KvPagePool> pool_;
  std::vector<Ids> prompts_;
  BeamSearchRequest request_;
};

// Records histories and how much memory the steps took.
class RecordingStepper : public BeamStepper {
 public:
  RecordingStepper(DecoderBeamStepper& stepper, const std::vector<Ids>& prompts)
      : stepper_(stepper) {
    for (const Ids& prompt : prompts) {
      histories_.emplace_back(prompt.begin(), prompt.end() - 1);
    }
  }

  absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep> rows) override {
    std::vector<Ids> next;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i > 0 && rows[i].parent == rows[i - 1].parent) ++forks;
      next.push_back(histories_[rows[i].parent]);
      next.back().push_back(rows[i].token);
    }
    histories_ = std::move(next);
    auto logits = stepper_.Advance(rows);
    if (logits.ok()) on_step(histories_, *logits);
    return logits;
  }

  size_t forks = 0;
  std::function<void(const std::vector<Ids>&, absl::Span<const float>)> on_step;

 private:
  DecoderBeamStepper& stepper_;
  std::vector<Ids> histories_;
};

TEST_F(DecoderBeamTest, A5S11CacheRowsFollowTheirParents) {
  // Prompts that end just before, at and after the end of a page.
  SetPrompts({3, 60, 64, 65, 1});
  const auto executor = MakeExecutor(512);
  auto stepper = DecoderBeamStepper::Create(*executor, pool_, request_.prompts);
  ASSERT_TRUE(stepper.ok()) << stepper.status();
  RecordingStepper recorder(**stepper, prompts_);
  size_t rows = 0;
  recorder.on_step = [&](const std::vector<Ids>& histories,
                         absl::Span<const float> logits) {
    for (size_t i = 0; i < histories.size(); ++i, ++rows) {
      const std::vector<float> expected = Recompute(histories[i]);
      EXPECT_EQ(
          std::memcmp(expected.data(), logits.data() + i * request_.vocab_size,
                      request_.vocab_size * sizeof(float)),
          0)
          << "row " << i << " of length " << histories[i].size();
    }
  };
  ASSERT_TRUE(BeamSearch(*context_, request_, recorder).ok());
  EXPECT_GT(rows, 100u);
  EXPECT_GT(recorder.forks, 20u);
}

TEST_F(DecoderBeamTest, S23MoreBeamsAndLongerPromptsThanOneForwardTakes) {
  SetPrompts({100, 37, 1, 64});
  request_.beams.num_beams = request_.beams.num_return_sequences = 9;
  const auto expected = Search(512);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const size_t max_rows : {1, 7, 8}) {
    const auto found = Search(max_rows);
    ASSERT_TRUE(found.ok()) << found.status();
    for (size_t i = 0; i < prompts_.size(); ++i) {
      ASSERT_EQ((*found)[i].size(), 9u);
      for (size_t j = 0; j < 9; ++j) {
        EXPECT_EQ((*found)[i][j].ids, (*expected)[i][j].ids);
        EXPECT_EQ((*found)[i][j].score, (*expected)[i][j].score);
      }
    }
  }
}

TEST_F(DecoderBeamTest, BeamsShareThePagesOfTheirPrompt) {
  SetPrompts({66});
  request_.beams.num_beams = 8;
  const auto executor = MakeExecutor(512);
  auto stepper = DecoderBeamStepper::Create(*executor, pool_, request_.prompts);
  ASSERT_TRUE(stepper.ok());
  RecordingStepper recorder(**stepper, prompts_);
  size_t most = 0;
  recorder.on_step = [&](const std::vector<Ids>&, absl::Span<const float>) {
    most = std::max(most, pool_->pages_in_use());
  };
  ASSERT_TRUE(BeamSearch(*context_, request_, recorder).ok());
  EXPECT_EQ(most, 1u + 8u);  // the prompt's first page, and a last one each
  stepper->reset();
  EXPECT_EQ(pool_->pages_in_use(), 0u);
}

TEST_F(DecoderBeamTest, CachesThatAreFilledAlreadyGiveTheSame) {
  SetPrompts({20, 5});
  const auto expected = Search(512);
  ASSERT_TRUE(expected.ok());
  const auto executor = MakeExecutor(64);
  std::vector<KvCache> caches;
  for (const Ids& prompt : prompts_) {
    caches.emplace_back(pool_);
    ASSERT_TRUE(caches.back().Reserve(prompt.size()).ok());
    const Executor::Entry entry{
        absl::MakeConstSpan(prompt).first(prompt.size() - 1), &caches.back(),
        Executor::Logits::kNone};
    ASSERT_TRUE(executor->Forward({&entry, 1}, nullptr).ok());
  }
  DecoderBeamStepper stepper(*executor, std::move(caches));
  const auto found = BeamSearch(*context_, request_, stepper);
  ASSERT_TRUE(found.ok()) << found.status();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*found)[i][0].ids, (*expected)[i][0].ids);
    EXPECT_EQ((*found)[i][0].score, (*expected)[i][0].score);
  }
}

TEST_F(DecoderBeamTest, ExhaustedPoolIsAnErrorAndGivesAllPagesBack) {
  SetPrompts({66});
  request_.beams.num_beams = 8;
  for (const size_t pages : {0, 1, 2, 5, 8}) {
    pool_ = MakePool(pages);
    const auto found = Search(512);
    EXPECT_EQ(found.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(found.status().message()), HasSubstr("KV cache"));
    EXPECT_EQ(pool_->pages_in_use(), 0u);
  }
  pool_ = MakePool(9);
  EXPECT_TRUE(Search(512).ok());
}

TEST_F(DecoderBeamTest, S22TheModelsLimitEndsTheSearch) {
  SetPrompts({120});
  request_.eos_ids = {};
  request_.max_new_tokens = size_t{1} << 40;
  const auto found = Search(512);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("128"));
}

TEST_F(DecoderBeamTest, IdsOutsideTheVocabularyAreRefused) {
  prompts_ = {{5, 560, 7}};
  request_.prompts.assign(prompts_.begin(), prompts_.end());
  EXPECT_EQ(Search(512).status().code(), absl::StatusCode::kInvalidArgument);
  prompts_ = {{}};
  request_.prompts.assign(prompts_.begin(), prompts_.end());
  EXPECT_THAT(std::string(Search(512).status().message()),
              HasSubstr("prompts[0]"));
}

TEST_F(DecoderBeamTest, ParentsThatDoNotExistAreRefused) {
  SetPrompts({2});
  const auto executor = MakeExecutor(8);
  auto stepper = DecoderBeamStepper::Create(*executor, pool_, request_.prompts);
  ASSERT_TRUE(stepper.ok());
  const BeamStep rows[] = {{0, 5}, {1, 5}};
  EXPECT_EQ((*stepper)->Advance(rows).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lanewise
