#include "runtime/embed.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/printable.h"
#include "model/format/safetensors.h"
#include "simd/activation.h"
#include "simd/pooling.h"
#include "simd/status_macros.h"
#include "simd/types.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

constexpr size_t kMaxBatchTokens = size_t{1} << 16;
constexpr size_t kDenseRows = 256;  // that go through a dense layer together

RowPooling ToRows(EmbedPooling pooling) {
  switch (pooling) {
    case EmbedPooling::kFirst:
      return RowPooling::kFirst;
    case EmbedPooling::kLast:
      return RowPooling::kLast;
    case EmbedPooling::kMax:
      return RowPooling::kMax;
    case EmbedPooling::kMeanSqrtLength:
      return RowPooling::kMeanSqrtLength;
    case EmbedPooling::kWeightedMean:
      return RowPooling::kWeightedMean;
    case EmbedPooling::kModel:
    case EmbedPooling::kMean:
      break;
  }
  return RowPooling::kMean;
}

// The tensor as floats; its shape must be `shape`.
absl::StatusOr<std::vector<float>> ReadFloats(
    const TensorStore& store, absl::string_view name, const std::string& path,
    const std::vector<uint64_t>& shape) {
  LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor, store.Require(name, path));
  const DTypeTraits& traits = Traits(tensor->type);
  if (tensor->shape != shape || traits.decode == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", name, ": expected weights [",
                     absl::StrJoin(shape, ", "), "], found ", traits.name, " [",
                     absl::StrJoin(tensor->shape, ", "), "]"));
  }
  std::vector<uint8_t> bytes(tensor->data.size());
  LANEWISE_RETURN_IF_ERROR(store.Read(*tensor, 0, absl::MakeSpan(bytes)));
  std::vector<float> values(tensor->elements());
  traits.decode(bytes.data(), values.size(), values.data());
  return values;
}

}  // namespace

struct Embedder::Plan {
  std::vector<EmbedPooling> pooling;
  std::string prompt;
  size_t skipped = 0;  // rows of the prompt, which mean and maximum leave out
  bool truncate = true;
  size_t around = 0;  // tokens that stand around a text
  bool normalize = false;
  size_t pooled_width = 0;
  size_t width = 0;  // of the result
};

absl::StatusOr<std::unique_ptr<Embedder>> Embedder::Create(
    const Checkpoint& checkpoint, const SessionShared& shared,
    BatchRunner* runner) {
  auto embedder = absl::WrapUnique(new Embedder(shared, runner));
  embedder->path_ = checkpoint.path();
  LANEWISE_ASSIGN_OR_RETURN(embedder->config_,
                            ReadEmbedConfig(checkpoint, runner->model().spec(),
                                            shared.prompts->tokenizer()));
  EmbedConfig& config = embedder->config_;
  config.limit.max_tokens =
      std::min(config.limit.max_tokens, shared.context_length);
  if (!config.pooling_stated) {
    embedder->notices_.push_back(absl::StrCat(
        "pooling: the model's files do not say how its rows become one vector; "
        "taking ",
        config.pooling.front() == EmbedPooling::kLast ? "the last row"
                                                      : "their mean"));
  }
  if (config.limit.lowercase) {
    embedder->notices_.push_back(absl::StrCat(
        embedder->path_,
        "/sentence_bert_config.json: do_lower_case is not supported and was "
        "ignored; a tokenizer that minds case needs texts in lowercase"));
  }
  size_t width = config.pooling.size() * runner->model().spec().width;
  for (const EmbedDenseConfig& dense : config.dense) {
    if (dense.in != width) {
      return absl::InvalidArgumentError(
          absl::StrCat(dense.file, ": in_features: expected ", width,
                       " (what comes before it), found ", dense.in));
    }
    LANEWISE_RETURN_IF_ERROR(embedder->LoadDense(dense));
    width = dense.out;
  }
  return embedder;
}

absl::Status Embedder::LoadDense(const EmbedDenseConfig& config) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(config.file);
  if (!file.ok()) {
    return absl::Status(
        file.status().code(),
        absl::StrCat("dense layer after pooling: expected safetensors: ",
                     file.status().message()));
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> weights,
                            ReadFloats(file->store(), "linear.weight",
                                       config.file, {config.out, config.in}));
  Dense dense;
  dense.activation = config.activation;
  if (config.bias) {
    LANEWISE_ASSIGN_OR_RETURN(
        dense.bias,
        ReadFloats(file->store(), "linear.bias", config.file, {config.out}));
  }
  std::vector<const uint8_t*> rows;
  for (size_t row = 0; row < config.out; ++row) {
    rows.push_back(
        reinterpret_cast<const uint8_t*>(weights.data() + row * config.in));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      dense.weights, Pack(*shared_.context, DType::kF32, config.in, rows));
  dense_.push_back(std::move(dense));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Embedder::PromptOf(
    const EmbedRequest& request) const {
  if (request.prompt.has_value()) {
    if (!request.prompt_name.empty()) {
      return absl::InvalidArgumentError(
          "request: expected one of prompt and prompt_name, found both");
    }
    return *request.prompt;
  }
  const std::string& name = request.prompt_name.empty() ? config_.default_prompt
                                                        : request.prompt_name;
  if (name.empty()) return std::string();
  std::string names;
  for (const auto& [known, text] : config_.prompts) {
    if (known == name) return text;
    absl::StrAppend(&names, names.empty() ? "" : ", ", Printable(known));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "prompt_name: expected ",
      names.empty() ? "none, since the model's files have no prompts"
                    : absl::StrCat("one of ", names),
      ", found \"", Printable(name), "\""));
}

