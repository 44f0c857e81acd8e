// A decoder as beam search sees it. Each beam has a cache; beams share the
// pages of what they have in common, the prompt above all. Of an
// encoder-decoder all beams of an input read its one memory.
//
//   LANEWISE_ASSIGN_OR_RETURN(
//       auto stepper, DecoderBeamStepper::Create(executor, pool, prompts));
//   LANEWISE_ASSIGN_OR_RETURN(auto results,
//                             BeamSearch(context, request, *stepper));
//
//   DecoderInputs inputs;  // of an encoder-decoder
//   inputs.prompts = prompts;  // {start token}, one an input
//   inputs.memories = memories;
//   LANEWISE_ASSIGN_OR_RETURN(
//       auto stepper, DecoderBeamStepper::Create(executor, pool, inputs));
#ifndef LANEWISE_RUNTIME_BEAM_SEARCH_DECODER_H_
#define LANEWISE_RUNTIME_BEAM_SEARCH_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/executor.h"
#include "model/kv_cache.h"
#include "runtime/beam_search.h"

namespace lanewise {

// What a search continues.
struct DecoderInputs {
  absl::Span<const absl::Span<const int32_t>> prompts;  // none empty
  // Of each prompt, filled by Executor::FillMemory; empty without an encoder.
  // They must outlive the stepper.
  absl::Span<const KvCache* const> memories = {};
};

class DecoderBeamStepper : public BeamStepper {
 public:
  // Computes the prompts all but their last tokens, together, in chunks of what
  // `executor` takes. Keeps no pointer to them; `executor` must outlive the
  // stepper. Errors of the executor and of the pool.
  static absl::StatusOr<std::unique_ptr<DecoderBeamStepper>> Create(
      Executor& executor, std::shared_ptr<KvPagePool> pool,
      const DecoderInputs& inputs);
  static absl::StatusOr<std::unique_ptr<DecoderBeamStepper>> Create(
      Executor& executor, std::shared_ptr<KvPagePool> pool,
      absl::Span<const absl::Span<const int32_t>> prompts) {
    return Create(executor, std::move(pool), DecoderInputs{prompts});
  }

  // From caches that hold each prompt all but its last token, and memories as
  // in DecoderInputs, as many or none.
  DecoderBeamStepper(Executor& executor, std::vector<KvCache> caches,
                     absl::Span<const KvCache* const> memories = {});

  // One forward pass; several where the rows are more than the executor takes.
  // RESOURCE_EXHAUSTED when the pool has no page for a beam, and errors of the
  // executor. After an error the stepper is of no more use.
  absl::StatusOr<absl::Span<const float>> Advance(
      absl::Span<const BeamStep> rows) override;

  const std::vector<KvCache>& caches() const { return caches_; }

 private:
  absl::Status Prefill(absl::Span<const absl::Span<const int32_t>> prompts);
  absl::Status FollowParents(absl::Span<const BeamStep> rows);

  // What a row has beside its cache.
  struct Row {
    size_t prompt_length = 0;
    const KvCache* memory = nullptr;
  };

  Executor& executor_;
  std::vector<KvCache> caches_;  // of the rows
  std::vector<Row> rows_;
  std::vector<int32_t> tokens_;
  std::vector<Executor::Entry> batch_;
  std::vector<float> logits_;  // [rows, vocab_size]
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_BEAM_SEARCH_DECODER_H_
