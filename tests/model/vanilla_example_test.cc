// Models that a program builds: a ModelSpec in code, tensors in memory. The
// Transformer of 2017, and an encoder of vectors as for time series.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "tests/model/transformer_reference.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

constexpr size_t kWidth = 24, kHeads = 3, kLayers = 2, kFfn = 40;
constexpr size_t kSource = 31, kTarget = 37;  // vocabularies
constexpr double kTolerance = 2e-5;

// The example: both stacks of the Transformer as data.
ModelSpec TransformerSpec() {
  LayerSpec layer;
  AttentionSpec& attention = layer.attention;
  attention.heads = attention.kv_heads = kHeads;
  attention.head_dim = attention.value_dim = kWidth / kHeads;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(kWidth / kHeads));
  attention.causal = false;
  attention.qkv_bias = attention.output_bias = true;
  const NormSpec norm{NormKind::kLayerNorm, 1e-5f, true, /*bias=*/true};
  layer.attention_norms.after = layer.ffn_norms.after = norm;
  layer.ffn.activation = Activation::kRelu;
  layer.ffn.width = kFfn;
  layer.ffn.bias = true;

  ModelSpec encoder;
  encoder.family = "example";
  encoder.vocab_size = kSource;
  encoder.width = kWidth;
  encoder.max_positions = 64;
  encoder.embedding_scale = std::sqrt(static_cast<float>(kWidth));
  encoder.positions.kind = PositionSpec::Kind::kSinusoidalInterleaved;
  encoder.layers.assign(kLayers, layer);
  encoder.final_norm = norm;
  encoder.head.task = HeadTask::kNone;

  ModelSpec decoder = encoder;
  decoder.vocab_size = kTarget;
  layer.cross = CrossAttentionSpec{layer.attention_norms, attention};
  layer.attention.causal = true;
  decoder.layers.assign(kLayers, layer);
  decoder.head.task = HeadTask::kNextToken;
  decoder.head.bias = true;
  decoder.encoder.push_back(encoder);
  return decoder;
}

// Weights as a training program would have them: here, any numbers.
class Tensors {
 public:
  void Add(const std::string& name, std::vector<uint64_t> shape) {
    size_t count = 1;
    for (const uint64_t size : shape) count *= size;
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) {
      state_ = state_ * 6364136223846793005u + 1442695040888963407u;
      values.push_back(static_cast<float>(state_ >> 40) * 0x1p-24f - 0.5f);
    }
    all.push_back({name, std::move(shape), std::move(values)});
  }
  void AddLinear(const std::string& name, size_t rows, size_t cols) {
    Add(name + ".weight", {rows, cols});
    Add(name + ".bias", {rows});
  }
  void AddAttention(const std::string& name) {
    Add(name + ".in_proj_weight", {3 * kWidth, kWidth});
    Add(name + ".in_proj_bias", {3 * kWidth});
    AddLinear(name + ".out_proj", kWidth, kWidth);
  }
  void AddNorm(const std::string& name) {
    Add(name + ".weight", {kWidth});
    Add(name + ".bias", {kWidth});
  }
  void AddStack(const std::string& stack, bool decoder) {
    for (size_t i = 0; i < kLayers; ++i) {
      const std::string layer = stack + ".layers." + std::to_string(i) + ".";
      AddAttention(layer + "self_attn");
      if (decoder) AddAttention(layer + "multihead_attn");
      AddLinear(layer + "linear1", kFfn, kWidth);
      AddLinear(layer + "linear2", kWidth, kFfn);
      for (int j = 1; j <= (decoder ? 3 : 2); ++j) {
        AddNorm(layer + "norm" + std::to_string(j));
      }
    }
    AddNorm(stack + ".norm");
  }

  std::vector<NamedTensor> all;

 private:
  uint64_t state_ = 1;
};

Tensors TransformerTensors() {
  Tensors tensors;
  tensors.Add("src_embed.weight", {kSource, kWidth});
  tensors.Add("tgt_embed.weight", {kTarget, kWidth});
  tensors.AddStack("transformer.encoder", /*decoder=*/false);
  tensors.AddStack("transformer.decoder", /*decoder=*/true);
  tensors.AddLinear("generator", kTarget, kWidth);
  return tensors;
}

void ExpectNear(const std::vector<float>& found,
                const TransformerReference::Rows& expected) {
  size_t at = 0;
  for (const auto& row : expected) {
    for (const double value : row) {
      ASSERT_LT(at, found.size());
      EXPECT_NEAR(found[at], value, kTolerance) << "value " << at;
      ++at;
    }
  }
  EXPECT_EQ(at, found.size());
}

class VanillaExample : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { context_ = std::move(Context::Create({})).value(); }

  absl::StatusOr<std::unique_ptr<const Model>> Make(const ModelSpec& spec,
                                                    const Tensors& tensors) {
    auto checkpoint = Checkpoint::FromTensors("example", tensors.all);
    if (!checkpoint.ok()) return checkpoint.status();
    return Model::FromSpec(spec, *FamilyOfModelType("vanilla_transformer"),
                           **checkpoint, *context_, {});
  }

  std::unique_ptr<Executor> NewExecutor(const Model& model) {
    Executor::Options options;
    options.activations = ActivationType::kF32;
    return std::move(Executor::Create(model, *context_, options)).value();
  }

  std::unique_ptr<Context> context_;
};