absl::StatusOr<Embedder::Plan> Embedder::MakePlan(
    const EmbedRequest& request) const {
  if (request.batch_tokens == 0 || request.batch_tokens > kMaxBatchTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_tokens: expected 1 to ", kMaxBatchTokens,
                     ", found ", request.batch_tokens));
  }
  Plan plan;
  plan.pooling = config_.pooling;
  if (request.pooling != EmbedPooling::kModel) {
    plan.pooling = {request.pooling};
  }
  plan.pooled_width = plan.pooling.size() * runner_.model().spec().width;
  if (!dense_.empty() && plan.pooled_width != dense_.front().weights.cols()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "pooling: expected the model's own, since its dense layer reads ",
        dense_.front().weights.cols(), " values, found one that gives ",
        plan.pooled_width));
  }
  const size_t full = output_width(plan.pooled_width);
  if (request.dimensions > full) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimensions: expected at most ", full,
                     " (the model's vectors), found ", request.dimensions));
  }
  plan.width = request.dimensions > 0 ? request.dimensions : full;
  plan.normalize = request.normalize.value_or(config_.normalize);
  plan.truncate = request.truncate;
  LANEWISE_ASSIGN_OR_RETURN(plan.prompt, PromptOf(request));
  const Tokenizer& tokenizer = shared_.prompts->tokenizer();
  plan.around = tokenizer.Assemble({}, nullptr).ids.size();
  if (plan.around >= config_.limit.max_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": expected room for a text beside the ", plan.around,
        " tokens that the tokenizer puts around it, found a limit of ",
        config_.limit.max_tokens));
  }
  if (!config_.pool_prompt && !plan.prompt.empty()) {
    EncodeOptions options;
    options.truncate = options.pad = false;
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                              tokenizer.Encode(plan.prompt, options));
    // As the reference counts them: without the token that ends a text.
    plan.skipped = ids.size();
    if (!ids.empty() && tokenizer.IsSpecial(ids.back())) --plan.skipped;
  }
  return plan;
}

absl::StatusOr<BatchRunner::Text> Embedder::Tokenize(
    absl::string_view text, const Plan& plan, size_t index,
    EmbedResult* result) const {
  const Tokenizer& tokenizer = shared_.prompts->tokenizer();
  EncodeOptions options;
  options.add_special_tokens = options.truncate = options.pad = false;
  LANEWISE_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      tokenizer.Encode(absl::StrCat(plan.prompt, text), options));
  const size_t room = config_.limit.max_tokens - plan.around;
  if (ids.size() > room) {
    if (!plan.truncate) {
      return absl::OutOfRangeError(absl::StrCat(
          "text ", index, ": expected at most ", config_.limit.max_tokens,
          " tokens (the model's limit), found ", ids.size() + plan.around));
    }
    ++result->truncated;
    if (config_.limit.truncate_left) {
      ids.erase(ids.begin(), ids.end() - static_cast<ptrdiff_t>(room));
    } else {
      ids.resize(room);
    }
  }
  Encoding encoding = tokenizer.Assemble(ids, nullptr);
  if (encoding.ids.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "text ", index, ": expected at least one token, found none"));
  }
  BatchRunner::Text out;
  out.ids = std::move(encoding.ids);
  if (runner_.model().spec().token_types > 1) {
    out.type_ids = std::move(encoding.type_ids);
  }
  result->tokens.push_back(out.ids.size());
  return out;
}

absl::StatusOr<BatchRunner::Text> Embedder::CheckVectors(
    const std::vector<float>& vectors, size_t index,
    EmbedResult* result) const {
  const size_t width = runner_.model().spec().token_width();
  if (vectors.empty() || vectors.size() % width != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "vectors ", index, ": expected whole rows of ", width,
        " values (the model's embedding), found ", vectors.size(), " values"));
  }
  const size_t rows = vectors.size() / width;
  if (rows > config_.limit.max_tokens) {
    return absl::OutOfRangeError(absl::StrCat(
        "vectors ", index, ": expected at most ", config_.limit.max_tokens,
        " rows (the model's limit), found ", rows));
  }
  BatchRunner::Text out;
  out.vectors = vectors;
  result->tokens.push_back(rows);
  return out;
}

