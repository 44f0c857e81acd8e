// Layouts: where the rows of a slot lie in a tensor of a file.
#include "model/tensor_source.h"

#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/slots.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Two key/value heads with two query heads each, heads of two elements: rows of
// the slot are q0 q0 q1 q1 q2 q2 q3 q3 k0 k0 k1 k1 v0 v0 v1 v1.
LayerSpec Layer() {
  LayerSpec layer;
  layer.attention.heads = 4;
  layer.attention.kv_heads = 2;
  layer.attention.head_dim = layer.attention.value_dim = 2;
  layer.attention.rope = 0;
  layer.ffn.gated = true;
  layer.ffn.width = 2;
  layer.ffn.moe.emplace();
  layer.ffn.moe->experts = 3;
  layer.ffn.moe->top_k = 1;
  return layer;
}

// Gives out the bytes of the tensors it is asked for.
class MemoryCheckpoint : public Checkpoint {
 public:
  CheckpointKind kind() const override { return CheckpointKind::kHuggingFace; }
  const std::string& path() const override { return path_; }
  absl::Span<const Tensor> tensors() const override { return {}; }
  absl::Span<const UnsupportedTensor> unsupported() const override {
    return {};
  }
  const Tensor* FindTensor(absl::string_view) const override { return nullptr; }
  absl::StatusOr<const Tensor*> RequireTensor(
      absl::string_view) const override {
    return absl::NotFoundError("");
  }
  absl::Status Read(const Tensor& tensor, uint64_t offset,
                    absl::Span<uint8_t> out) const override {
    std::memcpy(out.data(), tensor.data.data() + offset, out.size());
    return absl::OkStatus();
  }
  const Metadata& metadata() const override { return metadata_; }
  absl::StatusOr<nlohmann::json> ReadJson(absl::string_view) const override {
    return absl::NotFoundError("");
  }
  absl::StatusOr<std::string> ReadText(absl::string_view) const override {
    return absl::NotFoundError("");
  }
  void Release(const Tensor&) const override {}

 private:
  std::string path_ = "memory";
  Metadata metadata_;
};

class TensorSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    spec_.width = 3;
    spec_.ropes.resize(1);
    spec_.layers = {Layer()};
  }

  // A tensor with elements 0, 1, 2, …
  Tensor Counting(std::vector<uint64_t> shape) {
    Tensor tensor{"w", "file", DType::kF32, std::move(shape), {}};
    values_.resize(tensor.elements());
    std::iota(values_.begin(), values_.end(), 0.0f);
    tensor.data = absl::MakeConstSpan(
        reinterpret_cast<const uint8_t*>(values_.data()), 4 * values_.size());
    return tensor;
  }

  // The first column of the slot's rows.
  std::vector<float> FirstColumn(const Tensor& tensor, const TensorRule& rule,
                                 TensorPlace place = {}) {
    place.layer = &spec_.layers[0];
    auto source = TensorSource::Create(tensor, rule, false, spec_, place);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return {};
    const auto all = source->DecodeAll(MemoryCheckpoint());
    EXPECT_TRUE(all.ok()) << all.status();
    std::vector<float> column;
    for (size_t i = 0; i < all->size(); i += source->cols()) {
      column.push_back((*all)[i]);
    }
    return column;
  }

  ModelSpec spec_;
  std::vector<float> values_;
};

TEST_F(TensorSourceTest, QkvInKvGroups) {
  // The file: q0 q1 k0 v0 q2 q3 k1 v1, two rows each.
  const TensorRule rule{
      "",        "",          Slot::kQkv,          false,
      Dim::kQkv, Dim::kWidth, Presence::kRequired, TensorLayout::kKvGroups};
  EXPECT_THAT(FirstColumn(Counting({16, 3}), rule),
              ElementsAre(0, 3, 6, 9, 24, 27, 30, 33,  // queries
                          12, 15, 36, 39,              // keys
                          18, 21, 42, 45));            // values
}

TEST_F(TensorSourceTest, BiasInKvGroups) {
  const TensorRule rule{
      "",        "",        Slot::kQkv,          true,
      Dim::kQkv, Dim::kOne, Presence::kRequired, TensorLayout::kKvGroups};
  EXPECT_THAT(
      FirstColumn(Counting({16}), rule),
      ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
}

TEST_F(TensorSourceTest, OneKvHeadIsPlain) {
  spec_.layers[0].attention.kv_heads = 1;
  const TensorRule rule{
      "",        "",          Slot::kQkv,          false,
      Dim::kQkv, Dim::kWidth, Presence::kRequired, TensorLayout::kKvGroups};
  const auto found = FirstColumn(Counting({12, 3}), rule);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], 3.0f * i);
}

TEST_F(TensorSourceTest, StackedExpertsTransposedEvenOdd) {
  const TensorRule rule{"",
                        "",
                        Slot::kExpertGateUp,
                        false,
                        Dim::kGateUp,
                        Dim::kWidth,
                        Presence::kRequired,
                        TensorLayout::kTransposedEvenOdd};
  TensorPlace place;
  place.stacked = true;
  place.expert = 1;
  // Expert 1 begins at 12; its columns 0 and 2 are the gate, 1 and 3 up.
  EXPECT_THAT(FirstColumn(Counting({3, 3, 4}), rule, place),
              ElementsAre(12, 14, 13, 15));
}

