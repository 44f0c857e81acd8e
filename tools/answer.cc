#include "tools/answer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/engine_output.h"
#include "tools/interrupt.h"
#include "tools/json_line.h"

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
  return PerSecond(tokens, result.prompt_seconds);
}

double DecodeSpeed(const GenerateResult& result) {
  return result.ids.empty()
             ? 0
             : PerSecond(result.ids.size() - 1, result.decode_seconds);
}

std::string StatsText(const Engine& engine, const GenerateResult& result) {
  return absl::StrFormat(
      "prompt: %d tokens, %d of them cached, %.1f tokens/s; first token after "
      "%.1f ms\n"
      "decode: %d tokens, %.1f tokens/s; ended by: %s; seed %d\n"
      "%s; context: %d tokens\n",
      result.prompt_tokens, result.cached_tokens, PromptSpeed(result),
      result.prompt_seconds * 1e3, result.ids.size(), DecodeSpeed(result),
      FinishReasonName(result.finish_reason), result.seed, EngineText(engine),
      engine.context_length());
}

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
  AddEngineFields(engine, options.engine, model, &json);
  return JsonLine(json);
}

}  // namespace lanewise
