#include "model/executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "simd/activation.h"
#include "simd/norm.h"
#include "simd/rope.h"
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
  size_t qkv = 0, attended = 0, ffn = 0, ffn_in = 0, rope = 0;
  for (const LayerSpec& layer : spec.layers) {
    const AttentionSpec& attention = layer.attention;
    qkv = std::max(qkv, attention.query_width() + attention.key_width() +
                            attention.value_width());
    attended = std::max(attended, attention.output_width());
    ffn = std::max(ffn, layer.ffn.width);
    ffn_in = std::max(ffn_in, layer.ffn.width * (layer.ffn.gated ? 2 : 1));
  }
  for (size_t i = 0; i < spec.ropes.size(); ++i) {
    rope_offsets_.push_back(rope * options_.max_rows);
    rope += model_.rope(i).half();
  }
  const std::pair<Buffer*, size_t> buffers[] = {{&residual_, spec.width},
                                                {&normed_, spec.width},
                                                {&qkv_, qkv},
                                                {&attended_, attended},
                                                {&hidden_, ffn_in},
                                                {&cos_, rope},
                                                {&sin_, rope}};
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
      options_.max_rows, std::max({spec.width, attended, ffn})));
  sequences_.reserve(options_.max_rows);
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
    RunAttention(layer, batch);
    RunFfn(layer);
    if (options_.observer) options_.observer(layer + 1, residual_.get());
  }
  for (const Entry& entry : batch) entry.cache->Advance(entry.ids.size());
  RunHead(batch, logits);
  return absl::OkStatus();
}

void Executor::ForRows(size_t rows,
                       absl::FunctionRef<void(size_t, size_t)> task) const {
  const size_t tasks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  context_.ParallelFor(tasks, [&](size_t index, size_t) {
    const size_t begin = index * kRowsPerTask;
    task(begin, std::min(rows, begin + kRowsPerTask));
  });
}

void Executor::Embed(absl::Span<const Entry> batch) {
  const ModelSpec& spec = model_.spec();
  const Weights& weights = model_.weights();
  const Target& target = context_.target();
  size_t row = 0;
  for (const Entry& entry : batch) {
    size_t position = entry.cache->length() + spec.positions.offset;
    for (const int32_t id : entry.ids) {
      float* x = residual_.get() + row++ * spec.width;
      DecodeRow(weights.token_embedding, static_cast<size_t>(id), x);
      if (spec.embedding_scale != 1.0f) {
        Scale(target, spec.embedding_scale, spec.width, x);
      }
      if (spec.positions.kind == PositionSpec::Kind::kLearned) {
        AddTo(target, weights.position_embedding.data() + position * spec.width,
              spec.width, x);
      }
      ++position;
    }
  }
  if (spec.embedding_norm.has_value()) {
    Norm(*spec.embedding_norm, weights.embedding_norm, residual_.get(), rows_,
         residual_.get());
  }
}

void Executor::FillRope(absl::Span<const Entry> batch) {
  for (size_t i = 0; i < model_.spec().ropes.size(); ++i) {
    const RopeTable& table = model_.rope(i);
    size_t offset = rope_offsets_[i];
    for (const Entry& entry : batch) {
      for (size_t j = 0; j < entry.ids.size(); ++j) {
        table.Fill(entry.cache->length() + j, cos_.get() + offset,
                   sin_.get() + offset);
        offset += table.half();
      }
    }
  }
}

