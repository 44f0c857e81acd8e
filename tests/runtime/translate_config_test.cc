// generation_config.json and config.json of encoder-decoders: what each setting
// becomes, and what is refused.
#include "runtime/translate_config.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/format/checkpoint.h"
#include "model/format/gguf_writer.h"
#include "model/format/metadata.h"
#include "nlohmann/json.hpp"
#include "tests/model/model_folder.h"

namespace lanewise {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;

SpecialTokens Special() {
  SpecialTokens special;
  special.end_ids = {1, 5};
  special.bos = 4;
  return special;
}

// A model folder with these files; null: none.
absl::StatusOr<TranslateConfig> Read(const json& generation,
                                     const json& config = json::object()) {
  ModelFolder folder("t5");
  folder.EditJson("config.json", [&](json& all) {
    all.erase("decoder_start_token_id");
    all.update(config);
  });
  if (generation.is_null()) {
    folder.Remove("generation_config.json");
  } else {
    folder.Write("generation_config.json", generation.dump());
  }
  const auto checkpoint = Checkpoint::Open(folder.path());
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return ReadTranslateConfig(**checkpoint, Special());
}

TranslateOptions Options(const json& generation,
                         const json& config = json::object()) {
  const auto read = Read(generation, config);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? read->defaults : TranslateOptions();
}

TEST(TranslateConfig, NothingSaidIsGreedy) {
  const TranslateOptions options = Options(json::object());
  EXPECT_EQ(options.max_tokens, 256u);
  EXPECT_EQ(options.beams.num_beams, 1);
  EXPECT_EQ(options.beams.num_return_sequences, 1);
  EXPECT_EQ(options.sampling.temperature, 0);
  EXPECT_EQ(options.sampling.min_new_tokens, 0);
  EXPECT_EQ(options.start_id, 4);  // the beginning of sequence
  EXPECT_EQ(options.end_ids, (Ids{1, 5}));
  EXPECT_FALSE(options.sampling.forced_first_id.has_value());
}

TEST(TranslateConfig, ReadsEverySetting) {
  const TranslateOptions options = Options({
      {"decoder_start_token_id", 2},
      {"num_beams", 5},
      {"num_return_sequences", 3},
      {"length_penalty", 0.6},
      {"early_stopping", "never"},
      {"max_new_tokens", 30},
      {"max_length", 7},
      {"min_length", 4},
      {"repetition_penalty", 1.25},
      {"no_repeat_ngram_size", 3},
      {"forced_bos_token_id", 8},
      {"forced_eos_token_id", {1, 5}},
      {"suppress_tokens", {9, 10}},
      {"begin_suppress_tokens", {11}},
      {"bad_words_ids", {{12}, {13, 14}, {1}, {5, 1}}},
  });
  EXPECT_EQ(options.start_id, 2);
  EXPECT_EQ(options.beams.num_beams, 5);
  EXPECT_EQ(options.beams.num_return_sequences, 3);
  EXPECT_EQ(options.beams.length_penalty, 0.6);
  EXPECT_EQ(options.beams.early_stopping, EarlyStopping::kNever);
  EXPECT_EQ(options.max_tokens, 30u);  // counts before max_length
  EXPECT_EQ(options.sampling.min_new_tokens, 3);
  EXPECT_EQ(options.sampling.repetition_penalty, 1.25);
  EXPECT_EQ(options.sampling.no_repeat_ngram, 3);
  EXPECT_EQ(options.sampling.forced_first_id, 8);
  EXPECT_EQ(options.sampling.forced_last_id, 1);
  EXPECT_EQ(options.sampling.suppressed_ids, (Ids{9, 10}));
  EXPECT_EQ(options.sampling.begin_suppressed_ids, (Ids{11}));
  // An end token alone is not forbidden.
  EXPECT_THAT(options.sampling.bad_words,
              ElementsAre(Ids{12}, Ids{13, 14}, Ids{5, 1}));
}

TEST(TranslateConfig, LengthsCountTheStartToken) {
  EXPECT_EQ(Options({{"max_length", 24}}).max_tokens, 23u);
  EXPECT_EQ(Options({{"max_length", 0}}).max_tokens, 0u);
  EXPECT_EQ(Options({{"min_length", 24}}).sampling.min_new_tokens, 23);
  EXPECT_EQ(Options({{"min_length", 0}}).sampling.min_new_tokens, 0);
  EXPECT_EQ(Options({{"min_length", 3}, {"min_new_tokens", 7}})
                .sampling.min_new_tokens,
            7);
}

TEST(TranslateConfig, SamplingHasTheReferencesDefaults) {
  const SamplingOptions sampled = Options({{"do_sample", true}}).sampling;
  EXPECT_EQ(sampled.temperature, 1.0);
  EXPECT_EQ(sampled.top_k, 50);
  EXPECT_EQ(sampled.top_p, 1.0);
  const SamplingOptions all = Options({{"do_sample", true},
                                       {"temperature", 0.5},
                                       {"top_k", 0},
                                       {"top_p", 0.75},
                                       {"min_p", 0.125},
                                       {"typical_p", 0.875},
                                       {"epsilon_cutoff", 0.25}})
                                  .sampling;
  EXPECT_EQ(all.temperature, 0.5);
  EXPECT_EQ(all.top_k, 0);
  EXPECT_EQ(all.top_p, 0.75);
  EXPECT_EQ(all.min_p, 0.125);
  EXPECT_EQ(all.typical_p, 0.875);
  EXPECT_EQ(all.epsilon_cutoff, 0.25);
  // Without do_sample they say nothing, and beams do not sample.
  EXPECT_EQ(Options({{"temperature", 0.5}, {"top_k", 3}}).sampling.top_k, 0);
  EXPECT_EQ(
      Options({{"do_sample", true}, {"num_beams", 4}}).sampling.temperature, 0);
}

TEST(TranslateConfig, OlderFoldersSayItInConfigJson) {
  const json config = {
      {"decoder_start_token_id", 3}, {"num_beams", 4}, {"max_length", 142}};
  const TranslateOptions older = Options(nullptr, config);
  EXPECT_EQ(older.start_id, 3);
  EXPECT_EQ(older.beams.num_beams, 4);
  EXPECT_EQ(older.max_tokens, 141u);
  // Beside the newer file only the start token counts.
  const TranslateOptions newer = Options(json::object(), config);
  EXPECT_EQ(newer.start_id, 3);
  EXPECT_EQ(newer.beams.num_beams, 1);
  EXPECT_EQ(Options({{"decoder_start_token_id", 6}}, config).start_id, 6);
}

TEST(TranslateConfig, TasksGoOverTheDefaults) {
  const auto read = Read({{"num_beams", 3}, {"max_length", 50}},
                         {{"task_specific_params",
                           {{"b", {{"prefix", "do b: "}, {"num_beams", 2}}},
                            {"a", {{"max_length", 9}}}}}});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->tasks.size(), 2u);
  EXPECT_EQ(read->tasks[0].name, "a");
  EXPECT_EQ(read->tasks[0].prefix, "");
  EXPECT_EQ(read->tasks[0].options.max_tokens, 8u);
  EXPECT_EQ(read->tasks[0].options.beams.num_beams, 3);
  const TranslateTask* b = read->FindTask("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->prefix, "do b: ");
  EXPECT_EQ(b->options.max_tokens, 49u);
  EXPECT_EQ(b->options.beams.num_beams, 2);
  EXPECT_EQ(read->FindTask("c"), nullptr);
}

TEST(TranslateConfig, GgufTellsTheStartToken) {
  const std::string path = testing::TempDir() + "/translate_config.gguf";
  for (const bool told : {true, false}) {
    Metadata metadata;
    metadata.Insert("general.architecture", std::string("t5"));
    if (told) {
      metadata.Insert("t5.decoder_start_token_id", int64_t{9},
                      MetadataType::kUint32);
    }
    auto writer = GgufWriter::Create(path, metadata, {{"w", DType::kF32, {1}}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE((*writer)->Append(std::vector<uint8_t>(4)).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    const auto checkpoint = Checkpoint::Open(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    const auto config = ReadTranslateConfig(**checkpoint, Special());
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->defaults.start_id, told ? 9 : 4);
    EXPECT_EQ(config->defaults.end_ids, (Ids{1, 5}));
    EXPECT_TRUE(config->tasks.empty());
  }
}

TEST(TranslateConfig, WhatIsIgnoredIsNoted) {
  const auto read = Read({{"num_beam_groups", 2},
                          {"diversity_penalty", 0.0},
                          {"forced_decoder_ids", {{1, 2}}},
                          {"transformers_version", "5.24.0"}});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->notices.size(), 2u);
  EXPECT_THAT(read->notices[0],
              HasSubstr("generation_config.json: num_beam_groups is not"));
  EXPECT_THAT(read->notices[1], HasSubstr("forced_decoder_ids"));
}

TEST(TranslateConfig, WrongTypesNameFileAndKey) {
  const auto expect = [](const json& generation, const std::string& part) {
    const auto read = Read(generation);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument)
        << generation;
    EXPECT_THAT(std::string(read.status().message()),
                HasSubstr("generation_config.json: " + part));
  };
  expect({{"num_beams", "four"}}, "num_beams");
  expect({{"num_beams", 0}}, "num_beams");
  expect({{"num_beams", 1025}}, "num_beams");
  expect({{"max_length", -1}}, "max_length");
  expect({{"max_length", 1e12}}, "max_length");
  expect({{"length_penalty", {1}}}, "length_penalty");
  expect({{"early_stopping", "soon"}}, "early_stopping: expected true, false");
  expect({{"do_sample", 1}}, "do_sample");
  expect({{"suppress_tokens", 3}}, "suppress_tokens");
  expect({{"suppress_tokens", {-1}}}, "suppress_tokens");
  expect({{"bad_words_ids", {3}}}, "bad_words_ids: expected lists of ids");
  expect({{"bad_words_ids", {json::array()}}}, "bad_words_ids");
  expect({{"bad_words_ids", {{"a"}}}}, "bad_words_ids");
  expect({{"forced_bos_token_id", 4294967296}}, "forced_bos_token_id");
  expect({{"decoder_start_token_id", "<s>"}}, "decoder_start_token_id");
  for (const json& tasks :
       {json(3), json({{"a", 1}}), json({{"a\n", {{"num_beams", 0}}}}),
        json({{"a", {{"prefix", 4}}}})}) {
    const auto read = Read(json::object(), {{"task_specific_params", tasks}});
    EXPECT_THAT(std::string(read.status().message()),
                HasSubstr("config.json: task_specific_params"));
    EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
  }
}

TEST(TranslateConfig, ListsAreBounded) {
  const auto expect = [](const json& generation, const json& config,
                         const std::string& part) {
    const auto read = Read(generation, config);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(part));
  };
  const json ids(131073, 3);
  expect({{"suppress_tokens", ids}}, json::object(),
         "suppress_tokens: expected at most 131072 entries, found 131073");
  expect({{"bad_words_ids", json(16385, json::array({3}))}}, json::object(),
         "bad_words_ids: expected at most 16384 entries, found 16385");
  expect({{"bad_words_ids", {json(131072, 3), {4}}}}, json::object(),
         "bad_words_ids: expected at most 0 entries, found 1");
  json tasks = json::object();
  for (int i = 0; i < 65; ++i) tasks[std::to_string(i)] = json::object();
  expect(json::object(), {{"task_specific_params", tasks}},
         "task_specific_params: expected at most 64 tasks, found 65");
}

}  // namespace
}  // namespace lanewise
