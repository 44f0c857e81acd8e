// Attention weights of a model's layers, as the kernel weighs values.
//
//   AttentionMapRecorder recorder(context, {layers, heads});
//   Executor::Options options;
//   options.attention_observer = recorder.observer();
//   …                                // one Forward of one sequence
//   LANEWISE_RETURN_IF_ERROR(recorder.status());
//   for (const AttentionMap& map : recorder.maps()) …
//
// The online softmax keeps no weights. They are what attention gives for values
// that are unit vectors: the kernel itself runs once more over the same queries
// and keys with such values, so its own maxima and sums decide every weight.
#ifndef LANEWISE_MODEL_ATTENTION_MAP_H_
#define LANEWISE_MODEL_ATTENTION_MAP_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/executor.h"
#include "simd/attention.h"
#include "simd/context.h"

namespace lanewise {

// A second pass reads keys × keys unit vectors.
inline constexpr size_t kMaxMappedKeys = 4096;

// [heads, rows, keys]: what each row of a sequence takes of each key. Rows sum
// to 1, less where there is a sink; masked keys have exactly 0.
// RESOURCE_EXHAUSTED without memory for the pass, INVALID_ARGUMENT for more
// than kMaxMappedKeys keys.
absl::StatusOr<std::vector<float>> AttentionWeights(
    const Context& context, const AttentionParams& params,
    const AttentionSequence& sequence);

struct AttentionMap {
  size_t layer = 0;
  bool cross = false;         // to the encoder's rows
  std::vector<size_t> heads;  // in the order of `weights`
  size_t rows = 0;
  size_t keys = 0;
  std::vector<float> weights;  // [heads, rows, keys]
};

class AttentionMapRecorder {
 public:
  // Which layers and heads; empty: all.
  struct Choice {
    std::vector<size_t> layers;
    std::vector<size_t> heads;
  };

  // `context` must outlive the recorder, the recorder its observer.
  AttentionMapRecorder(const Context& context, Choice choice)
      : context_(context), choice_(std::move(choice)) {}

  // Records the first sequence of every batch.
  std::function<void(const Executor::AttentionCall& call)> observer();

  // The first error; then no more maps come.
  const absl::Status& status() const { return status_; }
  const std::vector<AttentionMap>& maps() const { return maps_; }

 private:
  void Record(const Executor::AttentionCall& call);

  const Context& context_;
  const Choice choice_;
  absl::Status status_;
  std::vector<AttentionMap> maps_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_ATTENTION_MAP_H_