// Norms before the sublayers instead.
void MoveNorms(ModelSpec* spec) {
  for (LayerSpec& layer : spec->layers) {
    layer.attention_norms.input.swap(layer.attention_norms.after);
    layer.ffn_norms.input.swap(layer.ffn_norms.after);
    if (layer.cross.has_value()) {
      layer.cross->norms.input.swap(layer.cross->norms.after);
    }
  }
  for (ModelSpec& encoder : spec->encoder) MoveNorms(&encoder);
}

TEST_P(VanillaExample, TransformerEqualsTheScalarOne) {
  const Tensors tensors = TransformerTensors();
  ModelSpec spec = TransformerSpec();
  if (GetParam()) MoveNorms(&spec);
  const auto model = Make(spec, tensors);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_THAT((*model)->notices(), testing::IsEmpty());

  const Ids source = {3, 1, 4, 1, 5, 9, 2}, target = {1, 30, 36, 0, 7};
  std::vector<float> hidden(source.size() * kWidth);
  Executor::Entry entry{source, nullptr, Executor::Logits::kNone};
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  ASSERT_TRUE(
      NewExecutor(*(*model)->encoder())->Forward({&entry, 1}, outputs).ok());

  const auto decoder = NewExecutor(**model);
  KvCache memory(
      KvPagePool::CreateForMemory(spec, CacheType::kF32, size_t{1} << 24));
  ASSERT_TRUE(decoder->FillMemory(hidden, &memory).ok());
  KvCache cache(KvPagePool::Create(spec, CacheType::kF32, size_t{1} << 24));
  ASSERT_TRUE(cache.Reserve(target.size()).ok());
  std::vector<float> logits(target.size() * kTarget);
  entry = {target, &cache, Executor::Logits::kAll};
  entry.memory = &memory;
  ASSERT_TRUE(decoder->Forward({&entry, 1}, logits.data()).ok());

  const TransformerReference reference({kWidth, kHeads, kLayers, GetParam()},
                                       tensors.all);
  const auto encoded =
      reference.Encode(reference.Embed("src_embed.weight", source));
  ExpectNear(hidden, encoded);
  ExpectNear(logits, reference.Decode(
                         reference.Embed("tgt_embed.weight", target), encoded));
}

// A time series: rows of measurements, already of the model's width.
TEST_P(VanillaExample, EncoderOfVectorsEqualsTheScalarOne) {
  Tensors tensors;
  tensors.AddStack("transformer.encoder", /*decoder=*/false);
  ModelSpec spec = TransformerSpec().encoder.front();
  spec.input = InputKind::kVectors;
  spec.vocab_size = 0;
  spec.embedding_scale = 1.0f;
  if (GetParam()) MoveNorms(&spec);
  const auto model = Make(spec, tensors);
  ASSERT_TRUE(model.ok()) << model.status();

  // Two series of unequal length, in one batch.
  TransformerReference::Rows rows[2];
  std::vector<float> series[2];
  for (size_t i = 0; i < 2; ++i) {
    rows[i].assign(5 + 4 * i, TransformerReference::Row(kWidth));
    for (size_t t = 0; t < rows[i].size(); ++t) {
      for (size_t j = 0; j < kWidth; ++j) {
        const double value = std::sin(static_cast<double>(t * (j + 2) + i));
        series[i].push_back(static_cast<float>(value));
        rows[i][t][j] = series[i].back();
      }
    }
  }
  std::vector<Executor::Entry> batch(2);
  for (size_t i = 0; i < 2; ++i) batch[i].vectors = series[i];
  std::vector<float> hidden(14 * kWidth);
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  const auto executor = NewExecutor(**model);
  const absl::Status status = executor->Forward(batch, outputs);
  ASSERT_TRUE(status.ok()) << status;

  const TransformerReference reference({kWidth, kHeads, kLayers, GetParam()},
                                       tensors.all);
  TransformerReference::Rows expected;
  for (auto& one : rows) {
    reference.AddSinusoids(&one);
    for (auto& row : reference.Encode(one)) expected.push_back(row);
  }
  ExpectNear(hidden, expected);

  // Ids, or rows cut short, are refused.
  const Ids ids = {1, 2};
  Executor::Entry wrong{ids, nullptr, Executor::Logits::kNone};
  EXPECT_EQ(executor->Forward({&wrong, 1}, outputs).code(),
            absl::StatusCode::kInvalidArgument);
  wrong = {};
  wrong.vectors = absl::MakeConstSpan(series[0]).first(kWidth + 1);
  EXPECT_EQ(executor->Forward({&wrong, 1}, outputs).code(),
            absl::StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Norms, VanillaExample, testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "First" : "Last";
                         });

TEST(VanillaExampleErrors, NameTheTensor) {
  const auto context = std::move(Context::Create({})).value();
  Tensors tensors = TransformerTensors();
  const auto make = [&] {
    auto checkpoint = Checkpoint::FromTensors("example", tensors.all);
    if (!checkpoint.ok()) return checkpoint.status();
    return Model::FromSpec(TransformerSpec(),
                           *FamilyOfModelType("vanilla_transformer"),
                           **checkpoint, *context, {})
        .status();
  };
  const auto expect = [&](const std::string& message) {
    EXPECT_THAT(std::string(make().message()), testing::HasSubstr(message));
  };
  tensors.all[0].values.pop_back();
  expect("example: tensor src_embed.weight: expected the values of shape");
  tensors.all.erase(tensors.all.begin());
  expect("example: tensor src_embed.weight: expected by family");
  tensors.Add("src_embed.weight", {kSource + 1, kWidth});
  expect("example: tensor src_embed.weight: expected shape [31, 24]");
  tensors.Add("src_embed.weight", {kSource, kWidth});
  expect("src_embed.weight");
}

}  // namespace
}  // namespace lanewise
