#include "model/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "simd/norm.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

// Rows that one task of an elementwise loop takes: below, waking a thread
// costs more than it saves.
constexpr size_t kRowsPerTask = 16;

absl::Status CheckEntry(const Executor::Entry& entry, const ModelSpec& spec) {
  const size_t end = entry.cache->length() + entry.ids.size();
  if (end > spec.max_positions) {
    return absl::OutOfRangeError(
        absl::StrCat("sequence: expected at most ", spec.max_positions,
                     " positions (the model's limit), found ", end));
  }
  if (end > entry.cache->capacity()) {
    return absl::OutOfRangeError(absl::StrCat("KV cache: expected room for ",
                                              end, " positions, found ",
                                              entry.cache->capacity()));
  }
  for (const int32_t id : entry.ids) {
    if (id < 0 || static_cast<size_t>(id) >= spec.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token id: expected 0 to ", spec.vocab_size - 1, ", found ", id));
    }
  }
  return absl::OkStatus();
}

// The largest sizes of all layers.
struct Widths {
  size_t qkv = 0, attended = 0, ffn = 0, hidden = 0, experts = 0;
};

Widths WidestOf(const ModelSpec& spec) {
  Widths widths;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& attention = layer.attention;
    widths.qkv =
        std::max(widths.qkv, attention.query_width() + attention.key_width() +
                                 attention.value_width());
    widths.attended = std::max(widths.attended, attention.output_width());
    size_t ffn = layer.ffn.width;
    if (layer.ffn.moe.has_value()) {
      const MoeSpec& moe = *layer.ffn.moe;
      widths.experts = std::max(widths.experts, moe.experts);
      if (moe.shared.has_value()) ffn = std::max(ffn, moe.shared->width);
    }
    widths.ffn = std::max(widths.ffn, ffn);
    widths.hidden = std::max(widths.hidden, layer.ffn.gated ? 2 * ffn : ffn);
  }
  return widths;
}

}  // namespace

Executor::Executor(const Model& model, const Context& context, Options options)
    : model_(model), context_(context), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    const Model& model, const Context& context, Options options) {
  options.max_rows = std::max<size_t>(options.max_rows, 1);
  auto executor =
      absl::WrapUnique(new Executor(model, context, std::move(options)));
  LANEWISE_RETURN_IF_ERROR(executor->AllocateBuffers());
  return executor;
}

absl::Status Executor::AllocateBuffers() {
  const ModelSpec& spec = model_.spec();
  const Widths widths = WidestOf(spec);
  size_t rope = 0, half = 0;
  for (size_t i = 0; i < spec.ropes.size(); ++i) {
    rope_offsets_.push_back(rope * options_.max_rows);
    rope += model_.rope(i).half();
    half = std::max(half, model_.rope(i).half());
  }
  const size_t moe = widths.experts > 0 ? spec.width : 0;
  const std::pair<Buffer*, size_t> buffers[] = {
      {&residual_, std::max(spec.width, spec.token_width())},
      {&normed_, std::max(spec.width, spec.token_width())},
      {&qkv_, widths.qkv},
      {&attended_, widths.attended},
      {&hidden_, widths.hidden},
      {&cos_, rope},
      {&sin_, rope},
      {&mixed_, moe},
      {&expert_in_, moe},
      {&expert_out_, moe},
      {&router_, widths.experts}};
  for (const auto& [buffer, width] : buffers) {
    const size_t floats = options_.max_rows * std::max<size_t>(width, 1);
    *buffer = hwy::AllocateAligned<float>(floats);
    if (*buffer == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "activations: no memory for ", options_.max_rows, " rows of ", width,
          " values; use a smaller prefill chunk"));
    }
  }
  LANEWISE_RETURN_IF_ERROR(activations_.Reserve(
      options_.max_rows,
      std::max({spec.width, spec.token_width(), widths.attended, widths.ffn})));
  sequences_.reserve(options_.max_rows);
  rope_scratch_.resize(half);
  routes_.resize(widths.experts);
  for (std::vector<Routed>& route : routes_) route.reserve(options_.max_rows);
  if (widths.experts > 0) shared_routes_.reserve(options_.max_rows);
  return absl::OkStatus();
}

absl::Status Executor::Check(absl::Span<const Entry> batch) const {
  size_t rows = 0;
  for (const Entry& entry : batch) {
    LANEWISE_RETURN_IF_ERROR(CheckEntry(entry, model_.spec()));
    rows += entry.ids.size();
  }
  if (rows > options_.max_rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch: expected at most ", options_.max_rows, " rows, found ", rows));
  }
  return absl::OkStatus();
}

