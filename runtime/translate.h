// What Engine::Translate does: from a request to ids, languages and settings,
// group by group through a Seq2SeqSession.
#ifndef LANEWISE_RUNTIME_TRANSLATE_H_
#define LANEWISE_RUNTIME_TRANSLATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "lanewise/translation.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "runtime/language_tokens.h"
#include "runtime/seq2seq_session.h"
#include "runtime/session.h"
#include "runtime/translate_config.h"

namespace lanewise {

class Translator {
 public:
  // `shared`, whose model is an encoder-decoder, must outlive it.
  static absl::StatusOr<std::unique_ptr<Translator>> Create(
      const Checkpoint& checkpoint, const SessionShared& shared,
      const EngineOptions& options);

  // As engine.h says. Thread-safe.
  absl::StatusOr<TranslateResult> Translate(
      const TranslateRequest& request,
      const TranslateCallbacks& callbacks) const;
  absl::StatusOr<TranslateOptions> Defaults(
      const TranslateRequest& request) const;

  const std::vector<std::string>& notices() const { return config_.notices; }

 private:
  // How a request's languages and task enter.
  struct Route {
    std::optional<int32_t> marker;  // before the text, names the target
    std::optional<int32_t> source;  // around the text or before it
    std::optional<int32_t> target;  // first token, or start of the decoder
    const TranslateTask* task = nullptr;
  };

  Translator(const SessionShared& shared, TranslateConfig config);

  absl::StatusOr<Route> FindRoute(const TranslateRequest& request) const;
  absl::Status RouteTarget(const TranslateRequest& request, Route* route) const;
  absl::Status RouteSource(const TranslateRequest& request, Route* route) const;
  const TranslateOptions& DefaultsOf(const Route& route) const {
    return route.task != nullptr ? route.task->options : config_.defaults;
  }
  absl::StatusOr<Seq2SeqJob> MakeJob(const TranslateRequest& request,
                                     const Route& route) const;
  absl::Status PlaceTarget(const TranslateRequest& request, const Route& route,
                           TranslateOptions* options) const;
  absl::StatusOr<std::vector<int32_t>> DecoderPrompt(
      const TranslateRequest& request, const TranslateOptions& options) const;
  absl::StatusOr<std::vector<std::vector<int32_t>>> Sources(
      const TranslateRequest& request, const Route& route) const;
  absl::StatusOr<std::vector<int32_t>> Tokenize(absl::string_view text,
                                                const TranslateRequest& request,
                                                const Route& route) const;
  absl::Status CheckSource(size_t input, absl::Span<const int32_t> ids) const;

  const SessionShared& shared_;
  TranslateConfig config_;
  LanguageTokens languages_;
  bool language_around_text_ = false;  // the tokenizer puts one there
  size_t max_source_ = 0;              // tokens of an input
  std::shared_ptr<KvPagePool> memory_pool_;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_TRANSLATE_H_
