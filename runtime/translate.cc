#include "runtime/translate.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/format/printable.h"
#include "runtime/sampler.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

absl::Status Check(const TranslateRequest& request) {
  if (request.texts.empty() == request.ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: expected one of texts and ids, found ",
                     request.texts.empty() ? "neither" : "both"));
  }
  if (request.texts.empty() && !request.source_language.empty()) {
    return absl::InvalidArgumentError(
        "source_language: expected with texts only: ids hold all tokens");
  }
  if (!request.decoder_prompt.empty() && !request.decoder_prompt_ids.empty()) {
    return absl::InvalidArgumentError(
        "request: expected one of decoder_prompt and decoder_prompt_ids, found "
        "both");
  }
  if (request.batch == 0) {
    return absl::InvalidArgumentError("batch: expected at least 1, found 0");
  }
  return absl::OkStatus();
}

EncodeOptions WholeText(const TranslateRequest& request) {
  EncodeOptions options;
  options.parse_special_tokens = request.parse_special;
  options.truncate = false;
  options.pad = false;
  return options;
}

std::string Names(const std::vector<TranslateTask>& tasks) {
  return absl::StrJoin(tasks, ", ",
                       [](std::string* out, const TranslateTask& task) {
                         absl::StrAppend(out, Printable(task.name));
                       });
}

}  // namespace

Translator::Translator(const SessionShared& shared, TranslateConfig config)
    : shared_(shared),
      config_(std::move(config)),
      languages_(shared.prompts->tokenizer()) {}

absl::StatusOr<std::unique_ptr<Translator>> Translator::Create(
    const Checkpoint& checkpoint, const SessionShared& shared,
    const EngineOptions& options) {
  LANEWISE_ASSIGN_OR_RETURN(
      TranslateConfig config,
      ReadTranslateConfig(checkpoint, shared.prompts->special()));
  auto translator = absl::WrapUnique(new Translator(shared, std::move(config)));
  translator->memory_pool_ = KvPagePool::CreateForMemory(
      shared.model->spec(), shared.pool->type(), options.max_cache_bytes);
  translator->max_source_ = shared.model->encoder()->spec().max_positions;
  if (options.context_length > 0) {
    translator->max_source_ =
        std::min(translator->max_source_, options.context_length);
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> around,
                            shared.prompts->tokenizer().Encode("", {}));
  for (const int32_t id : around) {
    translator->language_around_text_ |= translator->languages_.Has(id);
  }
  return translator;
}

absl::StatusOr<TranslateOptions> Translator::Defaults(
    const TranslateRequest& request) const {
  LANEWISE_ASSIGN_OR_RETURN(const Route route, FindRoute(request));
  TranslateOptions options = request.options.value_or(DefaultsOf(route));
  LANEWISE_RETURN_IF_ERROR(PlaceTarget(request, route, &options));
  return DefaultsOf(route);
}

absl::StatusOr<Translator::Route> Translator::FindRoute(
    const TranslateRequest& request) const {
  Route route;
  if (!request.task.empty()) {
    route.task = config_.FindTask(request.task);
    if (route.task == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("task: expected ",
                       config_.tasks.empty()
                           ? "none, since the model's config.json names none"
                           : absl::StrCat("one of ", Names(config_.tasks)),
                       ", found \"", Printable(request.task), "\""));
    }
  }
  LANEWISE_RETURN_IF_ERROR(RouteTarget(request, &route));
  LANEWISE_RETURN_IF_ERROR(RouteSource(request, &route));
  return route;
}

absl::Status Translator::RouteTarget(const TranslateRequest& request,
                                     Route* route) const {
  const std::string& name = request.target_language;
  if (name.empty()) return absl::OkStatus();
  constexpr absl::string_view kField = "target_language";
  if (languages_.size() > 0) {
    LANEWISE_ASSIGN_OR_RETURN(route->target, languages_.Find(kField, name));
    return absl::OkStatus();
  }
  route->marker = languages_.FindMarker(name);
  if (route->marker.has_value()) return absl::OkStatus();
  const TranslateTask* task = config_.FindTask(
      absl::StrCat("translation_", request.source_language, "_to_", name));
  if (task == nullptr) return languages_.Find(kField, name).status();
  if (route->task != nullptr && route->task != task) {
    return absl::InvalidArgumentError(
        absl::StrCat("task: expected none or ", Printable(task->name),
                     " with these languages, found ", request.task));
  }
  route->task = task;
  return absl::OkStatus();
}

