// An encoder-decoder as its tests run it: both stacks over packed batches, with
// f32 activations and caches, and what they compute on the way.
//
//   LANEWISE_ASSIGN_OR_RETURN(auto model, Seq2SeqModel::Load(checkpoint, …));
//   LANEWISE_ASSIGN_OR_RETURN(Encoded encoded, model->Encode(inputs));
//   LANEWISE_ASSIGN_OR_RETURN(Decoded decoded, model->Decode(encoded, ids));
#ifndef LANEWISE_TESTS_CONFORMANCE_SEQ2SEQ_MODEL_H_
#define LANEWISE_TESTS_CONFORMANCE_SEQ2SEQ_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/audio_stem.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "nlohmann/json.hpp"
#include "simd/context.h"
#include "tests/conformance/case_folder.h"

namespace lanewise {

// What an encoder reads: one sequence a row, of tokens or of audio frames
// [bands, frames], which are all as long.
class Seq2SeqInputs {
 public:
  static absl::StatusOr<Seq2SeqInputs> Read(const CaseFolder& golden,
                                            const nlohmann::json& fields);
  static Seq2SeqInputs FromIds(std::vector<std::vector<int32_t>> ids);
  static Seq2SeqInputs FromFeatures(std::vector<std::vector<float>> features);

  size_t size() const {
    return features_.empty() ? rows_.ids.size() : features_.size();
  }
  // Of audio, without ids.
  const TokenRows& rows() const { return rows_; }
  const std::vector<std::vector<float>>& features() const { return features_; }
  Seq2SeqInputs Row(size_t row) const;

 private:
  TokenRows rows_;
  std::vector<std::vector<float>> features_;
};

// What one pass of a stack gives, rows packed without padding.
struct StackOutput {
  std::vector<float> hidden;               // [rows, width]
  std::vector<float> logits;               // [rows, vocab]; of the decoder
  std::vector<std::vector<float>> layers;  // [layers + 1][rows, width]
};

struct Encoded {
  StackOutput stack;
  std::vector<size_t> lengths;    // rows of each sequence
  std::vector<KvCache> memories;  // of each sequence
};

struct Decoded {
  StackOutput stack;
};

class Seq2SeqModel {
 public:
  // INVALID_ARGUMENT for a model without an encoder.
  static absl::StatusOr<std::unique_ptr<Seq2SeqModel>> Load(
      const Checkpoint& checkpoint, const Context& context);

  absl::StatusOr<Encoded> Encode(const Seq2SeqInputs& inputs);
  // Logits of all rows of `ids`, one sequence for each of `encoded`.
  absl::StatusOr<Decoded> Decode(const Encoded& encoded,
                                 const std::vector<std::vector<int32_t>>& ids);
  // Logits after the last of `ids`, which continue `caches`. [sequences, vocab]
  absl::StatusOr<std::vector<float>> Step(
      const std::vector<std::vector<int32_t>>& ids,
      const std::vector<KvCache*>& caches,
      const std::vector<const KvCache*>& memories);

  absl::StatusOr<KvCache> NewCache(size_t positions) const;
  size_t vocab_size() const { return model_->spec().head_width(); }
  const Model& model() const { return *model_; }
  Executor& decoder() { return *decoder_; }
  const std::shared_ptr<KvPagePool>& pool() const { return pool_; }

 private:
  // A stack's executor, which keeps what its layers give.
  struct Stack {
    size_t rows = 0;
    std::vector<std::vector<float>> layers;
  };

  Seq2SeqModel() = default;
  static absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const Model& model, const Context& context, Stack* stack);

  std::unique_ptr<const Model> model_;
  std::unique_ptr<AudioStem> audio_;  // or null
  Stack encoder_stack_, decoder_stack_;
  std::unique_ptr<Executor> encoder_, decoder_;
  std::shared_ptr<KvPagePool> pool_, memory_pool_;
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_SEQ2SEQ_MODEL_H_
