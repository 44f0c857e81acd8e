// Reported faults of encoders: positions that begin behind the padding id, and
// token types.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "simd/context.h"
#include "simd/pooling.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr size_t kTable =
    80;  // rows of the position table of tests/data's bert
constexpr size_t kWidth = 48;

// A model and what runs it.
struct Encoder {
  std::unique_ptr<Context> context;
  std::unique_ptr<const Model> model;
  std::unique_ptr<Executor> executor;

  explicit Encoder(const std::string& path) {
    context = std::move(Context::Create({})).value();
    auto checkpoint = Checkpoint::Open(path);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    auto loaded = Model::Load(**checkpoint, *context, {});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    model = *std::move(loaded);
    executor = std::move(Executor::Create(*model, *context, {})).value();
  }

  absl::Status Run(const Ids& ids, const Ids& types,
                   std::vector<float>* hidden) {
    hidden->assign(ids.size() * kWidth, 0.0f);
    Executor::Entry entry{ids, nullptr, Executor::Logits::kNone};
    entry.type_ids = types;
    Executor::Outputs outputs;
    outputs.hidden = hidden->data();
    return executor->Forward({&entry, 1}, outputs);
  }

  std::vector<float> Hidden(const Ids& ids, const Ids& types = {}) {
    std::vector<float> hidden;
    const absl::Status status = Run(ids, types, &hidden);
    EXPECT_TRUE(status.ok()) << status;
    return hidden;
  }
};

// Makes row r of a table [kTable, kWidth] recognisable.
float TableValue(size_t row, size_t column) {
  return static_cast<float>((row * 31 + column * 7) % 101) * 0.01f - 0.5f;
}

void FillPositions(ModelFolder* folder, size_t first_row) {
  folder->EditValues("embeddings.position_embeddings.weight", [&](size_t i) {
    return TableValue(i / kWidth + first_row, i % kWidth);
  });
}

Ids SomeIds(size_t count) {
  Ids ids;
  for (size_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(10 + (i * 37) % 300));
  }
  return ids;
}

TEST(EncoderFaults, M13PositionsBeginBehindThePaddingId) {
  for (const size_t padding : {0, 1, 3}) {
    SCOPED_TRACE(padding);
    ModelFolder shifted("bert"), plain("bert");
    shifted.EditJson("config.json", [&](auto& json) {
      json["model_type"] = "roberta";
      json["architectures"] = {"RobertaModel"};
      json["pad_token_id"] = padding;
    });
    FillPositions(&shifted, 0);
    FillPositions(&plain, padding + 1);  // its row 0 is the other's first one
    Encoder roberta(shifted.path()), bert(plain.path());
    const size_t longest = kTable - padding - 1;
    EXPECT_EQ(roberta.model->spec().max_positions, longest);
    for (const size_t count : {size_t{1}, size_t{9}, longest}) {
      // The padding id itself is a token like any other: it moves no position.
      Ids ids = SomeIds(count);
      ids[count / 2] = static_cast<int32_t>(padding);
      EXPECT_TRUE(roberta.Hidden(ids) == bert.Hidden(ids)) << count;
    }
    std::vector<float> hidden;
    const absl::Status status = roberta.Run(SomeIds(longest + 1), {}, &hidden);
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::to_string(longest)));
  }
}

TEST(EncoderFaults, M13PaddingIdBeyondTheTable) {
  ModelFolder folder("bert");
  folder.EditJson("config.json", [](auto& json) {
    json["model_type"] = "roberta";
    json["pad_token_id"] = 79;
  });
  const auto context = std::move(Context::Create({})).value();
  auto checkpoint = Checkpoint::Open(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto model = Model::Load(**checkpoint, *context, {});
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(std::string(model.status().message()),
              AllOf(HasSubstr("config.json"),
                    HasSubstr("max_position_embeddings"), HasSubstr("80")));
}

TEST(EncoderFaults, M26TokenTypesAreRowsOfTheTable) {
  ModelFolder folder("bert");
  folder.EditValues("embeddings.token_type_embeddings.weight", [](size_t i) {
    return i < kWidth ? 0.0f : TableValue(1, i % kWidth);
  });
  Encoder bert(folder.path());
  const Ids ids = SomeIds(6);
  const auto zeros = bert.Hidden(ids);
  EXPECT_TRUE(bert.Hidden(ids, {0, 0, 0, 0, 0, 0}) == zeros);
  EXPECT_FALSE(bert.Hidden(ids, {0, 0, 0, 1, 1, 1}) == zeros);
  std::vector<float> hidden;
  for (const Ids& types :
       {Ids{0, 0, 0, 0, 0, 2}, Ids{0, 0, 0, 0, 0, -1}, Ids{0, 1}}) {
    EXPECT_EQ(bert.Run(ids, types, &hidden).code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(bert.Hidden(ids) == zeros);
}

// A table of one row, and none at all: type 1 is refused, not read.
TEST(EncoderFaults, M26OneTypeOnly) {
  ModelFolder folder("bert");
  folder.EditJson("config.json",
                  [](auto& json) { json["type_vocab_size"] = 1; });
  const std::string name = "embeddings.token_type_embeddings.weight";
  folder.EditTensors([&](auto& header) {
    // The second row becomes a tensor that nobody uses.
    const uint64_t begin = header[name]["data_offsets"][0];
    const uint64_t middle = begin + kWidth * sizeof(float);
    header["spare"] = header[name];
    header["spare"]["shape"] = {1, kWidth};
    header["spare"]["data_offsets"][0] = middle;
    header[name]["shape"] = {1, kWidth};
    header[name]["data_offsets"][1] = middle;
  });
  Encoder bert(folder.path());
  EXPECT_EQ(bert.model->spec().token_types, 1u);
  const Ids ids = SomeIds(3);
  EXPECT_TRUE(bert.Hidden(ids, {0, 0, 0}) == bert.Hidden(ids));
  std::vector<float> hidden;
  const absl::Status status = bert.Run(ids, {0, 0, 1}, &hidden);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("token type"), HasSubstr("found 1")));
}

// Rows of a batch are packed, so a mean cannot run over padding: it has the
// bits of the sequence alone.
TEST(EncoderFaults, M17MeanOfASequenceBesideLongerOnes) {
  Encoder bert("tests/data/models/bert");
  std::vector<Ids> texts;
  for (const size_t count : {1, 40, 7, 80, 3}) texts.push_back(SomeIds(count));
  std::vector<Executor::Entry> entries;
  size_t rows = 0;
  for (const Ids& ids : texts) {
    entries.push_back({ids, nullptr, Executor::Logits::kNone});
    rows += ids.size();
  }
  std::vector<float> all(rows * kWidth);
  Executor::Outputs outputs;
  outputs.hidden = all.data();
  ASSERT_TRUE(bert.executor->Forward(entries, outputs).ok());
  const float* begin = all.data();
  for (const Ids& ids : texts) {
    const std::vector<float> alone = bert.Hidden(ids);
    std::vector<float> expected(kWidth), found(kWidth);
    Pool(Target::Best(), RowPooling::kMean,
         {alone.data(), ids.size(), kWidth, kWidth}, expected.data());
    Pool(Target::Best(), RowPooling::kMean, {begin, ids.size(), kWidth, kWidth},
         found.data());
    EXPECT_TRUE(found == expected) << ids.size();
    double sum = 0;
    for (size_t r = 0; r < ids.size(); ++r) sum += alone[r * kWidth];
    EXPECT_NEAR(found[0], sum / static_cast<double>(ids.size()), 1e-5);
    begin += ids.size() * kWidth;
  }
}

}  // namespace
}  // namespace lanewise
