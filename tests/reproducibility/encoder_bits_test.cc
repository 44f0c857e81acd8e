// The first promise, for models that see a sequence whole: the same bits for
// any number of threads, batch and instruction set with fused multiply-add; on
// the others, the same values within a tolerance. The model is loaded anew on
// each target, since loading computes too (tables of relative positions).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/model.h"

namespace lanewise {
namespace {

constexpr double kFloatTolerance = 1e-3;
constexpr size_t kLength = 37;

// The hidden states of one sequence, then its outputs.
using Values = std::vector<float>;

struct Schedule {
  size_t threads;
  size_t batch;
  ActivationType activations;
};

class EncoderBitsTest : public testing::TestWithParam<const char*> {
 protected:
  // The sequence runs in the middle of `batch` sequences of other lengths.
  Values Compute(const Target& target, const Schedule& schedule) {
    Context::Options options;
    options.target = target;
    options.threads = schedule.threads;
    const auto context = std::move(Context::Create(options)).value();
    auto checkpoint = Checkpoint::Open(GetParam());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto model = Model::Load(**checkpoint, *context, {});
    EXPECT_TRUE(model.ok()) << model.status();
    const ModelSpec& spec = (*model)->spec();
    std::vector<std::vector<int32_t>> ids(schedule.batch);
    const size_t middle = schedule.batch / 2;
    size_t rows = 0, before = 0;
    for (size_t i = 0; i < schedule.batch; ++i) {
      const size_t length = i == middle ? kLength : 1 + (i * 13) % 70;
      if (i == middle) before = rows;
      for (size_t j = 0; j < length; ++j) {
        const size_t seed = i == middle ? j * 7919 + 11 : j * 31 + i * 101;
        ids[i].push_back(static_cast<int32_t>(seed % spec.vocab_size));
      }
      rows += length;
    }
    Executor::Options executor_options;
    executor_options.max_rows = rows;
    executor_options.activations = schedule.activations;
    auto executor = Executor::Create(**model, *context, executor_options);
    EXPECT_TRUE(executor.ok()) << executor.status();
    std::vector<Executor::Entry> batch(schedule.batch);
    for (size_t i = 0; i < schedule.batch; ++i) {
      batch[i].ids = ids[i];
      batch[i].logits = Executor::Logits::kAll;
    }
    Values hidden(rows * spec.width);
    Values logits(rows * std::max<size_t>(spec.head_width(), 1));
    Executor::Outputs outputs;
    outputs.hidden = hidden.data();
    outputs.logits = logits.data();
    EXPECT_TRUE((*executor)->Forward(batch, outputs).ok());
    const size_t width = spec.width, columns = spec.head_width();
    Values found(hidden.begin() + before * width,
                 hidden.begin() + (before + kLength) * width);
    const bool pooled = spec.head.pooling != Pooling::kNone;
    const size_t first = pooled ? middle : before;
    const size_t count = pooled ? 1 : kLength;
    found.insert(found.end(), logits.begin() + first * columns,
                 logits.begin() + (first + count) * columns);
    return found;
  }
};

double RelativeError(const Values& found, const Values& expected) {
  double squares = 0, worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    squares += double{expected[i]} * expected[i];
    worst = std::max(worst, std::fabs(double{found[i]} - expected[i]));
  }
  return worst / std::sqrt(squares / static_cast<double>(expected.size()));
}

TEST_P(EncoderBitsTest, TargetsThreadsAndBatchesGiveTheSame) {
  for (const ActivationType type :
       {ActivationType::kF32, ActivationType::kNative}) {
    const Values expected = Compute(Target::Best(), {1, 1, type});
    ASSERT_FALSE(expected.empty());
    size_t compared = 0;
    for (const Target& target : Target::Available()) {
      for (const size_t threads : {1, 2, 3, 7}) {
        for (const size_t batch : {1, 4, 32}) {
          const Values found = Compute(target, {threads, batch, type});
          ASSERT_EQ(found.size(), expected.size());
          const std::string what =
              absl::StrCat(std::string(target.name()), ", ", threads,
                           " threads, batch ", batch);
          if (target.has_fma() == Target::Best().has_fma()) {
            EXPECT_EQ(std::memcmp(found.data(), expected.data(),
                                  found.size() * sizeof(float)),
                      0)
                << what;
          } else {
            EXPECT_LE(RelativeError(found, expected), kFloatTolerance) << what;
          }
          ++compared;
        }
      }
    }
    std::printf("%zu runs gave the same\n", compared);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EncoderBitsTest,
                         testing::Values("tests/data/models/albert",
                                         "tests/data/models/bert",
                                         "tests/data/models/bert_seqcls",
                                         "tests/data/models/deberta_v2_conv"),
                         [](const auto& test) {
                           const std::string path = test.param;
                           return path.substr(path.rfind('/') + 1);
                         });

}  // namespace
}  // namespace lanewise
