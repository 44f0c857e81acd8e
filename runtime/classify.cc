#include "runtime/classify.h"

#include <algorithm>
#include <chrono>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "runtime/classify_job.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

constexpr size_t kMaxBatchTokens = size_t{1} << 16;
// Of question and window together, and how many tokens windows share at most.
constexpr size_t kWindow = 384;
constexpr size_t kWindowOverlap = 128;

absl::string_view TaskName(HeadTask task) {
  switch (task) {
    case HeadTask::kNextToken:
      return "a model that continues text; Generate fits it";
    case HeadTask::kPooled:
    case HeadTask::kNone:
      return "a model without a head for labels; Embed fits it";
    default:
      return "a model of another kind";
  }
}

// A token as a JSON file spells it: text, or {"content": text}.
std::string TokenOf(const nlohmann::json& json, absl::string_view key) {
  const nlohmann::json* value = FindJson(json, key);
  if (value != nullptr && value->is_object()) {
    value = FindJson(*value, "content");
  }
  if (value == nullptr || !value->is_string()) return "";
  return value->get<std::string>();
}

absl::Status TooLong(size_t index, size_t limit, size_t found) {
  return absl::OutOfRangeError(
      absl::StrCat("input ", index, ": expected at most ", limit,
                   " tokens (the model's limit), found ", found));
}