absl::Status Translator::RouteSource(const TranslateRequest& request,
                                     Route* route) const {
  const std::string& name = request.source_language;
  constexpr absl::string_view kField = "source_language";
  if (name.empty()) {
    if (languages_.size() < 2 || language_around_text_ ||
        request.texts.empty()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(
        kField, ": expected one of ", languages_.Summary(), ", found none"));
  }
  // Told by the task, or left to the model beside the target's marker.
  if (languages_.size() == 0 &&
      (route->marker.has_value() ||
       (route->task != nullptr && !request.target_language.empty()))) {
    return absl::OkStatus();
  }
  LANEWISE_ASSIGN_OR_RETURN(route->source, languages_.Find(kField, name));
  return absl::OkStatus();
}

absl::Status Translator::PlaceTarget(const TranslateRequest& request,
                                     const Route& route,
                                     TranslateOptions* options) const {
  std::optional<int32_t>& start = options->start_id;
  const bool starts = start.has_value() && languages_.Has(*start);
  if (route.target.has_value()) {
    (starts || !start.has_value() ? start : options->sampling.forced_first_id) =
        route.target;
  } else if (languages_.size() >= 2 && !starts &&
             !options->sampling.forced_first_id.has_value() &&
             request.decoder_prompt_ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("target_language: expected one of ", languages_.Summary(),
                     ", found none"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Translator::DecoderPrompt(
    const TranslateRequest& request, const TranslateOptions& options) const {
  if (!options.start_id.has_value()) {
    return absl::InvalidArgumentError(
        "options.start_id: expected the decoder's start token, which the "
        "model's files do not tell, found none");
  }
  std::vector<int32_t> ids = {*options.start_id};
  std::vector<int32_t> more = request.decoder_prompt_ids;
  if (!request.decoder_prompt.empty()) {
    EncodeOptions plain = WholeText(request);
    plain.add_special_tokens = false;
    LANEWISE_ASSIGN_OR_RETURN(more, shared_.prompts->tokenizer().Encode(
                                        request.decoder_prompt, plain));
    if (options.sampling.forced_first_id.has_value()) {
      ids.push_back(*options.sampling.forced_first_id);
    }
  }
  ids.insert(ids.end(), more.begin(), more.end());
  const size_t vocab = shared_.model->spec().vocab_size;
  for (const int32_t id : ids) {
    if (id >= 0 && static_cast<size_t>(id) < vocab) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "decoder prompt: expected ids of 0 to ", vocab - 1, ", found ", id));
  }
  if (ids.size() < shared_.context_length) return ids;
  return absl::OutOfRangeError(absl::StrCat(
      "decoder prompt: ", ids.size(), " tokens do not fit into the decoder's ",
      shared_.context_length,
      " positions and leave room for a "
      "translation"));
}

absl::StatusOr<Seq2SeqJob> Translator::MakeJob(const TranslateRequest& request,
                                               const Route& route) const {
  const TranslateOptions& defaults = DefaultsOf(route);
  Seq2SeqJob job;
  job.options = request.options.value_or(defaults);
  TranslateOptions& options = job.options;
  if (!options.start_id.has_value()) options.start_id = defaults.start_id;
  if (!options.end_ids.has_value()) options.end_ids = defaults.end_ids;
  std::sort(options.end_ids->begin(), options.end_ids->end());
  LANEWISE_RETURN_IF_ERROR(Validate(options.beams));
  LANEWISE_RETURN_IF_ERROR(PlaceTarget(request, route, &options));
  LANEWISE_ASSIGN_OR_RETURN(job.decoder_prompt,
                            DecoderPrompt(request, options));
  // Inputs share the seed and each begins its own stream of numbers, so none
  // depends on where it stands.
  LANEWISE_ASSIGN_OR_RETURN(
      const Sampler sampler,
      Sampler::Create(options.sampling,
                      {shared_.model->spec().head_width(), *options.end_ids}));
  options.sampling.seed = sampler.seed();
  job.hash_logits = request.hash_logits;
  return job;
}

absl::StatusOr<std::vector<int32_t>> Translator::Tokenize(
    absl::string_view text, const TranslateRequest& request,
    const Route& route) const {
  const Tokenizer& tokenizer = shared_.prompts->tokenizer();
  const std::string whole = route.task != nullptr
                                ? absl::StrCat(route.task->prefix, text)
                                : std::string(text);
  EncodeOptions options = WholeText(request);
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            tokenizer.Encode(whole, options));
  if (route.marker.has_value()) ids.insert(ids.begin(), *route.marker);
  if (!route.source.has_value()) return ids;
  if (!language_around_text_) {
    ids.insert(ids.begin(), *route.source);
    return ids;
  }
  // The tokenizer's own language stands before or behind the text; within it
  // such a token is the caller's.
  options.add_special_tokens = false;
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> body,
                            tokenizer.Encode(whole, options));
  const size_t around = ids.size() - std::min(ids.size(), body.size());
  size_t begin = 0;
  while (begin < around &&
         !std::equal(body.begin(), body.end(), ids.begin() + begin)) {
    ++begin;
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool within = i >= begin && i < begin + body.size();
    if (!within && languages_.Has(ids[i])) ids[i] = *route.source;
  }
  return ids;
}

