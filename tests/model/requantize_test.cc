// Which types matrices get when they are quantized while loading, and what is
// said about it. Bits are compared in tests/tools/load_quantized_test.cc.
#include "model/requantize.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/model.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kF32[] = "tests/data/gguf/llama_f32/model.gguf";
constexpr char kQ4_0[] = "tests/data/gguf/llama_q4_0/model.gguf";
constexpr char kOdd[] = "tests/data/models/llama";  // rows of 48, 72 and 100

absl::StatusOr<std::unique_ptr<const Model>> Load(const std::string& path,
                                                  std::optional<DType> type,
                                                  size_t threads = 2) {
  auto checkpoint = Checkpoint::Open(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  Context::Options options;
  options.threads = threads;
  auto context = Context::Create(options);
  EXPECT_TRUE(context.ok()) << context.status();
  LoadOptions load;
  load.weights = type;
  return Model::Load(**checkpoint, **context, load);
}

TEST(Requantize, MatricesGetTheTypeAndLessMemory) {
  const auto stored = Load(kF32, std::nullopt);
  const auto q8_0 = Load(kF32, DType::kQ8_0);
  const auto q4_0 = Load(kF32, DType::kQ4_0);
  ASSERT_TRUE(stored.ok() && q8_0.ok() && q4_0.ok());
  EXPECT_THAT((*q8_0)->notices(), IsEmpty());
  for (const LayerWeights& layer : (*q8_0)->weights().layers) {
    // Query, key and value became one matrix.
    ASSERT_EQ(layer.qkv.parts.size(), 1u);
    EXPECT_EQ(layer.qkv.parts[0].type(), DType::kQ8_0);
    EXPECT_EQ(layer.ffn.out.parts[0].type(), DType::kQ8_0);
  }
  EXPECT_EQ((*q8_0)->weights().token_embedding->type(), DType::kQ8_0);
  EXPECT_EQ((*q4_0)->weights().layers[0].qkv.parts[0].type(), DType::kQ4_0);
  // Worth more than 4 bits.
  EXPECT_NE((*q4_0)->weights().token_embedding->type(), DType::kQ4_0);
  const double bytes = static_cast<double>((*stored)->weight_bytes());
  EXPECT_NEAR(static_cast<double>((*q8_0)->weight_bytes()) / bytes, 8.5 / 32,
              0.05);
  EXPECT_LT((*q4_0)->weight_bytes(), (*q8_0)->weight_bytes());
}

TEST(Requantize, N11RowsThatAreNoWholeBlocksStayAndAreNamedOnce) {
  const auto stored = Load(kOdd, std::nullopt);
  const auto model = Load(kOdd, DType::kQ8_0);
  ASSERT_TRUE(stored.ok() && model.ok());
  EXPECT_EQ((*model)->weights().token_embedding->type(), DType::kF32);
  EXPECT_EQ((*model)->weight_bytes(), (*stored)->weight_bytes());
  EXPECT_THAT((*model)->notices(),
              ElementsAre(AllOf(HasSubstr("no multiple of 32"),
                                HasSubstr("model.embed_tokens.weight"))));
  // A type without blocks has no such rows.
  const auto halves = Load(kOdd, DType::kBF16);
  ASSERT_TRUE(halves.ok());
  EXPECT_THAT((*halves)->notices(), IsEmpty());
  EXPECT_EQ((*halves)->weights().token_embedding->type(), DType::kBF16);
}

TEST(Requantize, QuantizedMatricesStayAndTheNoticeSaysSo) {
  const auto stored = Load(kQ4_0, std::nullopt);
  const auto model = Load(kQ4_0, DType::kQ8_0);
  ASSERT_TRUE(stored.ok() && model.ok());
  EXPECT_EQ((*model)->weight_bytes(), (*stored)->weight_bytes());
  EXPECT_EQ((*model)->weights().layers[0].qkv.parts[0].type(), DType::kQ4_0);
  EXPECT_THAT((*model)->notices(),
              ElementsAre(HasSubstr("are quantized in the file")));
}

TEST(Requantize, SuperblocksThatDoNotFitBecomeQ8_0) {
  const auto model = Load(kF32, DType::kQ4_K);
  ASSERT_TRUE(model.ok());
  EXPECT_THAT((*model)->notices(),
              ElementsAre(AllOf(HasSubstr("no multiple of 256"),
                                HasSubstr("Q8_0 instead of Q4_K"))));
}

TEST(Requantize, N10ValuesThatAreNotFiniteNameTensorRowAndColumn) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    ModelFolder folder("llama");
    folder.EditValues("model.layers.1.mlp.up_proj.weight", [bad](size_t i) {
      return i == 48 * 99 + 5 ? bad : 0.25f;
    });
    const auto model = Load(folder.path(), DType::kBF16);
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()),
                AllOf(HasSubstr("model.safetensors"),
                      HasSubstr("model.layers.1.mlp.up_proj.weight"),
                      HasSubstr("row 99, column 5")));
    // As stored, the answer's logits will say it.
    EXPECT_TRUE(Load(folder.path(), std::nullopt).ok());
  }
}

TEST(Requantize, ThreadsDoNotMatter) {
  std::vector<std::vector<float>> rows;
  for (const size_t threads : {1, 3}) {
    const auto model = Load(kF32, DType::kQ4_1, threads);
    ASSERT_TRUE(model.ok());
    const PackedMatrix& matrix = (*model)->weights().layers[1].ffn.out.parts[0];
    std::vector<float> values(matrix.rows() * matrix.cols());
    for (size_t row = 0; row < matrix.rows(); ++row) {
      DecodeRow(matrix, row, values.data() + row * matrix.cols());
    }
    rows.push_back(std::move(values));
  }
  EXPECT_EQ(rows[0], rows[1]);
}

}  // namespace
}  // namespace lanewise
