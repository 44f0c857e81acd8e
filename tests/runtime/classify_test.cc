// Labels, entities, masked words and answers, against what the executor's
// logits for the same ids say.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lanewise/engine.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/context.h"
#include "tests/model/model_folder.h"
#include "tests/runtime/load_engine.h"

namespace lanewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Rows = std::vector<std::vector<float>>;

constexpr char kMasked[] = "tests/data/models/bert_mlm";
// Probabilities are of float32 sums.
constexpr double kNear = 1e-6;
constexpr char kText[] = "The quick brown fox";
constexpr char kPair[] = "It's 42, isn't it?";

// A small classifier with the tokenizer of another model, less the tokens that
// it has no rows for.
class Classifying : public ModelFolder {
 public:
  Classifying() : ModelFolder("bert_seqcls") {
    const ModelFolder other("bert_mlm");
    Write("tokenizer.json", other.Read("tokenizer.json"));
    EditJson("tokenizer.json", [](auto& json) {
      nlohmann::json kept = nlohmann::json::object();
      for (const auto& token : json["model"]["vocab"].items()) {
        if (token.value() < 320) kept[token.key()] = token.value();
      }
      json["model"]["vocab"] = kept;
    });
  }

  // The label matrix as one of another head.
  void Become(const std::string& architecture) {
    EditJson("config.json", [&](auto& json) {
      json["architectures"] = {architecture};
      if (architecture == "BertForTokenClassification") {
        json["id2label"] = {{"0", "O"}, {"1", "B-PER"}, {"2", "I-PER"}};
      }
    });
    if (architecture != "BertForQuestionAnswering") return;
    EditTensors([](auto& header) {
      nlohmann::ordered_json out;
      for (auto& entry : header.items()) {
        const std::string& name = entry.key();
        nlohmann::ordered_json tensor = entry.value();
        if (!absl::StartsWith(name, "classifier.")) {
          out[name] = tensor;
          continue;
        }
        // Two rows of three.
        const std::string part = name.substr(11);
        const uint64_t begin = tensor["data_offsets"][0];
        const uint64_t end = tensor["data_offsets"][1];
        const uint64_t middle = begin + (end - begin) / 3 * 2;
        tensor["shape"][0] = 2;
        tensor["data_offsets"] = {begin, middle};
        out["qa_outputs." + part] = tensor;
        tensor["shape"][0] = 1;
        tensor["data_offsets"] = {middle, end};
        out["left_over." + part] = tensor;
      }
      header = out;
    });
  }
};

struct Reference {
  std::vector<int32_t> ids;
  Rows logits;
};

// The head's rows for one text, or two.
Reference HeadRows(const std::string& path, const std::string& text,
                   const std::string* pair, const EncodeOptions& options) {
  const auto context = *Context::Create({});
  const auto checkpoint = *Checkpoint::Open(path);
  const auto model = *Model::Load(*checkpoint, *context, {});
  const auto executor = *Executor::Create(*model, *context, {});
  const auto tokenizer = *Tokenizer::Load(*checkpoint);
  Reference reference;
  std::vector<int32_t> types;
  reference.ids = pair == nullptr
                      ? *tokenizer->Encode(text, options)
                      : *tokenizer->EncodePair(text, *pair, options, &types);
  Executor::Entry entry{reference.ids, nullptr, Executor::Logits::kAll};
  entry.type_ids = types;
  const size_t width = model->spec().head_width();
  const size_t rows =
      model->spec().head.pooling == Pooling::kNone ? reference.ids.size() : 1;
  std::vector<float> logits(rows * width);
  EXPECT_TRUE(executor->Forward({&entry, 1}, logits.data()).ok());
  for (size_t i = 0; i < rows; ++i) {
    reference.logits.emplace_back(logits.begin() + i * width,
                                  logits.begin() + (i + 1) * width);
  }
  return reference;
}

std::vector<double> Softmax(const std::vector<float>& x) {
  double sum = 0;
  const float max = *std::max_element(x.begin(), x.end());
  std::vector<double> out;
  for (const float v : x) out.push_back(std::exp(double{v} - max));
  for (const double v : out) sum += v;
  for (double& v : out) v /= sum;
  return out;
}

Classification One(Engine* engine, ClassifyRequest request,
                   ClassifyInput input) {
  request.inputs = {std::move(input)};
  const auto result = engine->Classify(request, {});
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->outputs.at(0) : Classification();
}

std::string ErrorOf(Engine* engine, ClassifyRequest request) {
  const auto result = engine->Classify(request, {});
  EXPECT_FALSE(result.ok());
  return std::string(result.status().message());
}

