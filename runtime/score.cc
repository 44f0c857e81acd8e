#include "runtime/score.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Whether it predicts each token from those before it and nothing else.
absl::Status CheckModel(const ModelSpec& spec) {
  if (spec.head.task == HeadTask::kNextToken && spec.encoder.empty() &&
      !spec.bidirectional()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "score: expected a decoder-only language model, found another kind");
}

absl::StatusOr<ScoreSequence> Tokenize(const SessionShared& shared,
                                       const ScoreRequest& request) {
  EncodeOptions options;
  options.parse_special_tokens = request.parse_special;
  options.truncate = false;
  options.pad = false;
  const Tokenizer& tokenizer = shared.prompts->tokenizer();
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt,
                            tokenizer.Encode(request.prompt, options));
  ScoreSequence sequence;
  LANEWISE_ASSIGN_OR_RETURN(
      sequence.ids,
      tokenizer.Encode(absl::StrCat(request.prompt, request.text), options));
  const size_t most = std::min(prompt.size(), sequence.ids.size());
  size_t common = 0;
  while (common < most && prompt[common] == sequence.ids[common]) ++common;
  sequence.first = std::max<size_t>(common, 1);
  return sequence;
}

absl::StatusOr<ScoreSequence> Ids(const SessionShared& shared,
                                  const ScoreRequest& request) {
  if (request.text.empty() == request.ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("request: expected one of text and ids, found ",
                     request.text.empty() ? "neither" : "both"));
  }
  if (request.text.empty() ? !request.prompt.empty()
                           : !request.prompt_ids.empty()) {
    return absl::InvalidArgumentError(
        "request: expected prompt with text and prompt_ids with ids, found one "
        "with the other");
  }
  if (!request.text.empty()) return Tokenize(shared, request);
  ScoreSequence sequence;
  sequence.ids = request.prompt_ids;
  sequence.ids.insert(sequence.ids.end(), request.ids.begin(),
                      request.ids.end());
  sequence.first = std::max<size_t>(request.prompt_ids.size(), 1);
  return sequence;
}

absl::Status Check(const SessionShared& shared, const ScoreRequest& request,
                   const ScoreSequence& sequence) {
  const size_t context = shared.context_length;
  if (request.stride >= context) {
    return absl::InvalidArgumentError(absl::StrCat(
        "stride: expected less than the context of ", context,
        " tokens, so that windows overlap, found ", request.stride));
  }
  const size_t vocab = shared.model->spec().vocab_size;
  for (size_t i = 0; i < sequence.ids.size(); ++i) {
    const int32_t id = sequence.ids[i];
    if (id >= 0 && static_cast<size_t>(id) < vocab) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "token ", i, ": expected 0 to ", vocab - 1, ", found ", id));
  }
  if (sequence.first >= sequence.ids.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("text: expected a token that follows another one, found ",
                     sequence.ids.size(), " tokens with the prompt's"));
  }
  if (sequence.ids.size() > context && request.stride == 0) {
    return absl::OutOfRangeError(
        absl::StrCat("text: ", sequence.ids.size(),
                     " tokens do not fit into the context of ", context,
                     "; set a stride to score it in windows"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScoreSequence> MakeScoreSequence(const SessionShared& shared,
                                                const ScoreRequest& request) {
  LANEWISE_RETURN_IF_ERROR(CheckModel(shared.model->spec()));
  LANEWISE_ASSIGN_OR_RETURN(ScoreSequence sequence, Ids(shared, request));
  LANEWISE_RETURN_IF_ERROR(Check(shared, request, sequence));
  return sequence;
}

std::vector<ScoreWindow> ScoreWindows(const ScoreSequence& sequence,
                                      size_t context, size_t stride) {
  const size_t size = sequence.ids.size();
  std::vector<ScoreWindow> windows;
  for (size_t begin = 0, first = sequence.first; first < size;
       begin += stride) {
    const size_t end = std::min(begin + context, size);
    if (end <= first) continue;  // nothing but the prompt
    windows.push_back({begin, end, first});
    first = end;
  }
  return windows;
}

}  // namespace lanewise
