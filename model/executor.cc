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

// The largest sizes of all layers.
struct Widths {
  size_t qkv = 0, attended = 0, ffn = 0, hidden = 0, experts = 0;
  size_t row = 0;     // of the residual stream and what stands in for it
  size_t memory = 0;  // of the encoder's rows
  size_t convolved = 0, kernel = 0;
};

Widths WidestOf(const ModelSpec& spec) {
  Widths widths;
  widths.row = std::max(spec.width, spec.token_width());
  if (spec.head.transform.has_value()) {
    widths.row = std::max(widths.row, spec.head.transform->width);
  }
  if (spec.convolution.has_value()) {
    widths.convolved = spec.width;
    widths.kernel = spec.width * spec.convolution->kernel;
  }
  if (!spec.encoder.empty()) widths.memory = spec.encoder.front().width;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.cross.has_value()) {
      const AttentionSpec& cross = layer.cross->attention;
      widths.qkv = std::max({widths.qkv, cross.query_width(),
                             cross.key_width() + cross.value_width()});
      widths.attended = std::max(widths.attended, cross.output_width());
    }
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

SinusoidSpec SinusoidsOf(const ModelSpec& spec) {
  using Kind = PositionSpec::Kind;
  SinusoidSpec sinusoids;
  sinusoids.width = spec.input_width();
  if (spec.positions.kind == Kind::kSinusoidalInterleaved) {
    sinusoids.layout = SinusoidLayout::kInterleaved;
  }
  if (spec.positions.kind == Kind::kSinusoidalHalvesClosed) {
    sinusoids.spacing = SinusoidSpacing::kClosed;
  }
  return sinusoids;
}

}  // namespace

Executor::Executor(const Model& model, const Context& context, Options options)
    : model_(model), context_(context), options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(
    const Model& model, const Context& context, Options options) {
  options.max_rows = std::max<size_t>(options.max_rows, 1);
  auto executor =
      absl::WrapUnique(new Executor(model, context, std::move(options)));
  const ModelSpec& spec = model.spec();
  if (spec.bidirectional()) {
    executor->transient_pool_ = KvPagePool::CreateForOneLayer(
        spec, executor->options_.transient_cache, ~size_t{0});
  }
  if (spec.positions.kind > PositionSpec::Kind::kLearned) {
    executor->sinusoids_.emplace(SinusoidsOf(spec));
    executor->sinusoid_row_.resize(spec.input_width());
  }
  LANEWISE_RETURN_IF_ERROR(executor->AllocateBuffers());
  return executor;
}

absl::Status Executor::Reserve(size_t rows) {
  if (rows <= options_.max_rows) return absl::OkStatus();
  options_.max_rows = rows;
  return AllocateBuffers();
}

absl::Status Executor::AllocateBuffers() {
  const ModelSpec& spec = model_.spec();
  const Widths widths = WidestOf(spec);
  size_t rope = 0, half = 0;
  rope_offsets_.clear();
  for (size_t i = 0; i < spec.ropes.size(); ++i) {
    rope_offsets_.push_back(rope * options_.max_rows);
    rope += model_.rope(i).half();
    half = std::max(half, model_.rope(i).half());
  }
  const size_t moe = widths.experts > 0 ? spec.width : 0;
  const std::pair<Buffer*, size_t> buffers[] = {{&residual_, widths.row},
                                                {&normed_, widths.row},
                                                {&qkv_, widths.qkv},
                                                {&attended_, widths.attended},
                                                {&hidden_, widths.hidden},
                                                {&cos_, rope},
                                                {&sin_, rope},
                                                {&mixed_, moe},
                                                {&expert_in_, moe},
                                                {&expert_out_, moe},
                                                {&router_, widths.experts},
                                                {&convolved_, widths.convolved},
                                                {&kernel_rows_, widths.kernel}};
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
      options_.max_rows, std::max({widths.row, widths.memory, widths.attended,
                                   widths.ffn, widths.kernel})));
  sequences_.reserve(options_.max_rows);
  rope_scratch_.resize(half);
  routes_.resize(widths.experts);
  for (std::vector<Routed>& route : routes_) route.reserve(options_.max_rows);
  if (widths.experts > 0) shared_routes_.reserve(options_.max_rows);
  return absl::OkStatus();
}