absl::Status Translator::CheckSource(size_t input,
                                     absl::Span<const int32_t> ids) const {
  const ModelSpec& spec = shared_.model->encoder()->spec();
  if (ids.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", input, ": expected at least one token, found none"));
  }
  if (ids.size() > max_source_) {
    return absl::OutOfRangeError(
        absl::StrCat("input ", input, ": ", ids.size(),
                     " tokens do not fit into the encoder's ", max_source_,
                     " positions; shorten it"));
  }
  for (const int32_t id : ids) {
    if (id >= 0 && static_cast<size_t>(id) < spec.vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input ", input, ": expected ids of 0 to ",
                     spec.vocab_size - 1, ", found ", id));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<int32_t>>> Translator::Sources(
    const TranslateRequest& request, const Route& route) const {
  std::vector<std::vector<int32_t>> sources = request.ids;
  for (const std::string& text : request.texts) {
    LANEWISE_ASSIGN_OR_RETURN(sources.emplace_back(),
                              Tokenize(text, request, route));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(CheckSource(i, sources[i]));
  }
  return sources;
}

absl::StatusOr<TranslateResult> Translator::Translate(
    const TranslateRequest& request,
    const TranslateCallbacks& callbacks) const {
  LANEWISE_RETURN_IF_ERROR(Check(request));
  LANEWISE_ASSIGN_OR_RETURN(const Route route, FindRoute(request));
  LANEWISE_ASSIGN_OR_RETURN(const Seq2SeqJob job, MakeJob(request, route));
  LANEWISE_ASSIGN_OR_RETURN(const auto sources, Sources(request, route));
  LANEWISE_ASSIGN_OR_RETURN(const auto session,
                            Seq2SeqSession::Create(shared_, memory_pool_));
  TranslateResult result;
  result.seed = *job.options.sampling.seed;
  bool cancelled = false;
  TranslateCallbacks watched = callbacks;
  watched.should_cancel = [&] {
    return cancelled || (callbacks.should_cancel && callbacks.should_cancel());
  };
  if (callbacks.on_text) {
    watched.on_text = [&](size_t input, absl::string_view text) {
      cancelled |= !callbacks.on_text(input, text);
      return !cancelled;
    };
  }
  const size_t step = Seq2SeqSession::GroupSize(job, request.batch);
  for (size_t begin = 0; begin < sources.size(); begin += step) {
    const auto group = absl::MakeConstSpan(sources).subspan(begin, step);
    LANEWISE_ASSIGN_OR_RETURN(std::vector<Translation> translations,
                              session->Run(job, group, begin, watched));
    for (Translation& translation : translations) {
      cancelled |= translation.finish_reason == FinishReason::kCancelled;
      result.translations.push_back(std::move(translation));
    }
    if (callbacks.on_progress && !cancelled) {
      callbacks.on_progress(result.translations.size(), sources.size());
    }
  }
  result.encode_seconds = session->encode_seconds();
  result.decode_seconds = session->decode_seconds();
  return result;
}

}  // namespace lanewise