absl::Status Executor::Forward(absl::Span<const Entry> batch, float* logits) {
  LANEWISE_RETURN_IF_ERROR(Check(batch));
  const ScopedFloatEnvironment environment;
  rows_ = 0;
  for (const Entry& entry : batch) rows_ += entry.ids.size();
  if (rows_ == 0) return absl::OkStatus();
  Embed(batch);
  FillRope(batch);
  if (options_.observer) options_.observer(0, residual_.get());
  for (size_t layer = 0; layer < model_.spec().layers.size(); ++layer) {
    RunLayer(layer, batch);
    if (options_.observer) options_.observer(layer + 1, residual_.get());
  }
  for (const Entry& entry : batch) entry.cache->Advance(entry.ids.size());
  RunHead(batch, logits);
  return absl::OkStatus();
}

void Executor::RunLayer(size_t layer, absl::Span<const Entry> batch) {
  const LayerSpec& spec = model_.spec().layers[layer];
  const LayerWeights& weights = model_.weights().layers[layer];
  const size_t attended = spec.attention.output_width();
  const size_t width = model_.spec().width;
  const auto add_attention = [&] {
    AddSublayer(spec.attention_norms, weights.attention_norms,
                &weights.attention_output,
                {attended_.get(), attended, rows_, attended});
  };
  const float* input =
      NormedInput(spec.attention_norms.input, weights.attention_norms.input);
  RunAttention(layer, batch, input);
  if (!spec.parallel) add_attention();
  if (!spec.parallel || spec.ffn_norms.input.has_value()) {
    input = NormedInput(spec.ffn_norms.input, weights.ffn_norms.input);
  }
  RunFfn(layer, input);
  if (spec.parallel) add_attention();
  if (spec.ffn.moe.has_value()) {
    AddSublayer(spec.ffn_norms, weights.ffn_norms, nullptr,
                {mixed_.get(), width, rows_, width});
  } else {
    AddSublayer(spec.ffn_norms, weights.ffn_norms, &weights.ffn.out,
                {hidden_.get(), weights.ffn.in.rows(), rows_, spec.ffn.width});
  }
}

void Executor::ForRows(size_t rows,
                       absl::FunctionRef<void(size_t)> task) const {
  const size_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  context_.ParallelFor(tasks, [&](size_t index, size_t) {
    const size_t begin = index * kRowsPerTask;
    const size_t end = std::min(rows, begin + kRowsPerTask);
    for (size_t row = begin; row < end; ++row) task(row);
  });
}

void Executor::Embed(absl::Span<const Entry> batch) {
  const ModelSpec& spec = model_.spec();
  const Weights& weights = model_.weights();
  const size_t width = spec.token_width();
  const bool project = spec.embedding_width.has_value();
  float* const embedded = project ? normed_.get() : residual_.get();
  size_t row = 0;
  for (const Entry& entry : batch) {
    for (const int32_t id : entry.ids) {
      DecodeRow(weights.token_embedding, static_cast<size_t>(id),
                embedded + row++ * width);
    }
  }
  if (spec.embedding_scale != 1.0f) {
    Scale(context_.target(), spec.embedding_scale, rows_ * width, embedded);
  }
  if (project) {
    Project(weights.embedding_in, {embedded, width, rows_, width},
            residual_.get(), spec.width, false);
  }
  if (spec.positions.kind == PositionSpec::Kind::kLearned) AddPositions(batch);
  if (spec.embedding_norm.has_value()) {
    Norm(*spec.embedding_norm, weights.embedding_norm, residual_.get(), rows_,
         residual_.get());
  }
}

void Executor::AddPositions(absl::Span<const Entry> batch) {
  const size_t width = model_.spec().width;
  const float* table = model_.weights().position_embedding.data() +
                       model_.spec().positions.offset * width;
  float* x = residual_.get();
  for (const Entry& entry : batch) {
    const size_t floats = entry.ids.size() * width;
    AddTo(context_.target(), table + entry.cache->length() * width, floats, x);
    x += floats;
  }
}

void Executor::FillRope(absl::Span<const Entry> batch) {
  for (size_t i = 0; i < model_.spec().ropes.size(); ++i) {
    const RopeTable& table = model_.rope(i);
    size_t offset = rope_offsets_[i];
    for (const Entry& entry : batch) {
      const size_t first = entry.cache->length();
      const size_t prompt = entry.prompt_length > 0 ? entry.prompt_length
                                                    : first + entry.ids.size();
      size_t length = 0;
      absl::Span<const float> frequencies;
      for (size_t j = first; j < first + entry.ids.size(); ++j) {
        if (length != std::max(prompt, j + 1)) {
          length = std::max(prompt, j + 1);
          frequencies = table.Frequencies(length, rope_scratch_.data());
        }
        table.Fill(frequencies, j, cos_.get() + offset, sin_.get() + offset);
        offset += table.half();
      }
    }
  }
}

const float* Executor::NormedInput(const std::optional<NormSpec>& spec,
                                   const NormWeights& weights) {
  if (!spec.has_value()) return residual_.get();
  Norm(*spec, weights, residual_.get(), rows_, normed_.get());
  return normed_.get();
}