absl::StatusOr<std::vector<BatchRunner::Text>> Embedder::Inputs(
    const EmbedRequest& request, const Plan& plan, EmbedResult* result) const {
  if (!request.texts.empty() && !request.vectors.empty()) {
    return absl::InvalidArgumentError(
        "request: expected one of texts and vectors, found both");
  }
  std::vector<BatchRunner::Text> inputs;
  inputs.reserve(request.texts.size() + request.vectors.size());
  for (size_t i = 0; i < request.texts.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(BatchRunner::Text text,
                              Tokenize(request.texts[i], plan, i, result));
    inputs.push_back(std::move(text));
  }
  for (size_t i = 0; i < request.vectors.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(BatchRunner::Text input,
                              CheckVectors(request.vectors[i], i, result));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

absl::StatusOr<EmbedResult> Embedder::Embed(
    const EmbedRequest& request, const EmbedCallbacks& callbacks) const {
  const auto start = std::chrono::steady_clock::now();
  const ScopedFloatEnvironment environment;
  LANEWISE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(request));
  EmbedResult result;
  result.max_tokens = config_.limit.max_tokens;
  if (request.pooling == EmbedPooling::kModel) result.notices = notices_;
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<BatchRunner::Text> texts,
                            Inputs(request, plan, &result));
  const size_t width = runner_.model().spec().width;
  std::vector<float> pooled(texts.size() * plan.pooled_width);
  const auto pool = [&](size_t index, absl::Span<const float> rows) {
    float* out = pooled.data() + index * plan.pooled_width;
    const size_t count = rows.size() / width;
    const size_t prompt = request.vectors.empty() ? plan.skipped : 0;
    for (const EmbedPooling pooling : plan.pooling) {
      // The first row counts as it is, prompt or not.
      const size_t skipped =
          pooling == EmbedPooling::kFirst ? 0 : std::min(prompt, count - 1);
      Pool(shared_.context->target(), ToRows(pooling),
           {rows.data() + skipped * width, count - skipped, width, width}, out);
      out += width;
    }
    return absl::OkStatus();
  };
  BatchRunner::Options options;
  options.batch_tokens = request.batch_tokens;
  options.on_progress = callbacks.on_progress;
  options.should_cancel = callbacks.should_cancel;
  LANEWISE_RETURN_IF_ERROR(runner_.Run(texts, options, pool));
  LANEWISE_RETURN_IF_ERROR(Finish(plan, std::move(pooled), &result));
  if (result.truncated > 0) {
    result.notices.push_back(absl::StrCat(
        result.truncated, " of ", texts.size(), " texts had more than ",
        config_.limit.max_tokens, " tokens (the model's limit) and were cut"));
  }
  result.seconds = SecondsSince(start);
  return result;
}

absl::Status Embedder::ApplyDense(size_t texts,
                                  std::vector<float>* pooled) const {
  const Context& context = *shared_.context;
  for (const Dense& dense : dense_) {
    const size_t in = dense.weights.cols(), out = dense.weights.rows();
    std::vector<float> next(texts * out);
    Activations activations;
    LANEWISE_RETURN_IF_ERROR(
        activations.Reserve(std::min(texts, kDenseRows), in));
    for (size_t row = 0; row < texts; row += kDenseRows) {
      activations.Prepare(context, pooled->data() + row * in, in,
                          std::min(kDenseRows, texts - row), in,
                          Representation::kF32);
      MatMulEpilogue epilogue;
      if (!dense.bias.empty()) epilogue.bias = dense.bias.data();
      MatMul(context, activations, ActivationType::kF32, dense.weights,
             next.data() + row * out, out, epilogue);
    }
    Activate(context.target(), dense.activation, next.data(), next.size());
    *pooled = std::move(next);
  }
  return absl::OkStatus();
}

// Dense layers, then the first dimensions, then length one.
absl::Status Embedder::Finish(const Plan& plan, std::vector<float> pooled,
                              EmbedResult* result) const {
  const size_t texts = result->tokens.size();
  const size_t full = output_width(plan.pooled_width);
  LANEWISE_RETURN_IF_ERROR(ApplyDense(texts, &pooled));
  const Target& target = shared_.context->target();
  result->width = plan.width;
  for (size_t i = 0; i < texts; ++i) {
    float* vector = pooled.data() + i * plan.width;
    std::memmove(vector, pooled.data() + i * full, plan.width * sizeof(float));
    if (!AllFinite(target, vector, plan.width)) {
      return absl::InternalError(absl::StrCat(
          "text ", i, ": its vector is not finite (infinities or NaN)"));
    }
    if (plan.normalize) L2Normalize(target, vector, plan.width);
  }
  pooled.resize(texts * plan.width);
  result->vectors = std::move(pooled);
  return absl::OkStatus();
}

}  // namespace lanewise