void Executor::Norm(const NormSpec& spec, const NormWeights& weights,
                    const float* x, size_t rows, float* out) {
  const size_t width = model_.spec().width;
  const float* weight =
      weights.weight.empty() ? nullptr : weights.weight.data();
  const float* bias = weights.bias.empty() ? nullptr : weights.bias.data();
  ForRows(rows, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      if (spec.kind == NormKind::kRmsNorm) {
        RmsNorm(context_.target(), x + row * width, weight, spec.eps, width,
                out + row * width);
      } else {
        LayerNorm(context_.target(), x + row * width, weight, bias, spec.eps,
                  width, out + row * width);
      }
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
      activations_.Prepare(context_, in.data, in.stride, rows_, in.cols,
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
                           const Projection& projection, const RowView& in) {
  const size_t width = model_.spec().width;
  if (norms.output.has_value()) {
    Project(projection, in, normed_.get(), width, false);
    Norm(*norms.output, norm_weights.output, normed_.get(), rows_,
         normed_.get());
    AddTo(context_.target(), normed_.get(), rows_ * width, residual_.get());
  } else {
    Project(projection, in, residual_.get(), width, true);
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

void Executor::RunAttention(size_t layer, absl::Span<const Entry> batch) {
  const LayerSpec& spec = model_.spec().layers[layer];
  const LayerWeights& weights = model_.weights().layers[layer];
  const AttentionSpec& attention = spec.attention;
  const size_t width = model_.spec().width;
  const size_t query = attention.query_width(), key = attention.key_width();
  const size_t stride = query + key + attention.value_width();

  const float* input = residual_.get();
  if (spec.attention_norms.input.has_value()) {
    Norm(*spec.attention_norms.input, weights.attention_norms.input, input,
         rows_, normed_.get());
    input = normed_.get();
  }
  Project(weights.qkv, {input, width, width}, qkv_.get(), stride, false);
  if (attention.rope.has_value()) {
    const RopeSpec& rope = model_.spec().ropes[*attention.rope];
    const size_t half = model_.rope(*attention.rope).half();
    const size_t offset = rope_offsets_[*attention.rope];
    ForRows(rows_, [&](size_t begin, size_t end) {
      for (size_t row = begin; row < end; ++row) {
        // Query and key heads lie one after the other.
        ApplyRope(context_.target(), qkv_.get() + row * stride,
                  attention.heads + attention.kv_heads, attention.head_dim,
                  rope.rotary_dim, rope.pairing,
                  cos_.get() + offset + row * half,
                  sin_.get() + offset + row * half);
      }
    });
  }

  AttentionParams params{};
  params.heads = attention.heads;
  params.kv = batch[0].cache->pool().layer_shape(layer);
  params.scale = attention.scale;
  params.causal = attention.causal;
  params.window = attention.window;
  params.softcap = attention.softcap;
  sequences_.clear();
  size_t row = 0;
  for (const Entry& entry : batch) {
    const size_t rows = entry.ids.size();
    if (rows == 0) continue;
    float* qkv = qkv_.get() + row * stride;
    const size_t position = entry.cache->length();
    StoreKv(context_, params.kv, entry.cache->layer(layer), position, rows,
            qkv + query, stride, qkv + query + key, stride);
    sequences_.push_back({qkv, stride,
                          attended_.get() + row * attention.output_width(),
                          attention.output_width(), rows, position,
                          position + rows, entry.cache->layer(layer)});
    row += rows;
  }
  float* scratch =
      Scratch(AttentionScratchFloats(context_, params, sequences_));
  Attention(context_, params, sequences_, scratch);
  AddSublayer(
      spec.attention_norms, weights.attention_norms, weights.attention_output,
      {attended_.get(), attention.output_width(), attention.output_width()});
}

void Executor::RunFfn(size_t layer) {
  const LayerSpec& spec = model_.spec().layers[layer];
  const LayerWeights& weights = model_.weights().layers[layer];
  const size_t width = model_.spec().width;
  const size_t ffn = spec.ffn.width;
  const size_t in_width = spec.ffn.gated ? 2 * ffn : ffn;

  const float* input = residual_.get();
  if (spec.ffn_norms.input.has_value()) {
    Norm(*spec.ffn_norms.input, weights.ffn_norms.input, input, rows_,
         normed_.get());
    input = normed_.get();
  }
  Project(weights.ffn_in, {input, width, width}, hidden_.get(), in_width,
          false);
  // A gated row shrinks in place: its result goes over its own gate half, and
  // the next projection reads with the stride of the wide rows.
  ForRows(rows_, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      float* h = hidden_.get() + row * in_width;
      if (spec.ffn.gated) {
        ActivateGated(context_.target(), spec.ffn.activation, h, h + ffn, ffn,
                      h);
      } else {
        Activate(context_.target(), spec.ffn.activation, h, ffn);
      }
    }
  });
  AddSublayer(spec.ffn_norms, weights.ffn_norms, weights.ffn_out,
              {hidden_.get(), in_width, ffn});
}

void Executor::RunHead(absl::Span<const Entry> batch, float* logits) {
  const ModelSpec& spec = model_.spec();
  const size_t width = spec.width;
  // The rows that are asked for, moved to the front of normed_.
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
  if (wanted == 0) return;
  if (spec.final_norm.has_value()) {
    Norm(*spec.final_norm, model_.weights().final_norm, normed_.get(), wanted,
         normed_.get());
  }
  const PackedMatrix* head = &model_.weights().token_embedding;
  if (!spec.head.tied) head = &model_.weights().head.parts.front();
  activations_.Prepare(context_, normed_.get(), width, wanted, width,
                       RepresentationFor(options_.activations, head->type()));
  MatMul(context_, activations_, options_.activations, *head, logits,
         spec.vocab_size);
}

}  // namespace lanewise
