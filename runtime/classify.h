// Labels, entities, missing words and answers: what Engine::Classify does.
#ifndef LANEWISE_RUNTIME_CLASSIFY_H_
#define LANEWISE_RUNTIME_CLASSIFY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lanewise/classification.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/batch_runner.h"
#include "runtime/embed_config.h"
#include "runtime/session.h"

namespace lanewise {

class Classifier {
 public:
  // Reads problem_type, the mask token and how long a text may be. `shared` and
  // `runner` must outlive the classifier.
  static absl::StatusOr<std::unique_ptr<Classifier>> Create(
      const Checkpoint& checkpoint, const SessionShared& shared,
      BatchRunner* runner);

  // As classification.h says. Thread-safe. FAILED_PRECONDITION for a model
  // without such a head, INVALID_ARGUMENT for inputs that the task cannot take,
  // OUT_OF_RANGE for one that is too long, with both numbers; INTERNAL for
  // logits that are not finite.
  absl::StatusOr<ClassifyResult> Classify(
      const ClassifyRequest& request, const ClassifyCallbacks& callbacks) const;

 private:
  using Ranges = std::vector<std::pair<size_t, size_t>>;

  // What the model runs: an input, or a window of one.
  struct Item {
    size_t input = 0;
    Encoding encoding;
    // Bytes of the text, of each id: of the only text, or of a pair the second
    // one; empty where nobody needs them.
    Ranges ranges;
  };
  struct Job;  // a request on its way

  Classifier(const SessionShared& shared, BatchRunner* runner)
      : shared_(shared), runner_(*runner) {}

  absl::Status ReadConfig(const Checkpoint& checkpoint);
  const Tokenizer& tokenizer() const { return shared_.prompts->tokenizer(); }
  const ModelSpec& spec() const { return runner_.model().spec(); }
  absl::StatusOr<ClassifyTask> Task() const;
  absl::Status CheckRequest(const ClassifyRequest& request,
                            ClassifyTask task) const;

  // Encoding, one function a task.
  absl::Status AddItems(Job* job, size_t index) const;
  absl::Status AddSequence(Job* job, size_t index) const;
  absl::Status AddTokens(Job* job, size_t index) const;
  absl::Status AddMasked(Job* job, size_t index) const;
  absl::Status AddWindows(Job* job, size_t index) const;
  // Cuts the ids to the limit, or says that they are too long.
  absl::Status Fit(Job* job, size_t index, std::vector<int32_t>* first,
                   std::vector<int32_t>* second) const;

  // Results, one function a task.
  absl::Status Read(Job* job, const Item& item,
                    absl::Span<const float> rows) const;
  void ReadLabels(Job* job, const Item& item,
                  absl::Span<const float> logits) const;
  void ReadEntities(Job* job, const Item& item,
                    absl::Span<const float> rows) const;
  void ReadMasks(Job* job, const Item& item,
                 absl::Span<const float> rows) const;
  void ReadAnswers(Job* job, const Item& item,
                   absl::Span<const float> rows) const;

  const SessionShared& shared_;
  BatchRunner& runner_;
  std::string path_;
  TextLimit limit_;
  std::vector<std::string> labels_;
  LabelScores scores_ = LabelScores::kSoftmax;  // never kModel
  std::optional<int32_t> mask_id_;
  std::string mask_text_;
  bool marks_inner_tokens_ = false;  // the vocabulary spells them "##…"
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_CLASSIFY_H_
