#include "tests/conformance/beam_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/format/safetensors.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "runtime/beam_search_decoder.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr double kScoreTolerance = 1e-4;
constexpr size_t kCacheBytes = size_t{1} << 30;

template <class T>
struct Array {
  std::vector<uint64_t> shape;
  std::vector<T> values;
};

template <class T>
absl::StatusOr<Array<T>> Load(const SafetensorsFile& golden,
                              const nlohmann::json& fields, const char* field) {
  const Tensor* tensor = golden.Find(fields.value(field, ""));
  if (tensor == nullptr) {
    return absl::NotFoundError(absl::StrCat("golden field ", field));
  }
  Array<T> out{tensor->shape, std::vector<T>(tensor->elements())};
  std::memcpy(out.values.data(), tensor->data.data(), tensor->data.size());
  return out;
}

// Real tokens of each row.
absl::StatusOr<std::vector<std::vector<int32_t>>> Prompts(
    const SafetensorsFile& golden, const nlohmann::json& inputs) {
  LANEWISE_ASSIGN_OR_RETURN(const Array<int32_t> ids,
                            Load<int32_t>(golden, inputs, "input_ids"));
  LANEWISE_ASSIGN_OR_RETURN(const Array<int32_t> mask,
                            Load<int32_t>(golden, inputs, "attention_mask"));
  std::vector<std::vector<int32_t>> prompts(ids.shape[0]);
  for (size_t i = 0; i < ids.values.size(); ++i) {
    if (mask.values[i] != 0) {
      prompts[i / ids.shape[1]].push_back(ids.values[i]);
    }
  }
  return prompts;
}

absl::StatusOr<ExpectedBeams> Expected(const SafetensorsFile& golden,
                                       const nlohmann::json& run) {
  const nlohmann::json& outputs = run["outputs"];
  LANEWISE_ASSIGN_OR_RETURN(const Array<int32_t> sequences,
                            Load<int32_t>(golden, outputs, "sequences"));
  LANEWISE_ASSIGN_OR_RETURN(const Array<float> scores,
                            Load<float>(golden, outputs, "sequences_scores"));
  const size_t prompt_length = run.value("prompt_length", size_t{0});
  const size_t length = sequences.shape[1];
  ExpectedBeams expected;
  expected.run = run.value("name", "");
  expected.width = length - prompt_length;
  for (size_t row = 0; row < sequences.shape[0]; ++row) {
    const auto begin = sequences.values.begin() + row * length;
    expected.ids.insert(expected.ids.end(), begin + prompt_length,
                        begin + length);
  }
  expected.scores = scores.values;
  expected.pad_id = run["params"].value("pad_token_id", 0);
  return expected;
}

absl::StatusOr<EarlyStopping> ReadEarlyStopping(const nlohmann::json& value) {
  if (value.is_boolean()) {
    return value.get<bool>() ? EarlyStopping::kYes : EarlyStopping::kNo;
  }
  if (value == "never") return EarlyStopping::kNever;
  return absl::UnimplementedError("early_stopping is neither bool nor never");
}

}  // namespace

absl::StatusOr<BeamSearchRequest> ReadBeamParams(const nlohmann::json& params) {
  BeamSearchRequest request;
  SamplingOptions& processors = request.processors;
  for (const auto& [key, value] : params.items()) {
    if (key == "num_beams") {
      request.beams.num_beams = value.get<int32_t>();
    } else if (key == "num_return_sequences") {
      request.beams.num_return_sequences = value.get<int32_t>();
    } else if (key == "length_penalty") {
      request.beams.length_penalty = value.get<double>();
    } else if (key == "early_stopping") {
      LANEWISE_ASSIGN_OR_RETURN(request.beams.early_stopping,
                                ReadEarlyStopping(value));
    } else if (key == "max_new_tokens") {
      request.max_new_tokens = value.get<size_t>();
    } else if (key == "eos_token_id") {
      if (value.is_array()) {
        request.eos_ids = value.get<std::vector<int32_t>>();
      } else {
        request.eos_ids = {value.get<int32_t>()};
      }
    } else if (key == "repetition_penalty") {
      processors.repetition_penalty = value.get<double>();
    } else if (key == "no_repeat_ngram_size") {
      processors.no_repeat_ngram = value.get<int32_t>();
    } else if (key == "min_new_tokens") {
      processors.min_new_tokens = value.get<int32_t>();
    } else if (key == "bad_words_ids") {
      processors.bad_words = value.get<std::vector<std::vector<int32_t>>>();
    } else if (key != "do_sample" && key != "use_cache" &&
               key != "pad_token_id" && key != "bos_token_id" &&
               key != "decoder_start_token_id") {
      return absl::UnimplementedError(
          absl::StrCat("parameter ", key, " is not supported"));
    }
  }
  return request;
}

