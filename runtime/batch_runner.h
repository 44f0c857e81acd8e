// Runs whole texts through a model's stack, several at a time, without a cache
// that outlives them: what embedding and classification have in common.
//
//   BatchRunner runner(shared);
//   std::vector<BatchRunner::Text> texts = …;
//   LANEWISE_RETURN_IF_ERROR(runner.Run(
//       texts, options, [&](size_t index, absl::Span<const float> rows) {
//         …  // [ids, width] of texts[index]
//         return absl::OkStatus();
//       }));
//
// Texts are sorted by length and packed without padding into batches of a
// bounded number of tokens. No bit of a text's rows depends on its batch.
#ifndef LANEWISE_RUNTIME_BATCH_RUNNER_H_
#define LANEWISE_RUNTIME_BATCH_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "model/executor.h"
#include "runtime/session.h"

namespace lanewise {

class BatchRunner {
 public:
  struct Text {
    std::vector<int32_t> ids;       // at least one
    std::vector<int32_t> type_ids;  // of ids; empty: all 0
    // In place of ids: [rows, token_width()].
    std::vector<float> vectors = {};
  };

  enum class Rows : uint8_t {
    kHidden,  // after the final norm, [ids, width]
    kHead,    // what the head gives, [ids or (HeadSpec::pooling) 1, head_width]
  };

  struct Options {
    Rows rows = Rows::kHidden;
    size_t batch_tokens = 512;
    std::function<void(size_t done, size_t total)> on_progress;  // texts
    std::function<bool()> should_cancel;
  };

  // `shared` must outlive the runner. An encoder-decoder runs its encoder.
  explicit BatchRunner(const SessionShared& shared);

  // Calls visit(index of the text, its rows) for each text, in any order.
  // CANCELLED as should_cancel says; the first error of visit ends it.
  // Thread-safe.
  absl::Status Run(
      absl::Span<const Text> texts, const Options& options,
      absl::FunctionRef<absl::Status(size_t, absl::Span<const float>)> visit);

  // The stack that runs.
  const Model& model() const { return model_; }

 private:
  using Visit =
      absl::FunctionRef<absl::Status(size_t, absl::Span<const float>)>;

  size_t RowsOf(const Text& text) const;
  absl::Status RunBatch(absl::Span<const Text> texts,
                        absl::Span<const size_t> batch, Rows rows,
                        Executor* executor, Visit visit);
  absl::Status ForwardCausal(absl::Span<const Text> texts,
                             absl::Span<const size_t> batch, Executor* executor,
                             Executor::Outputs outputs);
  absl::StatusOr<std::unique_ptr<Executor>> TakeExecutor(size_t rows)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void PutBack(std::unique_ptr<Executor> executor, size_t rows)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const SessionShared& shared_;
  const Model& model_;
  absl::Mutex mutex_;
  // Kept, since their buffers cost more to make than a short text to run.
  std::vector<std::unique_ptr<Executor>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_BATCH_RUNNER_H_
