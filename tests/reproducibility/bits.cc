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
  KvCache memory;  // of an encoder-decoder
  size_t done = 0;
};

// `ids`, and others beside them.
std::vector<std::vector<int32_t>> Sequences(const std::vector<int32_t>& ids,
                                            size_t batch) {
  std::vector<std::vector<int32_t>> sequences;
  for (size_t i = 0; i < batch; ++i) {
    std::vector<int32_t> other = ids;
    std::rotate(other.begin(), other.begin() + i % other.size(), other.end());
    if (i > 0) {
      const size_t less = std::min(2 * i - 1, other.size() - 1);
      other.resize(other.size() - less);
    }
    sequences.push_back(std::move(other));
  }
  return sequences;
}

// The encoder's rows of each sequence, as its decoder reads them.
absl::Status FillMemories(const Model& model, const Context& context,
                          const Precision& precision, Executor* decoder,
                          std::vector<Running>* running) {
  const Model& encoder = *model.encoder();
  std::vector<Executor::Entry> entries;
  size_t rows = 0;
  for (const Running& sequence : *running) {
    entries.push_back({sequence.ids, nullptr, Executor::Logits::kNone});
    rows += sequence.ids.size();
  }
  Executor::Options options;
  options.activations = precision.activations;
  options.max_rows = rows;
  LANEWISE_ASSIGN_OR_RETURN(const auto executor,
                            Executor::Create(encoder, context, options));
  std::vector<float> hidden(rows * encoder.spec().width);
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  LANEWISE_RETURN_IF_ERROR(executor->Forward(entries, outputs));
  absl::Span<const float> rest = hidden;
  for (Running& sequence : *running) {
    const size_t values = sequence.ids.size() * encoder.spec().width;
    LANEWISE_RETURN_IF_ERROR(
        decoder->FillMemory(rest.first(values), &sequence.memory));
    rest.remove_prefix(values);
  }
  return absl::OkStatus();
}

// Sequences with room for `more` tokens each.
absl::StatusOr<std::vector<Running>> MakeBatch(
    const Model& model, const Precision& precision,
    std::vector<std::vector<int32_t>> sequences, size_t more) {
  const ModelSpec& spec = model.spec();
  const auto pool = KvPagePool::Create(spec, precision.cache, kCacheBytes);
  const auto memory_pool =
      model.encoder() == nullptr
          ? pool
          : KvPagePool::CreateForMemory(spec, precision.cache, kCacheBytes);
  std::vector<Running> running;
  for (std::vector<int32_t>& ids : sequences) {
    running.push_back({std::move(ids), KvCache(pool), KvCache(memory_pool)});
    Running& last = running.back();
    LANEWISE_RETURN_IF_ERROR(last.cache.Reserve(last.ids.size() + more));
  }
  return running;
}

// Up to `rows` more tokens of each sequence; appends the first one's logits.
absl::Status Pass(const Model& model, size_t rows, Executor* executor,
                  std::vector<Running>* running, std::vector<float>* logits) {
  std::vector<Executor::Entry> entries;
  size_t first = 0, all = 0;
  for (Running& sequence : *running) {
    const size_t n = std::min(rows, sequence.ids.size() - sequence.done);
    if (&sequence == &running->front()) first = n;
    all += n;
    Executor::Entry entry;
    entry.ids = absl::MakeConstSpan(sequence.ids).subspan(sequence.done, n);
    entry.cache = &sequence.cache;
    entry.logits = Executor::Logits::kAll;
    if (model.encoder() != nullptr) entry.memory = &sequence.memory;
    entries.push_back(entry);
    sequence.done += n;
  }
  const size_t vocab = model.spec().head_width();
  std::vector<float> found(all * vocab);
  LANEWISE_RETURN_IF_ERROR(executor->Forward(entries, found.data()));
  logits->insert(logits->end(), found.begin(), found.begin() + first * vocab);
  return absl::OkStatus();
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
  LANEWISE_ASSIGN_OR_RETURN(
      std::vector<Running> running,
      MakeBatch(model, precision, Sequences(ids, schedule.batch),
                decoded.size()));
  const size_t chunk = schedule.chunk == 0 ? ids.size() : schedule.chunk;
  Executor::Options options;
  options.activations = precision.activations;
  options.max_rows = chunk * schedule.batch;
  LANEWISE_ASSIGN_OR_RETURN(const auto executor,
                            Executor::Create(model, *context, options));
  if (model.encoder() != nullptr) {
    LANEWISE_RETURN_IF_ERROR(
        FillMemories(model, *context, precision, executor.get(), &running));
  }

  std::vector<float> logits;
  while (running.front().done < ids.size()) {
    LANEWISE_RETURN_IF_ERROR(
        Pass(model, chunk, executor.get(), &running, &logits));
  }
  for (Running& sequence : running) {
    // The others may still be in their prompts: mixed batches.
    sequence.ids.insert(sequence.ids.end(), decoded.begin(), decoded.end());
  }
  for (size_t i = 0; i < decoded.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(Pass(model, 1, executor.get(), &running, &logits));
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
