#include "runtime/beam_search_decoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"

namespace lanewise {

DecoderBeamStepper::DecoderBeamStepper(
    Executor& executor, std::vector<KvCache> caches,
    absl::Span<const KvCache* const> memories)
    : executor_(executor), caches_(std::move(caches)) {
  for (size_t i = 0; i < caches_.size(); ++i) {
    rows_.push_back(
        {caches_[i].length() + 1, memories.empty() ? nullptr : memories[i]});
  }
}

absl::StatusOr<std::unique_ptr<DecoderBeamStepper>> DecoderBeamStepper::Create(
    Executor& executor, std::shared_ptr<KvPagePool> pool,
    const DecoderInputs& inputs) {
  const auto prompts = inputs.prompts;
  if (!inputs.memories.empty() && inputs.memories.size() != prompts.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("memories: expected one of each of ", prompts.size(),
                     " prompts, found ", inputs.memories.size()));
  }
  std::vector<KvCache> caches;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "prompts[", i, "]: expected at least one token, found none"));
    }
    caches.emplace_back(pool);
    LANEWISE_RETURN_IF_ERROR(caches.back().Reserve(prompts[i].size()));
  }
  auto stepper = std::make_unique<DecoderBeamStepper>(
      executor, std::move(caches), inputs.memories);
  for (size_t i = 0; i < prompts.size(); ++i) {
    stepper->rows_[i].prompt_length = prompts[i].size();
  }
  LANEWISE_RETURN_IF_ERROR(stepper->Prefill(prompts));
  return stepper;
}

absl::Status DecoderBeamStepper::Prefill(
    absl::Span<const absl::Span<const int32_t>> prompts) {
  const size_t max_rows = executor_.options().max_rows;
  size_t room = max_rows;
  batch_.clear();
  for (size_t i = 0; i < prompts.size(); ++i) {
    absl::Span<const int32_t> rest = prompts[i].first(prompts[i].size() - 1);
    while (!rest.empty()) {
      const size_t rows = std::min(room, rest.size());
      batch_.push_back({rest.first(rows), &caches_[i], Executor::Logits::kNone,
                        rows_[i].prompt_length});
      batch_.back().memory = rows_[i].memory;
      rest.remove_prefix(rows);
      room -= rows;
      if (room > 0) continue;
      LANEWISE_RETURN_IF_ERROR(executor_.Forward(batch_, nullptr));
      batch_.clear();
      room = max_rows;
    }
  }
  return executor_.Forward(batch_, nullptr);
}

// Gives each row its parent's cache: the last child of a parent takes it over,
// the others fork it.
absl::Status DecoderBeamStepper::FollowParents(
    absl::Span<const BeamStep> rows) {
  std::vector<size_t> last_child(caches_.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].parent >= caches_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("row ", i, ": expected a parent below ", caches_.size(),
                       ", found ", rows[i].parent));
    }
    last_child[rows[i].parent] = i;
  }
  std::vector<KvCache> next;
  std::vector<Row> next_rows;
  next.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    KvCache& parent = caches_[rows[i].parent];
    const bool last = last_child[rows[i].parent] == i;
    next.push_back(last ? std::move(parent) : parent.Fork());
    next_rows.push_back(rows_[rows[i].parent]);
  }
  rows_ = std::move(next_rows);
  caches_ = std::move(next);  // pages of childless rows go back before others
                              // are asked for
  for (KvCache& cache : caches_) {
    LANEWISE_RETURN_IF_ERROR(cache.Reserve(cache.length() + 1));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const float>> DecoderBeamStepper::Advance(
    absl::Span<const BeamStep> rows) {
  LANEWISE_RETURN_IF_ERROR(FollowParents(rows));
  const size_t vocab_size = executor_.model().spec().vocab_size;
  const size_t max_rows = executor_.options().max_rows;
  logits_.resize(rows.size() * vocab_size);
  tokens_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) tokens_[i] = rows[i].token;
  for (size_t begin = 0; begin < rows.size(); begin += max_rows) {
    batch_.clear();
    for (size_t i = begin; i < std::min(rows.size(), begin + max_rows); ++i) {
      batch_.push_back({absl::MakeConstSpan(tokens_).subspan(i, 1), &caches_[i],
                        Executor::Logits::kLast});
      batch_.back().memory = rows_[i].memory;
    }
    LANEWISE_RETURN_IF_ERROR(
        executor_.Forward(batch_, logits_.data() + begin * vocab_size));
  }
  return absl::MakeConstSpan(logits_);
}

}  // namespace lanewise