void Cut(size_t length, bool left, std::vector<int32_t>* ids) {
  if (ids->size() <= length) return;
  if (left) {
    ids->erase(ids->begin(), ids->end() - static_cast<ptrdiff_t>(length));
  } else {
    ids->resize(length);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Classifier>> Classifier::Create(
    const Checkpoint& checkpoint, const SessionShared& shared,
    BatchRunner* runner) {
  auto classifier = absl::WrapUnique(new Classifier(shared, runner));
  classifier->path_ = checkpoint.path();
  // Without a head to classify by, every call is an error of Task().
  if (!classifier->Task().ok()) return classifier;
  const ModelSpec& spec = runner->model().spec();
  LANEWISE_ASSIGN_OR_RETURN(
      classifier->limit_,
      ReadTextLimit(checkpoint, spec, classifier->tokenizer()));
  classifier->limit_.max_tokens =
      std::min(classifier->limit_.max_tokens, shared.context_length);
  classifier->labels_ = spec.head.labels;
  for (size_t i = classifier->labels_.size(); i < spec.head.outputs.value_or(0);
       ++i) {
    classifier->labels_.push_back(absl::StrCat("LABEL_", i));
  }
  if (classifier->labels_.size() == 1) {
    classifier->scores_ = LabelScores::kSigmoid;
  }
  LANEWISE_RETURN_IF_ERROR(classifier->ReadConfig(checkpoint));
  if (spec.head.task == HeadTask::kTokenLabels) {
    const Tokenizer& tokenizer = classifier->tokenizer();
    for (size_t id = 0; id < tokenizer.vocab_size(); ++id) {
      classifier->marks_inner_tokens_ |=
          absl::StartsWith(tokenizer.TokenText(static_cast<int32_t>(id)), "##");
    }
  }
  return classifier;
}

absl::Status Classifier::ReadConfig(const Checkpoint& checkpoint) {
  for (const char* usual : {"[MASK]", "<mask>"}) {
    if (mask_text_.empty() && tokenizer().TokenId(usual)) mask_text_ = usual;
  }
  if (checkpoint.kind() != CheckpointKind::kGguf) {
    absl::StatusOr<nlohmann::json> config = checkpoint.ReadJson("config.json");
    if (config.ok()) {
      LANEWISE_ASSIGN_OR_RETURN(
          const std::string type,
          GetStringOr(*config, absl::StrCat(path_, "/config.json"),
                      "problem_type", ""));
      if (type == "multi_label_classification") {
        scores_ = LabelScores::kSigmoid;
      } else if (type == "regression") {
        scores_ = LabelScores::kLogits;
      }
    }
    for (const char* file :
         {"special_tokens_map.json", "tokenizer_config.json"}) {
      const absl::StatusOr<nlohmann::json> json = checkpoint.ReadJson(file);
      if (absl::IsNotFound(json.status())) continue;
      LANEWISE_RETURN_IF_ERROR(json.status());
      const std::string mask = TokenOf(*json, "mask_token");
      if (!mask.empty()) mask_text_ = mask;
    }
  } else if (checkpoint.metadata().Has("tokenizer.ggml.mask_token_id")) {
    LANEWISE_ASSIGN_OR_RETURN(const uint64_t id,
                              checkpoint.metadata().GetUint(
                                  "tokenizer.ggml.mask_token_id", INT32_MAX));
    mask_text_ = tokenizer().TokenText(static_cast<int32_t>(id));
  }
  if (!mask_text_.empty()) mask_id_ = tokenizer().TokenId(mask_text_);
  return absl::OkStatus();
}

absl::StatusOr<ClassifyTask> Classifier::Task() const {
  switch (spec().head.task) {
    case HeadTask::kSequenceLabels:
      return ClassifyTask::kSequenceLabels;
    case HeadTask::kTokenLabels:
      return ClassifyTask::kTokenLabels;
    case HeadTask::kMaskedToken:
      return ClassifyTask::kMaskedTokens;
    case HeadTask::kSpan:
      return ClassifyTask::kAnswers;
    default:
      return absl::FailedPreconditionError(absl::StrCat(
          path_,
          ": expected a model with a head for labels, masked tokens or "
          "answers, found ",
          TaskName(spec().head.task)));
  }
}

absl::Status Classifier::CheckRequest(const ClassifyRequest& request,
                                      ClassifyTask task) const {
  if (request.batch_tokens == 0 || request.batch_tokens > kMaxBatchTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch_tokens: expected 1 to ", kMaxBatchTokens,
                     ", found ", request.batch_tokens));
  }
  const bool counts =
      task == ClassifyTask::kMaskedTokens || task == ClassifyTask::kAnswers;
  if (counts && (request.top_k == 0 || request.max_answer_tokens == 0)) {
    return absl::InvalidArgumentError(
        "top_k, max_answer_tokens: expected at least 1, found 0");
  }
  if (task == ClassifyTask::kMaskedTokens && !mask_id_.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": expected a mask token in the tokenizer, found none"));
  }
  const bool wants_pair = task == ClassifyTask::kAnswers;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const bool has_pair = request.inputs[i].pair.has_value();
    if (task == ClassifyTask::kSequenceLabels || has_pair == wants_pair) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "input ", i, ": ",
        wants_pair ? "expected a question and a text to find the answer in, "
                     "found no text"
                   : "expected one text, found a pair"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ClassifyResult> Classifier::Classify(
    const ClassifyRequest& request, const ClassifyCallbacks& callbacks) const {
  const auto start = std::chrono::steady_clock::now();
  const ScopedFloatEnvironment environment;
  LANEWISE_ASSIGN_OR_RETURN(const ClassifyTask task, Task());
  LANEWISE_RETURN_IF_ERROR(CheckRequest(request, task));
  Job job = {request, task, limit_.max_tokens, {}, {}};
  job.result.task = task;
  job.result.outputs.resize(request.inputs.size());
  if (task == ClassifyTask::kAnswers) {
    job.max_tokens = std::min(job.max_tokens, kWindow);
  }
  job.result.max_tokens = job.max_tokens;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    LANEWISE_RETURN_IF_ERROR(AddItems(&job, i));
  }
  std::vector<BatchRunner::Text> texts;
  for (const Item& item : job.items) {
    const Encoding& encoding = item.encoding;
    if (encoding.ids.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", item.input, ": expected at least one token, found none"));
    }
    job.result.outputs[item.input].tokens += encoding.ids.size();
    texts.push_back({encoding.ids, {}});
    // A table of one type is never asked for another.
    if (spec().token_types > 1) texts.back().type_ids = encoding.type_ids;
  }
  BatchRunner::Options options;
  options.rows = BatchRunner::Rows::kHead;
  options.batch_tokens = request.batch_tokens;
  options.on_progress = callbacks.on_progress;
  options.should_cancel = callbacks.should_cancel;
  LANEWISE_RETURN_IF_ERROR(runner_.Run(
      texts, options, [&](size_t index, absl::Span<const float> rows) {
        return Read(&job, job.items[index], rows);
      }));
  job.result.seconds = SecondsSince(start);
  return std::move(job.result);
}

