// Runs an encoder-decoder over several inputs at a time: the encoder once, then
// the decoder, greedy, sampling or with beams.
#ifndef LANEWISE_RUNTIME_SEQ2SEQ_SESSION_H_
#define LANEWISE_RUNTIME_SEQ2SEQ_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lanewise/translation.h"
#include "model/executor.h"
#include "model/kv_cache.h"
#include "runtime/session.h"

namespace lanewise {

// What is the same for all inputs of a request.
struct Seq2SeqJob {
  TranslateOptions options;             // end_ids and seed set
  std::vector<int32_t> decoder_prompt;  // with the start token
  bool hash_logits = false;
};

class Seq2SeqSession {
 public:
  // Both outlive the session. `memory_pool`: of KvPagePool::CreateForMemory.
  static absl::StatusOr<std::unique_ptr<Seq2SeqSession>> Create(
      const SessionShared& shared, std::shared_ptr<KvPagePool> memory_pool);

  // How many of `wanted` inputs one Run should be given: what their beams cost
  // in memory is bounded.
  static size_t GroupSize(const Seq2SeqJob& job, size_t wanted);

  // Translations of `sources`, ids as the encoder reads them (none empty, all
  // within the encoder's positions). `first`: index of the first one, for
  // callbacks and messages. Where the caller cancels, those that have not ended
  // say so. INTERNAL for logits that are not finite, RESOURCE_EXHAUSTED when
  // caches do not fit into memory.
  absl::StatusOr<std::vector<Translation>> Run(
      const Seq2SeqJob& job, absl::Span<const std::vector<int32_t>> sources,
      size_t first, const TranslateCallbacks& callbacks);

  double encode_seconds() const { return encode_seconds_; }
  double decode_seconds() const { return decode_seconds_; }

 private:
  class Greedy;

  Seq2SeqSession(const SessionShared& shared,
                 std::shared_ptr<KvPagePool> memory_pool)
      : shared_(shared), memory_pool_(std::move(memory_pool)) {}

  // Keys and values of each source for cross-attention.
  absl::StatusOr<std::vector<KvCache>> Encode(
      absl::Span<const std::vector<int32_t>> sources);
  absl::Status SearchBeams(const Seq2SeqJob& job,
                           absl::Span<const KvCache> memories, size_t first,
                           const TranslateCallbacks& callbacks,
                           std::vector<Translation>* translations);

  const SessionShared& shared_;
  std::shared_ptr<KvPagePool> memory_pool_;
  std::unique_ptr<Executor> encoder_, decoder_;
  double encode_seconds_ = 0, decode_seconds_ = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SEQ2SEQ_SESSION_H_
