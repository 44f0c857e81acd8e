// Labels, entities, missing words and answers: what Engine::Classify takes and
// gives. Which of them a model gives is in its files.
//
//   lanewise::ClassifyRequest request;
//   request.inputs = {{"I like this."}, {"A man eats.", "Someone eats."}};
//   auto result = engine->Classify(request, {});
//   if (!result.ok()) return Fail(result.status());
//   // result->outputs[0].labels[0].label, .score
//
// Scores and spans are those of the reference library's pipelines. No bit of an
// output depends on the inputs beside it.
#ifndef LANEWISE_RUNTIME_CLASSIFICATION_H_
#define LANEWISE_RUNTIME_CLASSIFICATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lanewise {

enum class ClassifyTask : uint8_t {
  kSequenceLabels,  // a label for the text, or for the pair of texts
  kTokenLabels,     // entities in the text
  kMaskedTokens,    // what the mask tokens in the text stand for
  kAnswers,         // the question's answer in the text beside it
};

struct ClassifyInput {
  std::string text;                 // kAnswers: the question
  std::optional<std::string> pair;  // kAnswers: where the answer is looked for
};

// From logits of labels to scores.
enum class LabelScores : uint8_t {
  kModel,  // sigmoid for one label or problem_type multi_label_classification,
           // nothing for regression, else softmax
  kSoftmax,  // labels exclude each other
  kSigmoid,  // each label for itself
  kLogits,   // as they are
};

// How tokens become entities.
enum class Aggregation : uint8_t {
  kNone,    // each token with its own label
  kSimple,  // neighbours with one label (B-X begins anew, I-X goes on)
  kFirst,   // the same, each word with the label of its first token
};

struct ClassifyRequest {
  std::vector<ClassifyInput> inputs;

  LabelScores scores = LabelScores::kModel;
  Aggregation aggregation = Aggregation::kSimple;
  // Of masked tokens and answers, at most so many; of labels (0: all of them).
  size_t top_k = 5;
  size_t max_answer_tokens = 15;
  // What stands for a masked word in the texts; empty: the model's own mask
  // token, "[MASK]" or "<mask>".
  std::string mask;

  // What is longer than the model takes loses its end (of a pair the longer
  // text); off: it is an error. Answers are looked for in all of the text, in
  // overlapping windows.
  bool truncate = true;
  size_t batch_tokens = 512;  // computed together; changes no result
};

struct ClassifyCallbacks {
  // After every batch: inputs (of answers: windows) done, in all.
  std::function<void(size_t done, size_t total)> on_progress;
  // Asked before every batch; true ends it with CANCELLED.
  std::function<bool()> should_cancel;
};

struct LabelScore {
  std::string label;
  size_t index = 0;  // among the model's labels
  double score = 0;
};

// Bytes [begin, end) of the input's text.
struct Entity {
  std::string label;  // without B- or I- but for Aggregation::kNone; never "O"
  double score = 0;   // mean over its tokens or words
  size_t begin = 0;
  size_t end = 0;
};

struct TokenChoice {
  int32_t id = 0;
  std::string token;  // as text
  double score = 0;   // probability
};

struct MaskChoices {
  size_t begin = 0;  // of the mask, bytes of the text
  size_t end = 0;
  std::vector<TokenChoice> choices;  // best first
};

// Bytes [begin, end) of the input's pair, whole tokens.
struct AnswerSpan {
  double score = 0;  // probability of its first times that of its last token
  size_t begin = 0;
  size_t end = 0;
};

struct Classification {
  size_t tokens = 0;  // with special tokens; of answers, of all windows
  bool truncated = false;
  // One of these, by task; best first, entities in the order of the text.
  std::vector<LabelScore> labels;
  std::vector<Entity> entities;
  std::vector<MaskChoices> masks;
  std::vector<AnswerSpan> answers;
};

struct ClassifyResult {
  ClassifyTask task = ClassifyTask::kSequenceLabels;
  std::vector<Classification> outputs;  // one an input
  size_t max_tokens = 0;                // that an input may have
  double seconds = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_CLASSIFICATION_H_