absl::Status Classifier::AddItems(Job* job, size_t index) const {
  switch (job->task) {
    case ClassifyTask::kTokenLabels:
      return AddTokens(job, index);
    case ClassifyTask::kMaskedTokens:
      return AddMasked(job, index);
    case ClassifyTask::kAnswers:
      return AddWindows(job, index);
    case ClassifyTask::kSequenceLabels:
      break;
  }
  return AddSequence(job, index);
}

// Of two texts the longer one gives first, as the reference cuts.
absl::Status Classifier::Fit(Job* job, size_t index,
                             std::vector<int32_t>* first,
                             std::vector<int32_t>* second) const {
  const std::vector<int32_t> none;
  const size_t around = tokenizer()
                            .Assemble(none, second != nullptr ? &none : nullptr)
                            .ids.size();
  const size_t total =
      first->size() + (second != nullptr ? second->size() : 0) + around;
  if (total <= job->max_tokens) return absl::OkStatus();
  if (!job->request.truncate || around >= job->max_tokens) {
    return TooLong(index, job->max_tokens, total);
  }
  job->result.outputs[index].truncated = true;
  const size_t limit = job->max_tokens - around;
  const bool left = limit_.truncate_left;
  if (second == nullptr) {
    Cut(limit, left, first);
    return absl::OkStatus();
  }
  size_t shorter = std::min(first->size(), second->size());
  size_t longer = shorter > limit ? shorter : limit - shorter;
  longer = std::max(shorter, longer);
  if (shorter + longer > limit) {
    shorter = limit / 2;
    longer = limit - shorter;
  }
  const bool swapped = first->size() > second->size();
  Cut(swapped ? longer : shorter, left, first);
  Cut(swapped ? shorter : longer, left, second);
  return absl::OkStatus();
}

absl::Status Classifier::AddSequence(Job* job, size_t index) const {
  const ClassifyInput& input = job->request.inputs[index];
  EncodeOptions options;
  options.add_special_tokens = options.truncate = options.pad = false;
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> first,
                            tokenizer().Encode(input.text, options));
  std::vector<int32_t> second;
  if (input.pair.has_value()) {
    LANEWISE_ASSIGN_OR_RETURN(second, tokenizer().Encode(*input.pair, options));
  }
  std::vector<int32_t>* pair = input.pair.has_value() ? &second : nullptr;
  LANEWISE_RETURN_IF_ERROR(Fit(job, index, &first, pair));
  job->items.push_back({index, tokenizer().Assemble(first, pair), {}});
  return absl::OkStatus();
}

absl::Status Classifier::AddTokens(Job* job, size_t index) const {
  Ranges ranges;
  LANEWISE_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      tokenizer().EncodeWithRanges(job->request.inputs[index].text,
                                   /*parse_special_tokens=*/false, &ranges));
  const size_t before = ids.size();
  LANEWISE_RETURN_IF_ERROR(Fit(job, index, &ids, nullptr));
  if (limit_.truncate_left) {
    ranges.erase(ranges.begin(),
                 ranges.begin() + static_cast<ptrdiff_t>(before - ids.size()));
  }
  Item item = {index, tokenizer().Assemble(ids, nullptr), {}};
  size_t next = 0;
  for (const int8_t text : item.encoding.texts) {
    item.ranges.push_back(text == 0 ? ranges[next++]
                                    : std::pair<size_t, size_t>());
  }
  job->items.push_back(std::move(item));
  return absl::OkStatus();
}

