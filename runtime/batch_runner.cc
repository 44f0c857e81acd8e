#include "runtime/batch_runner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "model/kv_cache.h"
#include "simd/context.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Executors that grew beyond this for a long text are not kept.
constexpr size_t kMaxKeptRows = 4096;

// Of a batch's logits: those of a vocabulary at each row are many.
constexpr size_t kMaxHeadValues = size_t{1} << 24;

// Rows that the head gives for a text.
size_t HeadRows(const ModelSpec& spec, size_t ids) {
  return spec.head.pooling == Pooling::kNone ? ids : 1;
}

}  // namespace

BatchRunner::BatchRunner(const SessionShared& shared)
    : shared_(shared),
      model_(shared.model->encoder() != nullptr ? *shared.model->encoder()
                                                : *shared.model) {}

size_t BatchRunner::RowsOf(const Text& text) const {
  return text.vectors.empty()
             ? text.ids.size()
             : text.vectors.size() / model_.spec().token_width();
}

absl::StatusOr<std::unique_ptr<Executor>> BatchRunner::TakeExecutor(
    size_t rows) {
  std::unique_ptr<Executor> executor;
  {
    const absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      executor = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (executor != nullptr) {
    LANEWISE_RETURN_IF_ERROR(executor->Reserve(rows));
    return executor;
  }
  Executor::Options options;
  options.activations = shared_.activations;
  options.max_rows = rows;
  return Executor::Create(model_, *shared_.context, std::move(options));
}

void BatchRunner::PutBack(std::unique_ptr<Executor> executor, size_t rows) {
  if (rows > kMaxKeptRows) return;
  const absl::MutexLock lock(&mutex_);
  if (idle_.size() < shared_.context->threads()) {
    idle_.push_back(std::move(executor));
  }
}

absl::Status BatchRunner::Run(absl::Span<const Text> texts,
                              const Options& options, Visit visit) {
  const ScopedFloatEnvironment environment;
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return RowsOf(texts[a]) > RowsOf(texts[b]);
  });
  if (order.empty()) return absl::OkStatus();
  const size_t longest = RowsOf(texts[order.front()]);
  size_t batch_tokens = std::max<size_t>(options.batch_tokens, 1);
  if (options.rows == Rows::kHead &&
      model_.spec().head.pooling == Pooling::kNone) {
    batch_tokens = std::clamp<size_t>(
        kMaxHeadValues / std::max<size_t>(model_.spec().head_width(), 1), 1,
        batch_tokens);
  }
  size_t rows = batch_tokens;
  // A bidirectional stack needs each text whole; a causal one and its cache
  // take it in chunks.
  if (model_.spec().bidirectional() || options.rows == Rows::kHead) {
    rows = std::max(rows, longest);
  }
  LANEWISE_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                            TakeExecutor(rows));
  for (size_t begin = 0; begin < order.size();) {
    if (options.should_cancel && options.should_cancel()) {
      return absl::CancelledError("cancelled");
    }
    size_t end = begin, tokens = 0;
    do {
      tokens += RowsOf(texts[order[end++]]);
    } while (end < order.size() &&
             tokens + RowsOf(texts[order[end]]) <= batch_tokens);
    LANEWISE_RETURN_IF_ERROR(
        RunBatch(texts, absl::MakeConstSpan(order).subspan(begin, end - begin),
                 options.rows, executor.get(), visit));
    begin = end;
    if (options.on_progress) options.on_progress(begin, order.size());
  }
  // A wish that came during the last batch counts too.
  if (options.should_cancel && options.should_cancel()) {
    return absl::CancelledError("cancelled");
  }
  PutBack(std::move(executor), rows);
  return absl::OkStatus();
}

absl::Status BatchRunner::RunBatch(absl::Span<const Text> texts,
                                   absl::Span<const size_t> batch, Rows rows,
                                   Executor* executor, Visit visit) {
  const ModelSpec& spec = model_.spec();
  const bool head = rows == Rows::kHead;
  const size_t width = head ? spec.head_width() : spec.width;
  const auto rows_of = [&](size_t index) {
    const size_t own = RowsOf(texts[index]);
    return head ? HeadRows(spec, own) : own;
  };
  size_t all = 0;
  for (const size_t index : batch) all += rows_of(index);
  std::vector<float> values(all * width);
  Executor::Outputs outputs;
  (head ? outputs.logits : outputs.hidden) = values.data();
  if (spec.bidirectional()) {
    std::vector<Executor::Entry> entries;
    for (const size_t index : batch) {
      Executor::Entry entry;
      entry.ids = texts[index].ids;
      entry.type_ids = texts[index].type_ids;
      entry.vectors = texts[index].vectors;
      entry.logits = head ? Executor::Logits::kAll : Executor::Logits::kNone;
      entries.push_back(entry);
    }
    LANEWISE_RETURN_IF_ERROR(executor->Forward(entries, outputs));
  } else {
    LANEWISE_RETURN_IF_ERROR(ForwardCausal(texts, batch, executor, outputs));
  }
  const float* next = values.data();
  for (const size_t index : batch) {
    const size_t count = rows_of(index) * width;
    LANEWISE_RETURN_IF_ERROR(visit(index, absl::MakeConstSpan(next, count)));
    next += count;
  }
  return absl::OkStatus();
}

// A batch is several texts that fit together, or one of any length.
absl::Status BatchRunner::ForwardCausal(absl::Span<const Text> texts,
                                        absl::Span<const size_t> batch,
                                        Executor* executor,
                                        Executor::Outputs outputs) {
  std::vector<KvCache> caches;
  caches.reserve(batch.size());
  std::vector<Executor::Entry> entries;
  for (const size_t index : batch) {
    KvCache& cache = caches.emplace_back(shared_.pool);
    LANEWISE_RETURN_IF_ERROR(cache.Reserve(RowsOf(texts[index])));
    Executor::Entry entry;
    entry.ids = texts[index].ids;
    entry.type_ids = texts[index].type_ids;
    entry.vectors = texts[index].vectors;
    entry.cache = &cache;
    entry.prompt_length = RowsOf(texts[index]);
    entry.logits = outputs.logits != nullptr ? Executor::Logits::kAll
                                             : Executor::Logits::kNone;
    entries.push_back(entry);
  }
  const size_t chunk = executor->options().max_rows;
  const size_t rows = RowsOf(texts[batch[0]]);
  if (batch.size() > 1 || rows <= chunk) {
    return executor->Forward(entries, outputs);
  }
  const Executor::Entry whole = entries[0];
  const size_t width = model_.spec().width;
  const size_t token_width = model_.spec().token_width();
  for (size_t begin = 0; begin < rows; begin += chunk) {
    if (whole.vectors.empty()) {
      entries[0].ids = whole.ids.subspan(begin, chunk);
    } else {
      entries[0].vectors =
          whole.vectors.subspan(begin * token_width, chunk * token_width);
    }
    if (!whole.type_ids.empty()) {
      entries[0].type_ids = whole.type_ids.subspan(begin, chunk);
    }
    Executor::Outputs part;
    part.hidden = outputs.hidden + begin * width;
    LANEWISE_RETURN_IF_ERROR(executor->Forward(entries, part));
  }
  return absl::OkStatus();
}

}  // namespace lanewise