TEST(Classify, M26LabelsOfTextsAndPairs) {
  Classifying folder;
  const auto engine = LoadEngine(folder.path());
  const std::string second = kPair;
  for (const std::string* pair :
       {static_cast<const std::string*>(nullptr), &second}) {
    const Reference reference = HeadRows(folder.path(), kText, pair, {});
    const std::vector<double> expected = Softmax(reference.logits[0]);
    ClassifyInput input = {kText, std::nullopt};
    if (pair != nullptr) input.pair = *pair;
    const Classification found = One(engine.get(), {}, input);
    EXPECT_EQ(found.tokens, reference.ids.size());
    ASSERT_EQ(found.labels.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const LabelScore& label = found.labels[i];
      EXPECT_EQ(label.label, absl::StrCat("LABEL_", label.index));
      EXPECT_NEAR(label.score, expected[label.index], kNear);
      EXPECT_LE(label.score, found.labels[i > 0 ? i - 1 : 0].score);
    }
  }
}

TEST(Classify, ScoresAreAsTheFilesOrTheCallerSay) {
  Classifying folder;
  const std::vector<float> logits =
      HeadRows(folder.path(), kText, nullptr, {}).logits[0];
  const auto scores = [&](LabelScores kind) {
    ClassifyRequest request;
    request.scores = kind;
    const auto found =
        One(LoadEngine(folder.path()).get(), request, {kText, std::nullopt});
    std::vector<double> out(3);
    for (const LabelScore& label : found.labels) {
      out[label.index] = label.score;
    }
    return out;
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(scores(LabelScores::kSigmoid)[i], sigmoid(logits[i]), 1e-12);
    EXPECT_EQ(scores(LabelScores::kLogits)[i], logits[i]);
  }
  const auto plain = scores(LabelScores::kModel);
  EXPECT_EQ(plain, scores(LabelScores::kSoftmax));
  folder.EditJson("config.json", [](auto& json) {
    json["problem_type"] = "multi_label_classification";
  });
  EXPECT_EQ(scores(LabelScores::kModel), scores(LabelScores::kSigmoid));
  EXPECT_EQ(scores(LabelScores::kSoftmax), plain);
  folder.EditJson("config.json",
                  [](auto& json) { json["problem_type"] = "regression"; });
  EXPECT_EQ(scores(LabelScores::kModel), scores(LabelScores::kLogits));
}

TEST(Classify, A11NoBitDependsOnTheInputsBeside) {
  Classifying folder;
  const auto engine = LoadEngine(folder.path());
  ClassifyRequest request;
  request.inputs = {{"fox", std::nullopt},
                    {kText, kPair},
                    {"", std::nullopt},
                    {kPair, kText},
                    {"a b c d e f g", std::nullopt}};
  for (const size_t tokens : {1, 20, 512}) {
    request.batch_tokens = tokens;
    const auto together = engine->Classify(request, {});
    ASSERT_TRUE(together.ok()) << together.status();
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const auto alone = One(engine.get(), {}, request.inputs[i]);
      for (size_t k = 0; k < 3; ++k) {
        EXPECT_EQ(together->outputs[i].labels[k].index, alone.labels[k].index);
        EXPECT_EQ(together->outputs[i].labels[k].score, alone.labels[k].score);
      }
    }
  }
}

// The tokenizer's own truncation, which the pipeline of ids has apart.
TEST(Classify, A17LongPairsAreCutAsTheReferenceCuts) {
  Classifying folder;
  folder.EditJson("tokenizer.json", [](auto& json) {
    json["truncation"] = {{"max_length", 20},
                          {"strategy", "LongestFirst"},
                          {"stride", 0},
                          {"direction", "Right"}};
  });
  const auto engine = LoadEngine(folder.path());
  const std::string shorter = "fox fox", medium = "a b c d e f g h i j k",
                    longer = absl::StrCat(medium, " ", medium, " ", medium);
  for (const auto& [first, second] :
       std::vector<std::pair<std::string, std::string>>{{shorter, longer},
                                                        {longer, shorter},
                                                        {medium, longer},
                                                        {longer, medium},
                                                        {longer, longer},
                                                        {medium, medium}}) {
    const Reference reference = HeadRows(folder.path(), first, &second, {});
    ASSERT_EQ(reference.ids.size(), 20u);
    ClassifyRequest request;
    request.scores = LabelScores::kLogits;
    const auto found = One(engine.get(), request, {first, second});
    EXPECT_TRUE(found.truncated);
    EXPECT_EQ(found.tokens, 20u);
    for (const LabelScore& label : found.labels) {
      EXPECT_EQ(label.score, reference.logits[0][label.index])
          << first << " / " << second;
    }
    request.truncate = false;
    request.inputs = {{"a", "b"}, {first, second}};
    EXPECT_THAT(ErrorOf(engine.get(), request),
                AllOf(HasSubstr("input 1"), HasSubstr("at most 20")));
  }
  EXPECT_FALSE(One(engine.get(), {}, {"a", "b"}).truncated);
}