size_t Executor::RowsOf(const Entry& entry) const {
  return entry.vectors.empty()
             ? entry.ids.size()
             : entry.vectors.size() / model_.spec().token_width();
}

absl::Status Executor::CheckTokens(const Entry& entry) const {
  const ModelSpec& spec = model_.spec();
  if (entry.vectors.size() % spec.token_width() != 0 ||
      (!entry.vectors.empty() && !entry.ids.empty())) {
    return absl::InvalidArgumentError(
        absl::StrCat("input: expected ids or whole vectors of ",
                     spec.token_width(), " values, found ", entry.ids.size(),
                     " ids and ", entry.vectors.size(), " values"));
  }
  if (spec.input != InputKind::kTokens && !entry.ids.empty()) {
    return absl::InvalidArgumentError(
        "input: expected vectors, since the model has no token embedding, "
        "found ids");
  }
  for (const int32_t id : entry.ids) {
    if (id < 0 || static_cast<size_t>(id) >= spec.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token id: expected 0 to ", spec.vocab_size - 1, ", found ", id));
    }
  }
  if (entry.type_ids.empty()) return absl::OkStatus();
  if (entry.type_ids.size() != RowsOf(entry)) {
    return absl::InvalidArgumentError(absl::StrCat("token types: expected ",
                                                   RowsOf(entry), ", found ",
                                                   entry.type_ids.size()));
  }
  const size_t types = std::max<size_t>(spec.token_types, 1);
  for (const int32_t type : entry.type_ids) {
    if (type < 0 || static_cast<size_t>(type) >= types) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token type: expected 0 to ", types - 1, ", found ", type));
    }
  }
  return absl::OkStatus();
}

absl::Status Executor::CheckEntry(const Entry& entry) const {
  const ModelSpec& spec = model_.spec();
  if ((entry.cache == nullptr) != spec.bidirectional()) {
    return absl::InvalidArgumentError(
        spec.bidirectional()
            ? "KV cache: expected none for a bidirectional model, found one"
            : "KV cache: expected one for a causal model, found none");
  }
  if (!spec.encoder.empty() && entry.memory == nullptr) {
    return absl::InvalidArgumentError(
        "memory: expected the encoder's keys and values, found none");
  }
  const size_t first = entry.cache == nullptr ? 0 : entry.cache->length();
  const size_t end = first + RowsOf(entry);
  if (end > spec.max_positions) {
    return absl::OutOfRangeError(
        absl::StrCat("sequence: expected at most ", spec.max_positions,
                     " positions (the model's limit), found ", end));
  }
  if (entry.cache != nullptr && end > entry.cache->capacity()) {
    return absl::OutOfRangeError(absl::StrCat("KV cache: expected room for ",
                                              end, " positions, found ",
                                              entry.cache->capacity()));
  }
  return CheckTokens(entry);
}

absl::Status Executor::Check(absl::Span<const Entry> batch) const {
  size_t rows = 0;
  for (const Entry& entry : batch) {
    LANEWISE_RETURN_IF_ERROR(CheckEntry(entry));
    rows += RowsOf(entry);
  }
  if (rows > options_.max_rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "batch: expected at most ", options_.max_rows, " rows, found ", rows));
  }
  return absl::OkStatus();
}

