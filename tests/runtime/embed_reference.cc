#include "tests/runtime/embed_reference.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "gtest/gtest.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/context.h"
#include "simd/matmul.h"

namespace lanewise {

const std::vector<std::string>& Texts() {
  static const auto* const texts = new std::vector<std::string>{
      "The quick brown fox",
      "",
      "It's 42, isn't it? The quick brown fox jumps over the lazy dog, again "
      "and again, until it is tired.",
      "a",
      "It's 42, isn't it?",
      "\xE6\xAD broken bytes",
      "fox fox fox"};
  return *texts;
}

EmbedRequest Request(std::vector<std::string> texts) {
  EmbedRequest request;
  request.texts = std::move(texts);
  return request;
}

Vectors Embed(Engine* engine, const EmbedRequest& request) {
  const auto result = engine->Embed(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return {};
  Vectors vectors;
  const size_t inputs = request.texts.size() + request.vectors.size();
  for (size_t i = 0; i < inputs; ++i) {
    vectors.emplace_back(result->vectors.begin() + i * result->width,
                         result->vectors.begin() + (i + 1) * result->width);
  }
  return vectors;
}

std::string ErrorOf(Engine* engine, const EmbedRequest& request) {
  const auto result = engine->Embed(request, {});
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

Vectors HiddenRows(const std::string& path, const std::string& text) {
  const auto context = *Context::Create({});
  const auto checkpoint = *Checkpoint::Open(path);
  const auto model = *Model::Load(*checkpoint, *context, {});
  const auto executor = *Executor::Create(*model, *context, {});
  EncodeOptions encode;
  encode.truncate = encode.pad = false;
  const auto ids = *(*Tokenizer::Load(*checkpoint))->Encode(text, encode);
  std::vector<float> hidden(ids.size() * kEmbedWidth);
  Executor::Entry entry{ids, nullptr, Executor::Logits::kNone};
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  EXPECT_TRUE(executor->Forward({&entry, 1}, outputs).ok());
  Vectors rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    rows.emplace_back(hidden.begin() + i * kEmbedWidth,
                      hidden.begin() + (i + 1) * kEmbedWidth);
  }
  return rows;
}

std::vector<float> TokenRows(const std::string& path, const std::string& text) {
  const auto context = *Context::Create({});
  const auto checkpoint = *Checkpoint::Open(path);
  const auto model = *Model::Load(*checkpoint, *context, {});
  EncodeOptions encode;
  encode.truncate = encode.pad = false;
  const auto ids = *(*Tokenizer::Load(*checkpoint))->Encode(text, encode);
  std::vector<float> rows(ids.size() * kEmbedWidth);
  for (size_t i = 0; i < ids.size(); ++i) {
    DecodeRow(*model->weights().token_embedding, static_cast<size_t>(ids[i]),
              rows.data() + i * kEmbedWidth);
  }
  return rows;
}

std::vector<float> Pooled(EmbedPooling pooling, const Vectors& rows) {
  std::vector<float> out;
  for (size_t c = 0; c < kEmbedWidth; ++c) {
    double sum = 0, weighted = 0, max = -INFINITY;
    for (size_t r = 0; r < rows.size(); ++r) {
      sum += rows[r][c];
      weighted += static_cast<double>(r + 1) * rows[r][c];
      max = std::fmax(max, rows[r][c]);
    }
    const double n = static_cast<double>(rows.size());
    double value = sum / n;
    if (pooling == EmbedPooling::kFirst) value = rows.front()[c];
    if (pooling == EmbedPooling::kLast) value = rows.back()[c];
    if (pooling == EmbedPooling::kMax) value = max;
    if (pooling == EmbedPooling::kMeanSqrtLength) value = sum / std::sqrt(n);
    if (pooling == EmbedPooling::kWeightedMean) {
      value = weighted / (n * (n + 1) / 2);
    }
    out.push_back(static_cast<float>(value));
  }
  return out;
}

std::vector<float> Normalized(std::vector<float> x) {
  double squares = 0;
  for (const float v : x) squares += double{v} * v;
  for (float& v : x) v = static_cast<float>(v / std::sqrt(squares));
  return x;
}

void ExpectNear(const std::vector<float>& found,
                const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 2e-6 * (1 + std::fabs(expected[i])))
        << i;
  }
}

SentenceModel::SentenceModel()
    : ModelFolder("bert_mlm"), modules_(nlohmann::json::array()) {
  Add("Transformer", "");
}

void SentenceModel::Pooling(const std::string& config) {
  AddFolder("1_Pooling");
  Write("1_Pooling/config.json", config);
  Add("Pooling", "1_Pooling");
}

void SentenceModel::Add(const std::string& type, const std::string& folder) {
  modules_.push_back(
      {{"type", "sentence_transformers.models." + type}, {"path", folder}});
  Write("modules.json", modules_.dump());
}

void SentenceModel::AddFolder(const std::string& name) {
  std::filesystem::create_directory(path() + "/" + name);
}

void SentenceModel::Dense(size_t out,
                          const std::function<float(size_t, size_t)>& value,
                          const std::string& activation) {
  AddFolder("2_Dense");
  nlohmann::json config = {{"in_features", kEmbedWidth},
                           {"out_features", out},
                           {"bias", true},
                           {"activation_function", activation}};
  Write("2_Dense/config.json", config.dump());
  std::vector<float> data;
  for (size_t r = 0; r < out; ++r) {
    for (size_t c = 0; c < kEmbedWidth; ++c) data.push_back(value(r, c));
  }
  for (size_t r = 0; r < out; ++r) data.push_back(value(r, kEmbedWidth));
  const size_t weights = out * kEmbedWidth * 4;
  nlohmann::json header;
  header["linear.weight"] = {{"dtype", "F32"},
                             {"shape", {out, kEmbedWidth}},
                             {"data_offsets", {0, weights}}};
  header["linear.bias"] = {{"dtype", "F32"},
                           {"shape", {out}},
                           {"data_offsets", {weights, weights + out * 4}}};
  const std::string text = header.dump();
  const uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), 8);
  bytes += text;
  bytes.append(reinterpret_cast<const char*>(data.data()), data.size() * 4);
  Write("2_Dense/model.safetensors", bytes);
  Add("Dense", "2_Dense");
}

}  // namespace lanewise
