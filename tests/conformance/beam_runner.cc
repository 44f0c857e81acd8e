#include "tests/conformance/beam_runner.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "runtime/beam_search_decoder.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr double kScoreTolerance = 1e-4;
constexpr size_t kCacheBytes = size_t{1} << 30;

}  // namespace

BeamSearchRequest BeamRequest(const RunParams& params) {
  BeamSearchRequest request;
  request.beams = params.beams;
  request.processors = params.processors;
  request.eos_ids = params.eos_ids;
  request.max_new_tokens = params.max_new_tokens;
  return request;
}

absl::StatusOr<ExpectedBeams> ReadExpectedBeams(const CaseFolder& golden,
                                                const nlohmann::json& run,
                                                const RunParams& params) {
  const nlohmann::json& outputs = run["outputs"];
  LANEWISE_ASSIGN_OR_RETURN(const auto sequences,
                            golden.Array<int32_t>(outputs, "sequences"));
  LANEWISE_ASSIGN_OR_RETURN(const auto scores,
                            golden.Array<float>(outputs, "sequences_scores"));
  const size_t length = sequences.Row(0).size();
  if (scores.values.size() != sequences.shape[0] ||
      length < params.prompt_length) {
    return absl::InvalidArgumentError("sequences or scores of another shape");
  }
  ExpectedBeams expected;
  expected.run = run["name"].get<std::string>();
  expected.width = length - params.prompt_length;
  for (size_t row = 0; row < sequences.shape[0]; ++row) {
    const auto ids = sequences.Row(row).subspan(params.prompt_length);
    expected.ids.insert(expected.ids.end(), ids.begin(), ids.end());
  }
  expected.scores = scores.values;
  expected.pad_id = params.pad_id;
  return expected;
}

void CompareBeams(const ExpectedBeams& expected,
                  absl::Span<const std::vector<BeamHypothesis>> found,
                  CaseReport* report) {
  std::string failure;
  std::vector<float> scores;
  for (const std::vector<BeamHypothesis>& hypotheses : found) {
    for (const BeamHypothesis& hypothesis : hypotheses) {
      const size_t row = scores.size();
      scores.push_back(static_cast<float>(hypothesis.score));
      if (row >= expected.scores.size()) continue;
      std::vector<int32_t> ids = hypothesis.ids;
      ids.resize(std::max(ids.size(), expected.width), expected.pad_id);
      const auto begin = expected.ids.begin() + row * expected.width;
      if (!std::equal(ids.begin(), ids.end(), begin, begin + expected.width)) {
        absl::StrAppend(&failure, "row ", row, " has other token ids; ");
      }
    }
  }
  if (scores.size() != expected.scores.size()) {
    failure = absl::StrCat("expected ", expected.scores.size(),
                           " sequences, found ", scores.size());
  }
  AddExact({expected.run, "sequences"}, std::move(failure), report);
  CompareAbsolute({expected.run, "sequences_scores"}, scores, expected.scores,
                  kScoreTolerance, report);
}

absl::StatusOr<CaseReport> RunBeamCase(const std::string& folder,
                                       const Context& context,
                                       size_t max_rows) {
  LANEWISE_ASSIGN_OR_RETURN(const CaseFolder golden, CaseFolder::Open(folder));
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
  for (const nlohmann::json& run : golden.runs()) {
    if (!HasBeams(run)) continue;
    LANEWISE_ASSIGN_OR_RETURN(const RunParams params, ReadRunParams(run));
    LANEWISE_ASSIGN_OR_RETURN(const TokenRows rows, golden.Rows(run["inputs"]));
    BeamSearchRequest request = BeamRequest(params);
    request.prompts.assign(rows.ids.begin(), rows.ids.end());
    request.vocab_size = model->spec().vocab_size;
    LANEWISE_ASSIGN_OR_RETURN(
        const auto stepper,
        DecoderBeamStepper::Create(*executor, pool, request.prompts));
    LANEWISE_ASSIGN_OR_RETURN(const auto found,
                              BeamSearch(context, request, *stepper));
    LANEWISE_ASSIGN_OR_RETURN(const ExpectedBeams expected,
                              ReadExpectedBeams(golden, run, params));
    CompareBeams(expected, found, &report);
  }
  return report;
}

}  // namespace lanewise
