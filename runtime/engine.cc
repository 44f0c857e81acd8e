#include "lanewise/engine.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "model/format/checkpoint.h"
#include "model/model.h"
#include "runtime/batch_runner.h"
#include "runtime/classify.h"
#include "runtime/embed.h"
#include "runtime/prompt.h"
#include "runtime/session.h"
#include "runtime/translate.h"
#include "simd/context.h"
#include "simd/status_macros.h"
#include "simd/target.h"
#include "simd/types.h"

namespace lanewise {
namespace {

CacheType ToCacheType(CachePrecision precision) {
  switch (precision) {
    case CachePrecision::kF32:
      return CacheType::kF32;
    case CachePrecision::kBF16:
      return CacheType::kBF16;
    case CachePrecision::kF16:
      break;
  }
  return CacheType::kF16;
}

std::optional<DType> ToDType(WeightPrecision precision) {
  switch (precision) {
    case WeightPrecision::kBF16:
      return DType::kBF16;
    case WeightPrecision::kQ8_0:
      return DType::kQ8_0;
    case WeightPrecision::kQ6_K:
      return DType::kQ6_K;
    case WeightPrecision::kQ4_K:
      return DType::kQ4_K;
    case WeightPrecision::kQ4_1:
      return DType::kQ4_1;
    case WeightPrecision::kQ4_0:
      return DType::kQ4_0;
    case WeightPrecision::kAsStored:
      break;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<Context>> MakeContext(
    const EngineOptions& options) {
  Context::Options context;
  context.threads = options.threads;
  if (!options.target.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(context.target, Target::FromName(options.target));
  }
  return Context::Create(context);
}

class LoadedEngine : public Engine {
 public:
  static absl::StatusOr<std::unique_ptr<Engine>> Load(
      const std::string& path, const EngineOptions& options) {
    auto engine = absl::WrapUnique(new LoadedEngine);
    LANEWISE_ASSIGN_OR_RETURN(engine->context_, MakeContext(options));
    LANEWISE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint,
                              Checkpoint::Open(path));
    LANEWISE_ASSIGN_OR_RETURN(engine->prompts_,
                              PromptBuilder::Load(*checkpoint));
    LANEWISE_ASSIGN_OR_RETURN(
        engine->model_,
        Model::Load(*checkpoint, *engine->context_,
                    {options.load_progress, ToDType(options.weights)}));
    engine->path_ = path;
    engine->notices_ = engine->model_->notices();
    const ModelSpec& spec = engine->model_->spec();
    LANEWISE_RETURN_IF_ERROR(engine->CheckVocabulary(path));

    SessionShared& shared = engine->shared_;
    shared.prompts = engine->prompts_.get();
    shared.model = engine->model_.get();
    shared.context = engine->context_.get();
    if (!spec.bidirectional()) {
      shared.pool = KvPagePool::Create(spec, ToCacheType(options.cache),
                                       options.max_cache_bytes);
    }
    shared.activations = options.activations == ActivationPrecision::kF32
                             ? ActivationType::kF32
                             : ActivationType::kNative;
    shared.context_length = spec.max_positions;
    if (options.context_length > spec.max_positions) {
      engine->notices_.push_back(absl::StrCat(
          "context length: ", options.context_length,
          " asked for, reduced to the model's ", spec.max_positions));
    } else if (options.context_length > 0) {
      shared.context_length = options.context_length;
    }
    shared.prefill_chunk =
        std::clamp<size_t>(options.prefill_chunk, 1, shared.context_length);
    engine->runner_ = std::make_unique<BatchRunner>(shared);
    engine->embedder_ =
        Embedder::Create(*checkpoint, shared, engine->runner_.get());
    engine->classifier_ =
        Classifier::Create(*checkpoint, shared, engine->runner_.get());
    if (!spec.encoder.empty()) {
      LANEWISE_ASSIGN_OR_RETURN(
          engine->translator_,
          Translator::Create(*checkpoint, shared, options));
      const std::vector<std::string>& more = engine->translator_->notices();
      engine->notices_.insert(engine->notices_.end(), more.begin(), more.end());
    }
    return engine;
  }

  absl::StatusOr<std::unique_ptr<Session>> NewSession() override {
    LANEWISE_RETURN_IF_ERROR(CheckContinuesText());
    LANEWISE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                              GenerationSession::Create(shared_));
    return session;
  }

  absl::StatusOr<GenerateResult> Generate(
      const GenerateRequest& request,
      const GenerateCallbacks& callbacks) override {
    LANEWISE_RETURN_IF_ERROR(CheckContinuesText());
    LANEWISE_ASSIGN_OR_RETURN(const auto session,
                              GenerationSession::Create(shared_));
    return session->Generate(request, callbacks);
  }

  absl::StatusOr<ScoreResult> Score(const ScoreRequest& request,
                                    const ScoreCallbacks& callbacks) override {
    LANEWISE_RETURN_IF_ERROR(CheckContinuesText());
    LANEWISE_ASSIGN_OR_RETURN(const auto session,
                              GenerationSession::Create(shared_));
    return session->Score(request, callbacks);
  }

  absl::StatusOr<EmbedResult> Embed(const EmbedRequest& request,
                                    const EmbedCallbacks& callbacks) override {
    if (!embedder_.ok()) return embedder_.status();
    return (*embedder_)->Embed(request, callbacks);
  }

  absl::StatusOr<ClassifyResult> Classify(
      const ClassifyRequest& request,
      const ClassifyCallbacks& callbacks) override {
    if (!classifier_.ok()) return classifier_.status();
    return (*classifier_)->Classify(request, callbacks);
  }

  absl::StatusOr<TranslateResult> Translate(
      const TranslateRequest& request,
      const TranslateCallbacks& callbacks) override {
    LANEWISE_RETURN_IF_ERROR(CheckTranslates());
    return translator_->Translate(request, callbacks);
  }

  absl::StatusOr<TranslateOptions> TranslateDefaults(
      const TranslateRequest& request) const override {
    LANEWISE_RETURN_IF_ERROR(CheckTranslates());
    return translator_->Defaults(request);
  }

  absl::StatusOr<std::string> RenderChat(
      absl::Span<const Message> messages) const override {
    LANEWISE_ASSIGN_OR_RETURN(RenderedPrompt prompt,
                              prompts_->Render(messages));
    return std::move(prompt.text);
  }

  absl::StatusOr<std::vector<int32_t>> PromptIds(
      const GenerateRequest& request) const override {
    return prompts_->Ids(request);
  }

  absl::StatusOr<std::vector<float>> Logits(
      absl::Span<const int32_t> ids) override {
    LANEWISE_RETURN_IF_ERROR(CheckContinuesText());
    LANEWISE_ASSIGN_OR_RETURN(const auto session,
                              GenerationSession::Create(shared_));
    return session->AllLogits(ids);
  }

  std::string Decode(absl::Span<const int32_t> ids) const override {
    DecodeOptions options;
    options.skip_special_tokens = true;
    return prompts_->tokenizer().Decode(ids, options);
  }

  std::string TokenText(int32_t id) const override {
    return prompts_->tokenizer().TokenText(id);
  }

  bool has_chat_template() const override {
    return prompts_->has_chat_template();
  }
  size_t vocab_size() const override { return model_->spec().vocab_size; }
  size_t context_length() const override { return shared_.context_length; }
  size_t threads() const override { return context_->threads(); }
  absl::string_view target() const override {
    return context_->target().name();
  }
  size_t weight_bytes() const override { return model_->weight_bytes(); }
  const std::vector<std::string>& notices() const override { return notices_; }

 private:
  LoadedEngine() = default;

  absl::Status CheckContinuesText() const {
    const ModelSpec& spec = model_->spec();
    if (!spec.bidirectional() && spec.encoder.empty()) return absl::OkStatus();
    absl::string_view fits = "Embed fits it";
    if (!spec.encoder.empty()) {
      fits = "Translate fits it";
    } else if (spec.head.task > HeadTask::kPooled ||
               spec.head.task == HeadTask::kMaskedToken) {
      fits = "Classify and Embed fit it";
    }
    return absl::FailedPreconditionError(absl::StrCat(
        path_, ": expected a model that continues text, found ",
        spec.encoder.empty() ? "an encoder (" : "an encoder-decoder (",
        spec.family, "): ", fits));
  }

  absl::Status CheckTranslates() const {
    if (translator_ != nullptr) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(path_,
                     ": expected an encoder-decoder to translate with, "
                     "found another kind (",
                     model_->spec().family, ")"));
  }

