// Reported faults of caches, windows and limits, seen through the public API.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "tests/model/model_folder.h"
#include "tests/runtime/load_engine.h"

namespace lanewise {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

constexpr char kModel[] = "tests/data/models/llama";

// The llama of tests/data with a window over keys, and `layers` of its three
// layers. 0: no window.
std::unique_ptr<Engine> LoadWindowed(size_t window, size_t layers) {
  ModelFolder folder("llama");
  folder.EditJson("config.json", [&](auto& json) {
    json["model_type"] = "mistral";
    json["num_hidden_layers"] = layers;
    json["sliding_window"] = nullptr;
    if (window > 0) json["sliding_window"] = window;
  });
  EngineOptions options;
  options.threads = 1;
  options.activations = ActivationPrecision::kF32;
  return LoadEngine(folder.path(), options);
}

Ids SomeIds(size_t count) {
  Ids ids;
  for (size_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(5 + (i * 37) % 500));
  }
  return ids;
}

// The logits behind the last of `ids`.
std::vector<float> LastLogits(Engine& engine, const Ids& ids) {
  const auto logits = engine.Logits(ids);
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (!logits.ok()) return {};
  return {logits->end() - static_cast<ptrdiff_t>(engine.vocab_size()),
          logits->end()};
}

// With one layer, the last row sees exactly the last eight ids.
TEST(CacheFaults, A7OldestKeyLeavesAtWindowPlusOne) {
  const auto windowed = LoadWindowed(8, 1), whole = LoadWindowed(0, 1);
  ASSERT_NE(windowed, nullptr);
  ASSERT_NE(whole, nullptr);
  for (size_t length = 7; length <= 10; ++length) {
    SCOPED_TRACE(length);
    const Ids ids = SomeIds(length);
    const std::vector<float> expected = LastLogits(*windowed, ids);
    // The mask changes no bit while every key is inside.
    EXPECT_EQ(LastLogits(*whole, ids) == expected, length <= 8);
    for (size_t i = 0; i < length; ++i) {
      Ids other = ids;
      other[i] += 1;
      const bool outside = i + 8 < length;
      EXPECT_EQ(LastLogits(*windowed, other) == expected, outside) << i;
    }
  }
}

// What the cache held when it grew past its window, against a pass over the
// whole text.
TEST(CacheFaults, A7A20DecodingWithAWindowEqualsOnePass) {
  for (const size_t window : {1, 2, 7, 8, 9, 64, 65}) {
    const auto engine = LoadWindowed(window, 3);
    ASSERT_NE(engine, nullptr);
    // A20: a prompt of one token is the first case.
    for (const size_t prompt : {1, 2, 7, 8, 9, 60}) {
      GenerateRequest request;
      request.prompt_ids = SomeIds(prompt);
      request.max_tokens = 12;
      request.ignore_end = true;
      const auto result = engine->Generate(request, {});
      ASSERT_TRUE(result.ok()) << result.status();
      ASSERT_EQ(result->ids.size(), 12u);
      Ids ids = request.prompt_ids;
      for (const int32_t id : result->ids) {
        const std::vector<float> logits = LastLogits(*engine, ids);
        const auto best = std::max_element(logits.begin(), logits.end());
        EXPECT_EQ(id, best - logits.begin()) << window << " " << ids.size();
        ids.push_back(id);
      }
    }
  }
}

TEST(CacheFaults, A10WarmPrefixesOfEveryLengthGiveTheColdBits) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  GenerateRequest request;
  request.prompt_ids = SomeIds(70);
  request.max_tokens = 4;
  request.hash_logits = true;
  const auto cold = engine->Generate(request, {});
  ASSERT_TRUE(cold.ok()) << cold.status();
  const auto session = *engine->NewSession();
  for (const size_t kept : {0, 1, 63, 64, 65, 69, 70}) {
    GenerateRequest before = request;
    before.prompt_ids.resize(kept);
    before.prompt_ids.push_back(3);  // and then another way
    ASSERT_TRUE(session->Generate(before, {}).ok());
    const auto warm = session->Generate(request, {});
    ASSERT_TRUE(warm.ok()) << warm.status();
    EXPECT_EQ(warm->cached_tokens, std::min<size_t>(kept, 69));
    EXPECT_EQ(warm->logits_hash, cold->logits_hash) << kept;
  }
}

// Each pair is one of the library's own or a usage error; none ends the
// process.
TEST(CacheFaults, A16EveryPairOfPrecisionsRuns) {
  for (const char* model : {"models/llama", "gguf/llama_q4_k_m"}) {
    for (const CachePrecision cache :
         {CachePrecision::kF16, CachePrecision::kBF16, CachePrecision::kF32}) {
      for (const ActivationPrecision activations :
           {ActivationPrecision::kNative, ActivationPrecision::kF32}) {
        EngineOptions options;
        options.cache = cache;
        options.activations = activations;
        const auto engine =
            LoadEngine(std::string("tests/data/") + model, options);
        ASSERT_NE(engine, nullptr);
        GenerateRequest request;
        request.prompt_ids = {7, 8, 9};
        request.max_tokens = 3;
        const auto result = engine->Generate(request, {});
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_EQ(result->ids.size(), 3u);
      }
    }
  }
}

// A cache that does not hold the request is a status, and the session goes on.
TEST(CacheFaults, A17MemoryForTheCacheUsedUp) {
  EngineOptions options;
  options.max_cache_bytes = 1;  // no page fits
  const auto engine = LoadEngine(kModel, options);
  ASSERT_NE(engine, nullptr);
  GenerateRequest request;
  request.prompt_ids = SomeIds(70);
  const auto result = engine->Generate(request, {});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted)
      << result.status();
}

TEST(CacheFaults, S22TokensWithoutLimitEndAtTheContext) {
  const auto engine = LoadEngine(kModel);
  ASSERT_NE(engine, nullptr);
  for (const int32_t beams : {1, 3}) {
    for (const size_t max_tokens :
         {size_t{1} << 40, std::numeric_limits<size_t>::max()}) {
      GenerateRequest request;
      request.prompt = "J";
      request.max_tokens = max_tokens;
      request.ignore_end = true;
      request.beams.num_beams = beams;
      const auto result = engine->Generate(request, {});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->finish_reason, FinishReason::kLength);
      EXPECT_EQ(result->prompt_tokens + result->ids.size(),
                engine->context_length());
    }
  }
}

}  // namespace
}  // namespace lanewise