TEST(Classify, MaskedWordsAreTheMostProbable) {
  const auto engine = LoadEngine(kMasked);
  const std::string text = "The [MASK] brown [MASK]";
  EncodeOptions options;
  options.parse_special_tokens = true;
  const Reference reference = HeadRows(kMasked, text, nullptr, options);
  ClassifyRequest request;
  request.top_k = 7;
  const auto found = One(engine.get(), request, {text, std::nullopt});
  ASSERT_EQ(found.masks.size(), 2u);
  EXPECT_EQ(found.tokens, reference.ids.size());
  EXPECT_EQ(found.masks[0].begin, 4u);
  EXPECT_EQ(found.masks[1].end, text.size());
  size_t mask = 0;
  for (size_t i = 0; i < reference.ids.size(); ++i) {
    if (reference.ids[i] != 4) continue;
    const std::vector<double> expected = Softmax(reference.logits[i]);
    const auto& choices = found.masks[mask++].choices;
    ASSERT_EQ(choices.size(), 7u);
    double last = 1;
    for (const TokenChoice& choice : choices) {
      EXPECT_NEAR(choice.score, expected[choice.id], kNear);
      EXPECT_LE(choice.score, last);
      EXPECT_EQ(choice.token, engine->Decode({choice.id}));
      last = choice.score;
    }
    EXPECT_EQ(std::count_if(expected.begin(), expected.end(),
                            [&](double p) { return p > last + kNear; }),
              6);
  }
  EXPECT_EQ(mask, 2u);
}

TEST(Classify, T28OnlyTheMaskIsAControlToken) {
  const auto engine = LoadEngine(kMasked);
  const auto plain = One(engine.get(), {}, {"[MASK] fox", std::nullopt});
  const auto spelled =
      One(engine.get(), {}, {"[MASK] fox [SEP]", std::nullopt});
  // "[", "sep", "]" at least, not one token.
  EXPECT_GE(spelled.tokens, plain.tokens + 3);
  // A mark of the caller's own takes its place.
  ClassifyRequest request;
  request.mask = "___";
  const auto marked = One(engine.get(), request, {"___ fox", std::nullopt});
  ASSERT_EQ(marked.masks.size(), 1u);
  EXPECT_EQ(marked.masks[0].end, 3u);
  EXPECT_EQ(marked.masks[0].choices[0].score, plain.masks[0].choices[0].score);
  request.inputs = {{"[MASK] fox", std::nullopt}};
  EXPECT_THAT(ErrorOf(engine.get(), request), HasSubstr("expected ___"));
}

TEST(Classify, TokensKeepTheirPlaceInTheText) {
  Classifying folder;
  folder.Become("BertForTokenClassification");
  const auto engine = LoadEngine(folder.path());
  const std::string text = "The  QUICK br\xC3\xB6wn fox, it's 42";
  const Reference reference = HeadRows(folder.path(), text, nullptr, {});
  ClassifyRequest request;
  request.aggregation = Aggregation::kNone;
  const auto found = One(engine.get(), request, {text, std::nullopt});
  const std::vector<std::string> labels = {"O", "B-PER", "I-PER"};
  size_t next = 0;
  for (size_t i = 1; i + 1 < reference.ids.size(); ++i) {
    const auto scores = Softmax(reference.logits[i]);
    const size_t best =
        std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (best == 0) continue;
    ASSERT_LT(next, found.entities.size());
    const Entity& entity = found.entities[next++];
    EXPECT_EQ(entity.label, labels[best]);
    EXPECT_NEAR(entity.score, scores[best], kNear);
    ASSERT_LT(entity.begin, entity.end);
    ASSERT_LE(entity.end, text.size());
    EXPECT_NE(text[entity.begin], ' ');
  }
  EXPECT_EQ(next, found.entities.size());
  EXPECT_GT(next, 0u);
  for (size_t i = 1; i < found.entities.size(); ++i) {
    EXPECT_LE(found.entities[i - 1].end, found.entities[i].begin);
  }
  request.aggregation = Aggregation::kSimple;
  const auto grouped = One(engine.get(), request, {text, std::nullopt});
  EXPECT_LE(grouped.entities.size(), found.entities.size());
  for (const Entity& entity : grouped.entities) {
    EXPECT_EQ(entity.label, "PER");
  }
}