// Only the mask may be spelled in the text; all else is ordinary text.
absl::Status Classifier::AddMasked(Job* job, size_t index) const {
  const std::string& input = job->request.inputs[index].text;
  const std::string& marker =
      job->request.mask.empty() ? mask_text_ : job->request.mask;
  std::string text;     // with the model's own masks
  Ranges plain, masks;  // of `text`, of `input`
  size_t begin = 0;
  for (size_t at = input.find(marker); at != std::string::npos;
       at = input.find(marker, begin)) {
    plain.emplace_back(text.size(), text.size() + at - begin);
    absl::StrAppend(&text, input.substr(begin, at - begin), mask_text_);
    begin = at + marker.size();
    masks.emplace_back(at, begin);
  }
  if (masks.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", index, ": expected ", Printable(marker),
                     " in the text, found none"));
  }
  plain.emplace_back(text.size(), text.size() + input.size() - begin);
  text += input.substr(begin);
  EncodeOptions options;
  options.add_special_tokens = options.truncate = options.pad = false;
  options.parse_special_tokens = true;
  options.plain_ranges = plain;
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            tokenizer().Encode(text, options));
  const auto count_masks = [&] {
    return static_cast<size_t>(std::count(ids.begin(), ids.end(), *mask_id_));
  };
  const size_t before = count_masks();
  LANEWISE_RETURN_IF_ERROR(Fit(job, index, &ids, nullptr));
  const size_t kept = count_masks();
  if (kept == 0) {
    return absl::OutOfRangeError(absl::StrCat(
        "input ", index, ": expected ", mask_text_, " within the first ",
        job->max_tokens, " tokens (the model's limit), found it behind them"));
  }
  size_t next = limit_.truncate_left ? before - kept : 0;
  Item item = {index, tokenizer().Assemble(ids, nullptr), {}};
  for (size_t i = 0; i < item.encoding.ids.size(); ++i) {
    const bool mask = item.encoding.texts[i] == 0 &&
                      item.encoding.ids[i] == *mask_id_ && next < masks.size();
    item.ranges.push_back(mask ? masks[next++] : std::pair<size_t, size_t>());
  }
  job->items.push_back(std::move(item));
  return absl::OkStatus();
}

// The question with each of several overlapping parts of the text.
absl::Status Classifier::AddWindows(Job* job, size_t index) const {
  const ClassifyInput& input = job->request.inputs[index];
  EncodeOptions options;
  options.add_special_tokens = options.truncate = options.pad = false;
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> question,
                            tokenizer().Encode(input.text, options));
  Ranges ranges;
  LANEWISE_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      tokenizer().EncodeWithRanges(*input.pair, /*parse_special_tokens=*/false,
                                   &ranges));
  const std::vector<int32_t> none;
  const size_t beside = tokenizer().Assemble(question, &none).ids.size();
  if (beside >= job->max_tokens) {
    return absl::OutOfRangeError(absl::StrCat(
        "input ", index, ": expected a question of fewer than ",
        job->max_tokens, " tokens with those around it, found ", beside));
  }
  const size_t room = job->max_tokens - beside;
  const size_t overlap =
      std::min({job->max_tokens / 2, kWindowOverlap, room - 1});
  for (size_t begin = 0;; begin += room - overlap) {
    const size_t end = std::min(ids.size(), begin + room);
    const std::vector<int32_t> part(ids.begin() + begin, ids.begin() + end);
    Item item = {index, tokenizer().Assemble(question, &part), {}};
    size_t next = begin;
    for (const int8_t text : item.encoding.texts) {
      item.ranges.push_back(text == 1 ? ranges[next++]
                                      : std::pair<size_t, size_t>());
    }
    job->items.push_back(std::move(item));
    if (end == ids.size()) return absl::OkStatus();
  }
}

absl::Status Classifier::Read(Job* job, const Item& item,
                              absl::Span<const float> rows) const {
  if (!AllFinite(shared_.context->target(), rows.data(), rows.size())) {
    return absl::InternalError(
        absl::StrCat("input ", item.input,
                     ": its logits are not finite (infinities or NaN)"));
  }
  switch (job->task) {
    case ClassifyTask::kTokenLabels:
      ReadEntities(job, item, rows);
      break;
    case ClassifyTask::kMaskedTokens:
      ReadMasks(job, item, rows);
      break;
    case ClassifyTask::kAnswers:
      ReadAnswers(job, item, rows);
      break;
    case ClassifyTask::kSequenceLabels:
      ReadLabels(job, item, rows);
      break;
  }
  return absl::OkStatus();
}

}  // namespace lanewise
