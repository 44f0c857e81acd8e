// Texts of a megabyte without a break, for every tokenizer model: time is
// linear in the text, and a small stack is enough.
#include <malloc.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "tests/model/tokenizer/golden.h"

namespace lanewise {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

// Sanitizers make frames larger and everything slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kSmallStack = 512 * 1024;
constexpr size_t kLongText = 50'000;
#else
constexpr size_t kSmallStack = 64 * 1024;
constexpr size_t kLongText = 1'000'000;
#endif

std::string Repeat(absl::string_view text, size_t bytes) {
  std::string out;
  out.reserve(bytes + text.size());
  while (out.size() < bytes) out.append(text.data(), text.size());
  return out;
}

using Named = std::pair<std::string, std::unique_ptr<Tokenizer>>;

// Each model and way to cut text before it: byte-level BPE, BPE of whole
// sentences, SentencePiece's merges by score (GGUF), Unigram, WordPiece and
// WordLevel.
std::vector<Named> EveryModel() {
  std::vector<Named> models;
  for (const char* name : {"gpt2", "o200k", "qwen2", "llama2", "gemma", "t5",
                           "xlmr", "bert_uncased", "wordlevel"}) {
    models.emplace_back(name, LoadTestTokenizer(name));
  }
  const auto gguf = Checkpoint::Open("tests/data/gguf/llama_f32/model.gguf");
  EXPECT_TRUE(gguf.ok()) << gguf.status();
  auto sentencepiece = Tokenizer::Load(**gguf);
  EXPECT_TRUE(sentencepiece.ok()) << sentencepiece.status();
  models.emplace_back("SentencePiece", *std::move(sentencepiece));
  return models;
}

// One character each, as the reports have it, and what else has no break.
const char* const kRepeated[] = {
    "Z", "a", "_", " ", "\n", "\xE4\xB8\x80", "a\xCC\x81"};

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

// Large blocks stay with the process: fresh pages would be a part of the time
// that depends on more than the length.
void KeepMemory() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

// What work(2n) takes over what work(n) takes: medians of processor times taken
// in turn. n log n is at 2.1; what grows by the square is at 4 in every try,
// while a busy machine spoils one or two.
constexpr double kLinear = 2.5;

double Growth(size_t n, const std::function<void(size_t)>& work) {
  KeepMemory();
  double least = 1e9;
  for (size_t rounds = 3; rounds <= 15 && least >= kLinear; rounds += 6) {
    std::vector<double> once, twice;
    for (size_t i = 0; i < rounds; ++i) {
      const double begin = ThreadSeconds();
      work(n);
      const double middle = ThreadSeconds();
      work(2 * n);
      once.push_back(middle - begin);
      twice.push_back(ThreadSeconds() - middle);
    }
    least = std::min(least, Median(twice) / Median(once));
  }
  return least;
}

// Runs `work` on a thread with the smallest stack in use anywhere.
void OnSmallStack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kSmallStack), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* argument) -> void* {
                  (*static_cast<const std::function<void()>*>(argument))();
                  return nullptr;
                },
                const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(LengthFaults, T16T17T19T20T22DoublingAMegabyteDoublesTheTime) {
  for (const auto& [name, tokenizer] : EveryModel()) {
    ASSERT_NE(tokenizer, nullptr);
    for (const char* piece : {"Z", "_", " ", "\xE4\xB8\x80"}) {
      const std::string text = Repeat(piece, kLongText);
      const double growth = Growth(kLongText / 2, [&](size_t n) {
        EXPECT_TRUE(
            tokenizer->Encode(absl::string_view(text).substr(0, n), {}).ok());
      });
      EXPECT_LT(growth, kLinear) << name << " " << piece;
    }
  }
}

TEST(LengthFaults, T16T17T19T20T22AMegabyteOnASmallStack) {
  for (const auto& [name, tokenizer] : EveryModel()) {
    ASSERT_NE(tokenizer, nullptr);
    for (const char* piece : kRepeated) {
      SCOPED_TRACE(absl::StrCat(name, " ", piece));
      const std::string text = Repeat(piece, kLongText);
      const Ids expected = tokenizer->Encode(text, {}).value();
      OnSmallStack([&, &kept = *tokenizer] {
        const auto ids = kept.Encode(text, {});
        ASSERT_TRUE(ids.ok()) << ids.status();
        kept.Decode(*ids, {});
        EXPECT_EQ(*ids, expected);
      });
    }
  }
}

TEST(LengthFaults, T22DecodingAMillionIdsIsLinear) {
  for (const auto& [name, tokenizer] : EveryModel()) {
    ASSERT_NE(tokenizer, nullptr);
    // A byte of its own where there are such tokens, else a whole word.
    for (const char* spelled : {"<0xE6>", "a", "\xE2\x96\x81", "##s"}) {
      const auto id = tokenizer->TokenId(spelled);
      if (!id.has_value()) continue;
      const Ids ids(kLongText, *id);
      const double growth = Growth(kLongText / 2, [&](size_t n) {
        tokenizer->Decode(absl::MakeConstSpan(ids).first(n), {});
      });
      EXPECT_LT(growth, kLinear) << name << " " << spelled;
    }
  }
}

// What a file can make worse: tokens that are long runs of one character, so
// that every place in the text begins or continues many of them.
json LongTokens(const std::string& type) {
  json file = {{"version", "1.0"},          {"added_tokens", json::array()},
               {"normalizer", nullptr},     {"pre_tokenizer", nullptr},
               {"post_processor", nullptr}, {"decoder", nullptr}};
  json& model = file["model"];
  model["type"] = type;
  model["unk_token"] = "?";
  if (type == "Unigram") {
    model["unk_id"] = 0;
    model["vocab"].push_back(json::array({"?", 0.0}));
    for (int length = 1; length <= 64; ++length) {
      model["vocab"].push_back(json::array({std::string(length, 'a'), -1.0}));
    }
    return file;
  }
  model["vocab"] = {{"?", 0}, {"a", 1}};
  int next = 2;
  if (type == "WordPiece") {
    model["continuing_subword_prefix"] = "##";
    model["max_input_chars_per_word"] = 10'000'000;
    for (int length = 1; length <= 64; ++length) {
      model["vocab"]["##" + std::string(length, 'a')] = next++;
    }
    return file;
  }
  model["merges"] = json::array();
  for (int length = 1; length <= 1 << 14; length *= 2) {
    const std::string half(length, 'a');
    model["vocab"][half + half] = next++;
    model["merges"].push_back(json::array({half, half}));
  }
  return file;
}

TEST(LengthFaults, T22LongTokensOfOneCharacterStayLinear) {
  for (const char* type : {"BPE", "Unigram", "WordPiece"}) {
    const auto tokenizer = Tokenizer::FromJson(LongTokens(type).dump(), type);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    // All but the last character, which is none of the vocabulary's.
    for (const char* end : {"", "b"}) {
      SCOPED_TRACE(absl::StrCat(type, " ", end));
      const double growth = Growth(kLongText / 2, [&](size_t n) {
        const auto ids =
            (*tokenizer)->Encode(absl::StrCat(std::string(n, 'a'), end), {});
        EXPECT_TRUE(ids.ok()) << ids.status();
      });
      EXPECT_LT(growth, kLinear);
    }
  }
}

}  // namespace
}  // namespace lanewise
