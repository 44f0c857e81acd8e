#include "tests/reproducibility/bits.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/executor.h"
#include "model/kv_cache.h"
#include "simd/context.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kCacheBytes = size_t{1} << 30;

// A sequence of the batch and how far it has come.
struct Running {
  std::vector<int32_t> ids;
  KvCache cache;
  size_t done = 0;
};

std::vector<Running> MakeBatch(const std::shared_ptr<KvPagePool>& pool,
                               const std::vector<int32_t>& ids, size_t batch) {
  std::vector<Running> running;
  for (size_t i = 0; i < batch; ++i) {
    std::vector<int32_t> other = ids;
    std::rotate(other.begin(), other.begin() + i % other.size(), other.end());
    if (i > 0) other.resize(std::max<size_t>(1, other.size() - 2 * i + 1));
    running.push_back({std::move(other), KvCache(pool)});
  }
  return running;
}

}  // namespace

std::string Schedule::ToString() const {
  return absl::StrCat(target.name(), ", ", threads, " threads, batch ", batch,
                      ", chunk ", chunk == 0 ? "all" : absl::StrCat(chunk));
}

absl::StatusOr<std::vector<float>> ComputeLogits(
    const Model& model, const Schedule& schedule, const Precision& precision,
    const std::vector<int32_t>& ids, const std::vector<int32_t>& decoded) {
  Context::Options context_options;
  context_options.threads = schedule.threads;
  context_options.target = schedule.target;
  LANEWISE_ASSIGN_OR_RETURN(const auto context,
                            Context::Create(context_options));
  const auto pool =
      KvPagePool::Create(model.spec(), precision.cache, kCacheBytes);
  const size_t vocab = model.spec().vocab_size;
  std::vector<Running> running = MakeBatch(pool, ids, schedule.batch);
  for (Running& sequence : running) {
    LANEWISE_RETURN_IF_ERROR(
        sequence.cache.Reserve(sequence.ids.size() + decoded.size()));
  }
  const size_t chunk = schedule.chunk == 0 ? ids.size() : schedule.chunk;
  Executor::Options options;
  options.activations = precision.activations;
  options.max_rows = chunk * schedule.batch;
  LANEWISE_ASSIGN_OR_RETURN(const auto executor,
                            Executor::Create(model, *context, options));

  std::vector<float> logits;
  std::vector<float> pass(options.max_rows * vocab);
  const auto run = [&](size_t rows) -> absl::Status {
    std::vector<Executor::Entry> entries;
    size_t first_rows = 0;
    for (Running& sequence : running) {
      const size_t n = std::min(rows, sequence.ids.size() - sequence.done);
      if (&sequence == &running.front()) first_rows = n;
      entries.push_back(
          {absl::MakeConstSpan(sequence.ids).subspan(sequence.done, n),
           &sequence.cache, Executor::Logits::kAll});
      sequence.done += n;
    }
    LANEWISE_RETURN_IF_ERROR(executor->Forward(entries, pass.data()));
    logits.insert(logits.end(), pass.begin(),
                  pass.begin() + first_rows * vocab);
    return absl::OkStatus();
  };
  while (running.front().done < ids.size()) {
    LANEWISE_RETURN_IF_ERROR(run(chunk));
  }
  for (Running& sequence : running) {
    // The others may still be in their prompts: mixed batches.
    sequence.ids.insert(sequence.ids.end(), decoded.begin(), decoded.end());
  }
  for (size_t i = 0; i < decoded.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(run(1));
  }
  return logits;
}

std::string CompareSchedules(const Model& model, const Precision& precision,
                             const std::vector<int32_t>& ids,
                             const std::vector<int32_t>& decoded) {
  const std::vector<Target> targets = FmaTargets();
  std::vector<float> expected;
  size_t compared = 0;
  for (const Schedule& schedule : AllSchedules(targets)) {
    const absl::StatusOr<std::vector<float>> found =
        ComputeLogits(model, schedule, precision, ids, decoded);
    if (!found.ok()) return found.status().ToString();
    if (expected.empty()) expected = *found;
    if (found->size() != expected.size() ||
        std::memcmp(found->data(), expected.data(),
                    found->size() * sizeof(float)) != 0) {
      return schedule.ToString();
    }
    ++compared;
  }
  std::printf("%zu schedules bit-equal on: %s\n", compared,
              Names(targets).c_str());
  return "";
}

std::vector<Schedule> AllSchedules(const std::vector<Target>& targets) {
  std::vector<Schedule> schedules;
  for (const Target& target : targets) {
    for (const size_t threads : {1, 2, 3, 7}) {
      for (const size_t batch : {1, 4}) {
        for (const size_t chunk : {1, 16, 0}) {
          schedules.push_back({target, threads, batch, chunk});
        }
      }
    }
  }
  return schedules;
}

std::vector<Target> FmaTargets() {
  std::vector<Target> targets;
  for (const Target& target : Target::Available()) {
    if (target.has_fma()) targets.push_back(target);
  }
  return targets;
}

std::vector<Target> OtherTargets() {
  std::vector<Target> targets;
  for (const Target& target : Target::Available()) {
    if (!target.has_fma()) targets.push_back(target);
  }
  return targets;
}

std::string Names(const std::vector<Target>& targets) {
  return absl::StrJoin(targets, " ", [](std::string* out, const Target& t) {
    absl::StrAppend(out, t.name());
  });
}

}  // namespace lanewise
