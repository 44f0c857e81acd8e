// What damaged folders of encoder-decoders get, and memories of a wrong size.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "simd/context.h"
#include "tests/conformance/seq2seq_model.h"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ids = std::vector<int32_t>;

constexpr size_t kWidth = 48;

class Seq2SeqDamage : public testing::Test {
 protected:
  void SetUp() override { context_ = std::move(Context::Create({})).value(); }

  absl::StatusOr<std::unique_ptr<Seq2SeqModel>> Load(
      const ModelFolder& folder) {
    auto checkpoint = Checkpoint::Open(folder.path());
    if (!checkpoint.ok()) return checkpoint.status();
    return Seq2SeqModel::Load(**checkpoint, *context_);
  }

  std::vector<float> Logits(Seq2SeqModel& model, const Ids& source,
                            const Ids& target) {
    auto encoded = model.Encode(Seq2SeqInputs::FromIds({source}));
    EXPECT_TRUE(encoded.ok()) << encoded.status();
    auto decoded = model.Decode(*encoded, {target});
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return std::move(decoded->stack.logits);
  }

  // What loading the folder says.
  std::string Message(const ModelFolder& folder) {
    return std::string(Load(folder).status().message());
  }

  std::unique_ptr<Context> context_;
};

Ids Pattern(size_t count, int32_t step) {
  Ids ids;
  for (size_t i = 0; i < count; ++i) {
    ids.push_back(2 + static_cast<int32_t>(i) * step % 500);
  }
  return ids;
}

TEST_F(Seq2SeqDamage, M23AnEmptyInputIsNoDivisionByZero) {
  const auto model = Load(ModelFolder("t5"));
  ASSERT_TRUE(model.ok()) << model.status();
  for (const float logit : Logits(**model, {}, {0, 5, 9})) {
    ASSERT_TRUE(std::isfinite(logit));
  }
}

TEST_F(Seq2SeqDamage, MemoryIsChecked) {
  const auto model = Load(ModelFolder("t5"));
  ASSERT_TRUE(model.ok()) << model.status();
  Executor& decoder = (*model)->decoder();
  const ModelSpec& spec = (*model)->model().spec();
  const std::vector<float> rows(70 * kWidth, 0.25f);
  KvCache memory(KvPagePool::CreateForMemory(spec, CacheType::kF32, 1 << 24));
  EXPECT_THAT(
      std::string(
          decoder
              .FillMemory(absl::MakeConstSpan(rows).first(kWidth + 1), &memory)
              .message()),
      AllOf(HasSubstr("memory: "), HasSubstr("found 49 values")));
  EXPECT_EQ(memory.length(), 0u);
  KvCache full(KvPagePool::CreateForMemory(spec, CacheType::kF32, 0));
  EXPECT_EQ(decoder.FillMemory(rows, &full).code(),
            absl::StatusCode::kResourceExhausted);

  const Ids ids = {1};
  auto cache = (*model)->NewCache(4);
  ASSERT_TRUE(cache.ok());
  std::vector<float> logits((*model)->vocab_size());
  const Executor::Entry entry{ids, &*cache, Executor::Logits::kLast};
  const absl::Status status = decoder.Forward({&entry, 1}, logits.data());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("memory: expected"));
  EXPECT_EQ(cache->length(), 0u);
}

// Rows appended in parts are the rows at once.
TEST_F(Seq2SeqDamage, MemoryFilledInPartsGivesTheSameBits) {
  const auto model = Load(ModelFolder("t5"));
  ASSERT_TRUE(model.ok()) << model.status();
  auto encoded = (*model)->Encode(Seq2SeqInputs::FromIds({Pattern(130, 7)}));
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  const std::vector<float>& rows = encoded->stack.hidden;
  KvCache memory(KvPagePool::CreateForMemory((*model)->model().spec(),
                                             CacheType::kF32, 1 << 24));
  size_t begin = 0;
  for (const size_t count : {1, 63, 64, 2}) {
    ASSERT_TRUE((*model)
                    ->decoder()
                    .FillMemory(absl::MakeConstSpan(rows).subspan(
                                    begin * kWidth, count * kWidth),
                                &memory)
                    .ok());
    begin += count;
  }
  ASSERT_EQ(memory.length(), 130u);
  std::vector<float> logits[2];
  const KvCache* const memories[] = {&encoded->memories[0], &memory};
  for (size_t i = 0; i < 2; ++i) {
    auto cache = (*model)->NewCache(3);
    ASSERT_TRUE(cache.ok());
    auto found = (*model)->Step({{0, 7, 9}}, {&*cache}, {memories[i]});
    ASSERT_TRUE(found.ok()) << found.status();
    logits[i] = *std::move(found);
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST_F(Seq2SeqDamage, DamagedFoldersNameTheTensor) {
  const auto rename = [](ModelFolder* folder, const char* from,
                         const char* to) {
    folder->EditTensors([&](nlohmann::ordered_json& header) {
      header[to] = header[from];
      header.erase(from);
    });
  };
  for (const char* name : {"decoder.block.1.layer.1.EncDecAttention.k.weight",
                           "encoder.block.2.layer.1.DenseReluDense.wo.weight",
                           "encoder.block.0.layer.0.SelfAttention.relative_"
                           "attention_bias.weight"}) {
    ModelFolder folder("t5");
    rename(&folder, name, "other");
    EXPECT_THAT(Message(folder), AllOf(HasSubstr(name), HasSubstr("t5")));
  }
  ModelFolder without_embedding("t5");
  rename(&without_embedding, "shared.weight", "other");
  EXPECT_THAT(Message(without_embedding),
              HasSubstr("tensor encoder.embed_tokens.weight: expected by"));
  const std::pair<const char*, const char*> patches[] = {
      {R"({"d_kv": 16})",
       "encoder.block.0.layer.0.SelfAttention.q.weight: expected shape "
       "[64, 48]"},
      {R"({"num_layers": 4})", "encoder.block.3.layer.0"},
      {R"({"num_decoder_layers": 3})", "decoder.block.2.layer.0"},
      {R"({"relative_attention_num_buckets": 16})",
       "relative_attention_bias.weight: expected shape [16, 4]"},
      {R"({"feed_forward_proj": "gated-gelu"})", "wi_0.weight"},
      {R"({"vocab_size": 561})", "shared.weight: expected shape [561, 48]"}};
  for (const auto& [patch, message] : patches) {
    ModelFolder folder("t5");
    folder.EditJson("config.json", [&](nlohmann::json& config) {
      config.merge_patch(nlohmann::json::parse(patch));
    });
    EXPECT_THAT(Message(folder), HasSubstr(message)) << patch;
  }
}

TEST_F(Seq2SeqDamage, NoticesSayWhatIsNotUsed) {
  ModelFolder folder("t5");
  const auto whole = Load(folder);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT((*whole)->model().notices(), IsEmpty());
  // Both stacks read one embedding, which is held and counted once.
  const Model& model = (*whole)->model();
  EXPECT_EQ(model.weights().token_embedding,
            model.encoder()->weights().token_embedding);
  EXPECT_EQ(model.weight_bytes() + model.weights().token_embedding->bytes(),
            model.weights().bytes() + model.encoder()->weights().bytes());
  folder.EditJson("config.json", [](nlohmann::json& config) {
    config["num_decoder_layers"] = 1;
  });
  const auto fewer = Load(folder);
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_THAT((*fewer)->model().notices(),
              ElementsAre(HasSubstr("ignored 13 tensors that family t5")));
}

}  // namespace
}  // namespace lanewise
