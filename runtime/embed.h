// Vectors of texts: what Engine::Embed does.
#ifndef LANEWISE_RUNTIME_EMBED_H_
#define LANEWISE_RUNTIME_EMBED_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lanewise/embedding.h"
#include "model/format/checkpoint.h"
#include "runtime/batch_runner.h"
#include "runtime/embed_config.h"
#include "runtime/session.h"
#include "simd/matmul.h"

namespace lanewise {

class Embedder {
 public:
  // Reads what the checkpoint says of embedding, with the weights of its dense
  // layers. `shared` and `runner` must outlive the embedder.
  static absl::StatusOr<std::unique_ptr<Embedder>> Create(
      const Checkpoint& checkpoint, const SessionShared& shared,
      BatchRunner* runner);

  // As embedding.h says. Thread-safe. INVALID_ARGUMENT for a contradictory
  // request, an unknown prompt (with those that are known), a text without
  // tokens; OUT_OF_RANGE for one that is too long, with both numbers; INTERNAL
  // for a vector that is not finite.
  absl::StatusOr<EmbedResult> Embed(const EmbedRequest& request,
                                    const EmbedCallbacks& callbacks) const;

  const EmbedConfig& config() const { return config_; }

 private:
  struct Dense {
    PackedMatrix weights;  // [out, in]
    std::vector<float> bias;
    Activation activation;
  };
  // A request after it has been checked.
  struct Plan;

  Embedder(const SessionShared& shared, BatchRunner* runner)
      : shared_(shared), runner_(*runner) {}

  absl::Status LoadDense(const EmbedDenseConfig& config);
  absl::StatusOr<Plan> MakePlan(const EmbedRequest& request) const;
  absl::StatusOr<std::string> PromptOf(const EmbedRequest& request) const;
  absl::StatusOr<BatchRunner::Text> CheckVectors(
      const std::vector<float>& vectors, size_t index,
      EmbedResult* result) const;
  absl::StatusOr<std::vector<BatchRunner::Text>> Inputs(
      const EmbedRequest& request, const Plan& plan, EmbedResult* result) const;
  absl::StatusOr<BatchRunner::Text> Tokenize(absl::string_view text,
                                             const Plan& plan, size_t index,
                                             EmbedResult* result) const;
  // pooled [texts, plan.width] through the dense layers, in place.
  absl::Status ApplyDense(size_t texts, std::vector<float>* pooled) const;
  absl::Status Finish(const Plan& plan, std::vector<float> pooled,
                      EmbedResult* result) const;
  size_t output_width(size_t pooled) const {
    return dense_.empty() ? pooled : dense_.back().weights.rows();
  }

  const SessionShared& shared_;
  BatchRunner& runner_;
  std::string path_;
  EmbedConfig config_;
  std::vector<std::string> notices_;  // of what the files do not say
  std::vector<Dense> dense_;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_EMBED_H_