TEST_F(TensorSourceTest, StackedBiasEvenOdd) {
  const TensorRule rule{"",
                        "",
                        Slot::kExpertGateUp,
                        true,
                        Dim::kGateUp,
                        Dim::kOne,
                        Presence::kRequired,
                        TensorLayout::kTransposedEvenOdd};
  TensorPlace place;
  place.stacked = true;
  place.expert = 2;
  EXPECT_THAT(FirstColumn(Counting({3, 4}), rule, place),
              ElementsAre(8, 10, 9, 11));
}

TEST_F(TensorSourceTest, AddOne) {
  const TensorRule rule{
      "",          "",        Slot::kAttentionInputNorm, false,
      Dim::kWidth, Dim::kOne, Presence::kRequired,       TensorLayout::kAddOne};
  EXPECT_THAT(FirstColumn(Counting({3}), rule), ElementsAre(1, 2, 3));
}

TEST_F(TensorSourceTest, KernelsOfAConvolution) {
  spec_.convolution.emplace();
  spec_.convolution->kernel = 5;
  const TensorRule rule{"",
                        "",
                        Slot::kConvolution,
                        false,
                        Dim::kWidth,
                        Dim::kConvolved,
                        Presence::kRequired,
                        TensorLayout::kConvolution};
  EXPECT_THAT(FirstColumn(Counting({3, 3, 5}), rule), ElementsAre(0, 15, 30));
  // The same number of elements in another order is another convolution.
  for (const std::vector<uint64_t>& shape :
       {std::vector<uint64_t>{3, 5, 3}, {3, 15}, {15, 3}}) {
    const auto source =
        TensorSource::Create(Counting(shape), rule, false, spec_, {});
    ASSERT_FALSE(source.ok());
    EXPECT_THAT(std::string(source.status().message()),
                HasSubstr("expected shape [3, 3, 5]"));
  }
}

TEST_F(TensorSourceTest, KernelsOfPatches) {
  spec_.patches = PatchSpec{2, 8, 8, 2};
  const TensorRule rule{"",
                        "",
                        Slot::kPatches,
                        false,
                        Dim::kWidth,
                        Dim::kPatch,
                        Presence::kRequired,
                        TensorLayout::kConvolution};
  EXPECT_THAT(FirstColumn(Counting({3, 2, 2, 2}), rule), ElementsAre(0, 8, 16));
  EXPECT_FALSE(
      TensorSource::Create(Counting({3, 8}), rule, false, spec_, {}).ok());
}

TEST_F(TensorSourceTest, BatchOfOne) {
  const TensorRule rule{
      "",        "",          Slot::kClassToken,   false,
      Dim::kOne, Dim::kWidth, Presence::kRequired, TensorLayout::kBatchOfOne};
  EXPECT_THAT(FirstColumn(Counting({1, 1, 3}), rule), ElementsAre(0));
  const auto source =
      TensorSource::Create(Counting({1, 3}), rule, false, spec_, {});
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(std::string(source.status().message()),
              AllOf(HasSubstr("[1, 1, 3]"), HasSubstr("[1, 3]")));
}

TEST_F(TensorSourceTest, StackOfAnotherNumberOfExperts) {
  const TensorRule rule{"",    "",          Slot::kExpertDown,
                        false, Dim::kWidth, Dim::kFfn};
  TensorPlace place;
  place.layer = &spec_.layers[0];
  place.stacked = true;
  place.expert = 0;
  const auto source =
      TensorSource::Create(Counting({2, 3, 2}), rule, false, spec_, place);
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(std::string(source.status().message()),
              AllOf(HasSubstr("[3, 3, 2]"), HasSubstr("[2, 3, 2]")));
}

TEST(Slots, FollowTheSpec) {
  ModelSpec spec;
  LayerSpec layer = Layer();
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kGate, false));  // experts instead
  EXPECT_TRUE(HasSlot(spec, &layer, Slot::kExpertGate, false));
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kSharedUp, false));
  layer.ffn.moe->shared = SharedExpertSpec{8, false};
  EXPECT_TRUE(HasSlot(spec, &layer, Slot::kSharedUp, false));
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kSharedWeight, false));
  layer.ffn.moe.reset();
  EXPECT_TRUE(HasSlot(spec, &layer, Slot::kGate, false));
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kGate, true));
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kRouter, false));
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kFfnInputNorm, false));
  layer.ffn_norms.input = NormSpec{};
  EXPECT_TRUE(HasSlot(spec, &layer, Slot::kFfnInputNorm, false));
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kFfnInputNorm, true));
  layer.ffn_norms.input->weight = false;
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kFfnInputNorm, false));
  EXPECT_FALSE(HasSlot(spec, &layer, Slot::kSinks, false));
  EXPECT_FALSE(HasSlot(spec, nullptr, Slot::kEmbeddingIn, false));
  EXPECT_FALSE(HasSlot(spec, nullptr, Slot::kPositionEmbedding, false));
}

}  // namespace
}  // namespace lanewise