TEST(Classify, AnswersAreSpansOfTheText) {
  Classifying folder;
  folder.Become("BertForQuestionAnswering");
  const auto engine = LoadEngine(folder.path());
  const std::string question = "fox?", text = "a b c d e f g h i j";
  const Reference reference = HeadRows(folder.path(), question, &text, {});
  ClassifyRequest request;
  request.top_k = 3;
  const auto found = One(engine.get(), request, {question, text});
  ASSERT_EQ(found.answers.size(), 3u);
  // The ten letters stand before the last [SEP].
  const size_t first = reference.ids.size() - 11;
  std::vector<float> start = {reference.logits[0][0]},
                     end = {reference.logits[0][1]};
  for (size_t i = first; i < first + 10; ++i) {
    start.push_back(reference.logits[i][0]);
    end.push_back(reference.logits[i][1]);
  }
  const auto p = Softmax(start), q = Softmax(end);
  double best = 0;
  size_t begin = 0, last = 0;
  for (size_t i = 1; i <= 10; ++i) {
    for (size_t j = i; j <= 10; ++j) {
      if (p[i] * q[j] <= best) continue;
      best = p[i] * q[j];
      begin = 2 * (i - 1);
      last = 2 * (j - 1) + 1;
    }
  }
  EXPECT_EQ(found.answers[0].begin, begin);
  EXPECT_EQ(found.answers[0].end, last);
  EXPECT_NEAR(found.answers[0].score, best, kNear);
  // A long text is read in windows: all of it, within the model's positions.
  std::string longer = text;
  for (int i = 0; i < 20; ++i) longer += " " + text;
  request.top_k = 100000;
  const auto windows = One(engine.get(), request, {question, longer});
  EXPECT_GT(windows.tokens, 21u * 10u);
  size_t reached = 0;
  for (const AnswerSpan& answer : windows.answers) {
    ASSERT_LT(answer.begin, answer.end);
    reached = std::max(reached, answer.end);
  }
  EXPECT_EQ(reached, longer.size());
  EXPECT_FALSE(windows.truncated);
  request.inputs = {{longer, text}};
  EXPECT_THAT(ErrorOf(engine.get(), request), HasSubstr("a question of fewer"));
}

TEST(Classify, InputsThatATaskCannotTakeSayWhy) {
  const auto masked = LoadEngine(kMasked);
  ClassifyRequest request;
  request.inputs = {{"fox", std::nullopt}};
  EXPECT_THAT(ErrorOf(masked.get(), request), HasSubstr("expected [MASK]"));
  std::string text = "fox";
  for (int i = 0; i < 100; ++i) text += " fox";
  request.inputs = {{text + " [MASK]", std::nullopt}};
  EXPECT_THAT(ErrorOf(masked.get(), request), HasSubstr("behind them"));
  request.inputs = {{"[MASK]", "fox"}};
  EXPECT_THAT(ErrorOf(masked.get(), request), HasSubstr("found a pair"));
  request.inputs = {{"[MASK]", std::nullopt}};
  request.top_k = 0;
  EXPECT_THAT(ErrorOf(masked.get(), request), HasSubstr("top_k"));
  request.top_k = 1;
  request.batch_tokens = 0;
  EXPECT_THAT(ErrorOf(masked.get(), request), HasSubstr("batch_tokens"));
  Classifying folder;
  folder.Become("BertForQuestionAnswering");
  request.batch_tokens = 512;
  EXPECT_THAT(ErrorOf(LoadEngine(folder.path()).get(), request),
              HasSubstr("found no text"));
}

TEST(Classify, M5ModelsWithoutSuchAHeadSayWhatFits) {
  const auto decoder = LoadEngine("tests/data/models/llama");
  const auto status = decoder->Classify({}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Generate fits it"));
  Classifying folder;
  folder.Become("BertModel");
  const auto pooled = LoadEngine(folder.path());
  EXPECT_THAT(ErrorOf(pooled.get(), {}), HasSubstr("Embed fits it"));
}

TEST(Classify, LogitsThatAreNotFiniteAreErrors) {
  Classifying folder;
  folder.EditValues("classifier.bias", [](size_t) { return INFINITY; });
  ClassifyRequest request;
  request.inputs = {{"fox", std::nullopt}};
  EXPECT_THAT(ErrorOf(LoadEngine(folder.path()).get(), request),
              HasSubstr("not finite"));
}

}  // namespace
}  // namespace lanewise