void Executor::Norm(const NormSpec& spec, const NormWeights& weights,
                    const float* x, size_t rows, float* out) {
  const size_t width = model_.spec().width;
  const float* weight =
      weights.weight.empty() ? nullptr : weights.weight.data();
  const float* bias = weights.bias.empty() ? nullptr : weights.bias.data();
  ForRows(rows, [&](size_t row) {
    if (spec.kind == NormKind::kRmsNorm) {
      RmsNorm(context_.target(), x + row * width, weight, spec.eps, width,
              out + row * width);
    } else {
      LayerNorm(context_.target(), x + row * width, weight, bias, spec.eps,
                width, out + row * width);
    }
  });
}

void Executor::Project(const Projection& projection, const RowView& in,
                       float* out, size_t ldc, bool accumulate) {
  bool prepared[3] = {};
  size_t column = 0;
  for (const PackedMatrix& part : projection.parts) {
    const Representation representation =
        RepresentationFor(options_.activations, part.type());
    bool& done = prepared[static_cast<size_t>(representation)];
    if (!done) {
      activations_.Prepare(context_, in.data, in.stride, in.rows, in.cols,
                           representation);
      done = true;
    }
    MatMulEpilogue epilogue;
    epilogue.accumulate = accumulate;
    if (!projection.bias.empty()) {
      epilogue.bias = projection.bias.data() + column;
    }
    MatMul(context_, activations_, options_.activations, part, out + column,
           ldc, epilogue);
    column += part.rows();
  }
}

void Executor::AddSublayer(const SublayerNorms& norms,
                           const SublayerNormWeights& norm_weights,
                           const Projection* projection, const RowView& in) {
  const size_t width = model_.spec().width;
  const float* output = in.data;
  if (projection != nullptr && norms.output.has_value()) {
    Project(*projection, in, normed_.get(), width, false);
    output = normed_.get();
  } else if (projection != nullptr) {
    Project(*projection, in, residual_.get(), width, true);
    output = nullptr;
  }
  if (norms.output.has_value()) {
    Norm(*norms.output, norm_weights.output, output, rows_, normed_.get());
    output = normed_.get();
  }
  if (output != nullptr) {
    AddTo(context_.target(), output, rows_ * width, residual_.get());
  }
  if (norms.after.has_value()) {
    Norm(*norms.after, norm_weights.after, residual_.get(), rows_,
         residual_.get());
  }
}

float* Executor::Scratch(size_t floats) {
  if (floats > scratch_floats_) {
    scratch_ = hwy::AllocateAligned<float>(floats);
    scratch_floats_ = floats;
  }
  return scratch_.get();
}

// Moves the rows that are asked for to the front of normed_ and counts them.
size_t Executor::GatherHeadRows(absl::Span<const Entry> batch) {
  const size_t width = model_.spec().width;
  size_t wanted = 0, row = 0;
  for (const Entry& entry : batch) {
    const size_t rows = entry.ids.size();
    size_t first = rows;
    if (entry.logits == Logits::kAll) first = 0;
    if (entry.logits == Logits::kLast && rows > 0) first = rows - 1;
    std::memcpy(normed_.get() + wanted * width,
                residual_.get() + (row + first) * width,
                (rows - first) * width * sizeof(float));
    wanted += rows - first;
    row += rows;
  }
  return wanted;
}

void Executor::RunHead(absl::Span<const Entry> batch, float* logits) {
  const ModelSpec& spec = model_.spec();
  const Weights& weights = model_.weights();
  const size_t wanted = GatherHeadRows(batch);
  if (wanted == 0) return;
  if (spec.final_norm.has_value()) {
    Norm(*spec.final_norm, weights.final_norm, normed_.get(), wanted,
         normed_.get());
  }
  const float* input = normed_.get();
  const size_t width = spec.token_width();
  if (spec.embedding_width.has_value()) {
    Project(weights.embedding_out, {input, spec.width, wanted, spec.width},
            residual_.get(), width, false);
    input = residual_.get();
  }
  const PackedMatrix& head =
      spec.head.tied ? weights.token_embedding : weights.head.parts.front();
  activations_.Prepare(context_, input, width, wanted, width,
                       RepresentationFor(options_.activations, head.type()));
  MatMulEpilogue epilogue;
  if (spec.head.bias) epilogue.bias = weights.head.bias.data();
  MatMul(context_, activations_, options_.activations, head, logits,
         spec.vocab_size, epilogue);
  if (spec.head.scale == 1.0f && spec.head.softcap == 0.0f) return;
  ForRows(wanted, [&](size_t row) {
    float* x = logits + row * spec.vocab_size;
    if (spec.head.scale != 1.0f) {
      Scale(context_.target(), spec.head.scale, spec.vocab_size, x);
    }
    if (spec.head.softcap > 0.0f) {
      SoftCap(context_.target(), spec.head.softcap, spec.vocab_size, x);
    }
  });
}

}  // namespace lanewise