absl::Status Executor::Forward(absl::Span<const Entry> batch,
                               const Outputs& outputs) {
  LANEWISE_RETURN_IF_ERROR(Check(batch));
  const ScopedFloatEnvironment environment;
  rows_ = 0;
  for (const Entry& entry : batch) rows_ += RowsOf(entry);
  if (rows_ == 0) return absl::OkStatus();
  if (transient_pool_ != nullptr) {
    LANEWISE_RETURN_IF_ERROR(ReserveTransient(batch));
  }
  Embed(batch);
  FillRope(batch);
  if (options_.observer) options_.observer(0, residual_.get());
  const bool convolution = model_.spec().convolution.has_value();
  if (convolution) KeepConvolved();
  for (size_t layer = 0; layer < model_.spec().layers.size(); ++layer) {
    RunLayer(layer, batch);
    if (convolution && layer == 0) AddConvolution(batch);
    if (options_.observer) options_.observer(layer + 1, residual_.get());
  }
  for (const Entry& entry : batch) {
    if (entry.cache != nullptr) entry.cache->Advance(RowsOf(entry));
  }
  RunHead(batch, outputs);
  return absl::OkStatus();
}

void Executor::RunLayer(size_t layer, absl::Span<const Entry> batch) {
  const LayerSpec& spec = model_.spec().layers[layer];
  const LayerWeights& weights = model_.layer_weights(layer);
  const size_t attended = spec.attention.output_width();
  const float* input =
      NormedInput(spec.attention_norms.input, weights.attention_norms.input);
  RunAttention(layer, batch, input);
  // A parallel one reads what attention reads, before that is added.
  if (spec.parallel) RunFeedForward(layer, input);
  AddSublayer(spec.attention_norms, weights.attention_norms,
              &weights.attention_output,
              {attended_.get(), attended, rows_, attended});
  if (spec.cross.has_value()) {
    const AttentionSpec& cross = spec.cross->attention;
    input = NormedInput(spec.cross->norms.input, weights.cross.norms.input);
    RunCrossAttention(layer, batch, input);
    AddSublayer(
        spec.cross->norms, weights.cross.norms, &weights.cross.output,
        {attended_.get(), cross.output_width(), rows_, cross.output_width()});
  }
  if (!spec.parallel) RunFeedForward(layer, nullptr);
  AddFeedForward(layer);
}

// hidden_ or mixed_ = feed-forward of `shared_input` or, without it or with a
// norm of its own, of the residual stream.
void Executor::RunFeedForward(size_t layer, const float* shared_input) {
  const LayerSpec& spec = model_.spec().layers[layer];
  const LayerWeights& weights = model_.layer_weights(layer);
  const float* input = shared_input;
  if (input == nullptr || spec.ffn_norms.input.has_value()) {
    input = NormedInput(spec.ffn_norms.input, weights.ffn_norms.input);
  }
  RunFfn(layer, input);
}

void Executor::AddFeedForward(size_t layer) {
  const LayerSpec& spec = model_.spec().layers[layer];
  const LayerWeights& weights = model_.layer_weights(layer);
  const size_t width = model_.spec().width;
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

const float* Executor::NormedInput(const std::optional<NormSpec>& spec,
                                   const NormWeights& weights) {
  if (!spec.has_value()) return residual_.get();
  Norm(*spec, weights, residual_.get(), {rows_, model_.spec().width},
       normed_.get());
  return normed_.get();
}

void Executor::Norm(const NormSpec& spec, const NormWeights& weights,
                    const float* x, const RowShape& shape, float* out) {
  const size_t width = shape.width;
  const float* weight =
      weights.weight.empty() ? nullptr : weights.weight.data();
  const float* bias = weights.bias.empty() ? nullptr : weights.bias.data();
  ForRows(shape.rows, [&](size_t row) {
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
    Norm(*norms.output, norm_weights.output, output, {rows_, width},
         normed_.get());
    output = normed_.get();
  }
  if (output != nullptr) {
    AddTo(context_.target(), output, rows_ * width, residual_.get());
  }
  if (norms.after.has_value()) {
    Norm(*norms.after, norm_weights.after, residual_.get(), {rows_, width},
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

}  // namespace lanewise