  // Ids of the tokenizer that the model has no row for would be errors in the
  // middle of a request.
  absl::Status CheckVocabulary(const std::string& path) const {
    const Tokenizer& tokenizer = prompts_->tokenizer();
    const size_t rows = model_->spec().vocab_size;
    if (tokenizer.vocab_size() > rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tokenizer: expected at most ", rows,
          " tokens (rows of the embedding), found ", tokenizer.vocab_size()));
    }
    // A template of the tokenizer may name ids of its own.
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> around_nothing,
                              tokenizer.Encode("", {}));
    for (const int32_t id : around_nothing) {
      if (id >= 0 && static_cast<size_t>(id) < rows) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": tokenizer: ids that it puts around a text: expected 0 to ",
          rows - 1, ", found ", id));
    }
    return absl::OkStatus();
  }

  // Members are destroyed in reverse order: the model before its threads.
  std::unique_ptr<Context> context_;
  std::unique_ptr<PromptBuilder> prompts_;
  std::unique_ptr<const Model> model_;
  SessionShared shared_;
  std::unique_ptr<BatchRunner> runner_;
  // Errors, as of modules that are not known, only matter to who calls them.
  absl::StatusOr<std::unique_ptr<Embedder>> embedder_ =
      absl::UnknownError("not loaded");
  absl::StatusOr<std::unique_ptr<Classifier>> classifier_ =
      absl::UnknownError("not loaded");
  std::unique_ptr<Translator> translator_;  // null without an encoder
  std::string path_;
  std::vector<std::string> notices_;
};

}  // namespace

absl::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEnd:
      return "end";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "?";
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Load(
    const std::string& path, const EngineOptions& options) {
  return LoadedEngine::Load(path, options);
}

std::vector<std::string> AvailableTargets() {
  std::vector<std::string> names;
  for (const Target& target : Target::Available()) {
    names.emplace_back(target.name());
  }
  return names;
}

}  // namespace lanewise
