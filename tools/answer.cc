#include "tools/answer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/engine_setup.h"
#include "tools/interrupt.h"

namespace lanewise {

absl::StatusOr<Answer> Ask(const Invocation& call, Session* session,
                           const GenerateRequest& request, Output* stream) {
  const InterruptScope interrupt;
  ProgressLine progress(call.io.err, "reading the prompt: tokens");
  GenerateCallbacks callbacks;
  callbacks.should_cancel = [&interrupt] { return interrupt.requested(); };
  callbacks.on_prompt = [&progress](size_t done, size_t total) {
    progress.Update(done, total);
  };
  callbacks.on_text = [&progress, stream](absl::string_view text) {
    progress.Clear();
    return stream == nullptr || stream->Write(text);
  };
  absl::StatusOr<GenerateResult> result = session->Generate(request, callbacks);
  progress.Clear();
  if (stream != nullptr) stream->EndLine();
  if (!result.ok()) return result.status();
  Answer answer;
  answer.result = *std::move(result);
  answer.interrupted = interrupt.requested() &&
                       answer.result.finish_reason == FinishReason::kCancelled;
  return answer;
}

double PromptSpeed(const GenerateResult& result) {
  const size_t tokens = result.prompt_tokens - result.cached_tokens;
  return result.prompt_seconds > 0
             ? static_cast<double>(tokens) / result.prompt_seconds
             : 0;
}

double DecodeSpeed(const GenerateResult& result) {
  return result.decode_seconds > 0 && result.ids.size() > 1
             ? static_cast<double>(result.ids.size() - 1) /
                   result.decode_seconds
             : 0;
}

std::string StatsText(const Engine& engine, const GenerateResult& result) {
  return absl::StrFormat(
      "prompt: %d tokens, %d of them cached, %.1f tokens/s; first token after "
      "%.1f ms\n"
      "decode: %d tokens, %.1f tokens/s; ended by: %s; seed %d\n"
      "threads: %d; target: %s; weights: %.1f MB; context: %d tokens\n",
      result.prompt_tokens, result.cached_tokens, PromptSpeed(result),
      result.prompt_seconds * 1e3, result.ids.size(), DecodeSpeed(result),
      FinishReasonName(result.finish_reason), result.seed, engine.threads(),
      engine.target(), static_cast<double>(engine.weight_bytes()) / 1e6,
      engine.context_length());
}

namespace {

nlohmann::ordered_json HypothesesJson(
    const std::vector<Hypothesis>& hypotheses) {
  auto list = nlohmann::ordered_json::array();
  for (const Hypothesis& hypothesis : hypotheses) {
    nlohmann::ordered_json json;
    json["text"] = hypothesis.text;
    json["ids"] = hypothesis.ids;
    json["log_probability"] = hypothesis.log_probability;
    json["score"] = hypothesis.score;
    json["finish_reason"] =
        std::string(FinishReasonName(hypothesis.finish_reason));
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

std::string AnswerJson(const Engine& engine, const GenerateOptions& options,
                       const GenerateResult& result, absl::string_view model) {
  nlohmann::ordered_json json;
  json["text"] = result.text;
  json["ids"] = result.ids;
  json["logits_hash"] = result.logits_hash;
  json["finish_reason"] = std::string(FinishReasonName(result.finish_reason));
  if (options.request.beams.num_beams > 1) {
    json["beams"] = options.request.beams.num_beams;
    json["hypotheses"] = HypothesesJson(result.hypotheses);
  }
  json["prompt_tokens"] = result.prompt_tokens;
  json["prompt_tokens_per_second"] = PromptSpeed(result);
  json["decode_tokens_per_second"] = DecodeSpeed(result);
  json["time_to_first_token_ms"] = result.prompt_seconds * 1e3;
  json["seed"] = result.seed;
  json["target"] = std::string(engine.target());
  json["threads"] = engine.threads();
  json["activations"] = std::string(Name(options.engine.activations));
  json["cache"] = std::string(Name(options.engine.cache));
  json["weights"] = std::string(Name(options.engine.weights));
  json["model"] = std::string(model);
  return absl::StrCat(
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
      "\n");
}

}  // namespace lanewise