void CompareBeams(const ExpectedBeams& expected,
                  absl::Span<const std::vector<BeamHypothesis>> found,
                  CaseReport* report) {
  Comparison sequences{expected.run, "sequences", 0, 0, ""};
  Comparison scores{expected.run, "sequences_scores", 0, kScoreTolerance, ""};
  size_t row = 0;
  for (const std::vector<BeamHypothesis>& hypotheses : found) {
    for (const BeamHypothesis& hypothesis : hypotheses) {
      if (row == expected.scores.size()) {
        sequences.failure = "more sequences than expected";
        break;
      }
      std::vector<int32_t> ids = hypothesis.ids;
      ids.resize(std::max(ids.size(), expected.width), expected.pad_id);
      const auto begin = expected.ids.begin() + row * expected.width;
      if (!std::equal(ids.begin(), ids.end(), begin, begin + expected.width)) {
        absl::StrAppend(&sequences.failure, "row ", row,
                        " has other token ids; ");
      }
      const double error =
          std::fabs(hypothesis.score - double{expected.scores[row]});
      if (!(error <= scores.error)) scores.error = error;  // NaN is an error
      ++row;
    }
  }
  if (row < expected.scores.size()) {
    sequences.failure = absl::StrCat("expected ", expected.scores.size(),
                                     " sequences, found ", row);
  }
  if (!(scores.error <= kScoreTolerance)) {
    scores.failure =
        absl::StrCat("error ", scores.error, " above ", kScoreTolerance);
  }
  report->comparisons.push_back(std::move(sequences));
  report->comparisons.push_back(std::move(scores));
}

absl::StatusOr<CaseReport> RunBeamCase(const std::string& folder,
                                       const Context& context,
                                       size_t max_rows) {
  std::ifstream stream(folder + "/case.json");
  std::stringstream text;
  text << stream.rdbuf();
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json cases,
                            ParseJson(text.str(), "case.json"));
  LANEWISE_ASSIGN_OR_RETURN(
      const SafetensorsFile golden,
      SafetensorsFile::Open(folder + "/golden.safetensors"));
  LANEWISE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(folder));
  LANEWISE_ASSIGN_OR_RETURN(const auto model,
                            Model::Load(*checkpoint, context, {}));
  Executor::Options options;
  options.activations = ActivationType::kF32;
  options.max_rows = max_rows;
  LANEWISE_ASSIGN_OR_RETURN(const auto executor,
                            Executor::Create(*model, context, options));
  const auto pool =
      KvPagePool::Create(model->spec(), CacheType::kF32, kCacheBytes);
  CaseReport report;
  report.name = folder;
  for (const nlohmann::json& run : cases["runs"]) {
    if (run.value("kind", "") != "generate" || !run["params"].is_object() ||
        run["params"].value("num_beams", 1) == 1) {
      continue;
    }
    LANEWISE_ASSIGN_OR_RETURN(BeamSearchRequest request,
                              ReadBeamParams(run["params"]));
    LANEWISE_ASSIGN_OR_RETURN(const auto prompts,
                              Prompts(golden, run["inputs"]));
    request.prompts.assign(prompts.begin(), prompts.end());
    request.vocab_size = model->spec().vocab_size;
    LANEWISE_ASSIGN_OR_RETURN(
        const auto stepper,
        DecoderBeamStepper::Create(*executor, pool, request.prompts));
    LANEWISE_ASSIGN_OR_RETURN(const auto found,
                              BeamSearch(context, request, *stepper));
    LANEWISE_ASSIGN_OR_RETURN(const ExpectedBeams expected,
                              Expected(golden, run));
    CompareBeams(expected, found, &report);
  }
  return report;
}

}  // namespace lanewise
