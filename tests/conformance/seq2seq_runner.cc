#include "tests/conformance/seq2seq_runner.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/beam_search.h"
#include "runtime/beam_search_decoder.h"
#include "runtime/sampler.h"
#include "simd/status_macros.h"
#include "tests/conformance/beam_runner.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/run_params.h"
#include "tests/conformance/seq2seq_model.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

// The library's own limit where neither file nor run has one.
constexpr size_t kDefaultMaxLength = 20;
constexpr size_t kTextSteps = 24;  // of text_runs

// Greedy decoding of several inputs.
struct Generated {
  std::vector<Ids> ids;                    // new tokens of each
  std::vector<std::vector<float>> logits;  // [steps, vocab] of each
};

// The expected values at real tokens; audio has no padding.
absl::StatusOr<std::vector<float>> RealRows(const CaseArray<float>& expected,
                                            const TokenRows& rows) {
  if (rows.ids.empty()) return expected.values;
  return CaseFolder::RealPositions(expected, rows);
}

class Runner {
 public:
  Runner(const CaseFolder& golden, const Context& context, CaseReport* report)
      : golden_(golden), context_(context), report_(*report) {}

  absl::Status Load() {
    LANEWISE_ASSIGN_OR_RETURN(checkpoint_, OpenModel(golden_, &report_));
    LANEWISE_ASSIGN_OR_RETURN(model_,
                              Seq2SeqModel::Load(*checkpoint_, context_));
    return absl::OkStatus();
  }

  void RunAll() {
    for (const nlohmann::json& run : golden_.runs()) {
      name_ = run["name"].get<std::string>();
      AddError(run["kind"] == "forward" ? RunForward(run) : RunGenerate(run));
    }
    const nlohmann::json* texts = FindJson(golden_.json(), "text_runs");
    if (texts == nullptr) return;
    for (size_t i = 0; i < texts->size(); ++i) {
      name_ = absl::StrCat("text", i);
      AddError(RunText((*texts)[i]));
    }
  }

 private:
  void AddError(const absl::Status& status) {
    if (status.ok()) return;
    AddExact({name_, "run"}, std::string(status.message()), &report_);
  }

  // Forward runs.

  absl::Status RunForward(const nlohmann::json& run) {
    const nlohmann::json& outputs = run["outputs"];
    LANEWISE_ASSIGN_OR_RETURN(const Seq2SeqInputs inputs,
                              Seq2SeqInputs::Read(golden_, run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const TokenRows decoder,
                              golden_.Rows(run["inputs"], "decoder_input_ids",
                                           "decoder_attention_mask"));
    LANEWISE_ASSIGN_OR_RETURN(const Encoded encoded, model_->Encode(inputs));
    LANEWISE_ASSIGN_OR_RETURN(const Decoded decoded,
                              model_->Decode(encoded, decoder.ids));
    for (const auto& [name, tensor] : outputs.items()) {
      const bool of_encoder = absl::StartsWith(name, "encoder_");
      LANEWISE_RETURN_IF_ERROR(
          of_encoder ? CompareStack(name, outputs, inputs.rows(), encoded.stack)
                     : CompareStack(name, outputs, decoder, decoded.stack));
    }
    LANEWISE_RETURN_IF_ERROR(
        CompareAlone(inputs, decoder.ids, encoded, decoded));
    return CompareCached(encoded, decoder.ids, decoded);
  }

  absl::Status CompareStack(const std::string& name,
                            const nlohmann::json& outputs,
                            const TokenRows& rows, const StackOutput& found) {
    LANEWISE_ASSIGN_OR_RETURN(const CaseArray<float> expected,
                              golden_.Array<float>(outputs, name.c_str()));
    if (absl::EndsWith(name, "_hidden_states")) {
      return CompareLayers(name, expected, rows, found);
    }
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> wanted,
                              RealRows(expected, rows));
    CompareToReference({name_, name},
                       name == "logits" ? found.logits : found.hidden, wanted,
                       &report_);
    return absl::OkStatus();
  }

  absl::Status CompareLayers(const std::string& name,
                             const CaseArray<float>& expected,
                             const TokenRows& rows, const StackOutput& found) {
    if (expected.shape[0] != found.layers.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected ", expected.shape[0], " of them, ",
                       "found ", found.layers.size()));
    }
    for (size_t i = 0; i < found.layers.size(); ++i) {
      const absl::Span<const float> layer = expected.Row(i);
      const CaseArray<float> one{
          {expected.shape.begin() + 1, expected.shape.end()},
          {layer.begin(), layer.end()}};
      LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> wanted,
                                RealRows(one, rows));
      // The reference takes the last one after the final norm.
      const bool last = i + 1 == found.layers.size();
      CompareToReference({name_, absl::StrCat(name, " ", i)},
                         last ? found.hidden : found.layers[i], wanted,
                         &report_);
    }
    return absl::OkStatus();
  }

  // A padded batch gives the bits of its rows alone.
  absl::Status CompareAlone(const Seq2SeqInputs& inputs,
                            const std::vector<Ids>& decoder_ids,
                            const Encoded& encoded, const Decoded& decoded) {
    std::vector<float> hidden, logits;
    for (size_t i = 0; i < inputs.size(); ++i) {
      LANEWISE_ASSIGN_OR_RETURN(const Encoded row,
                                model_->Encode(inputs.Row(i)));
      LANEWISE_ASSIGN_OR_RETURN(const Decoded out,
                                model_->Decode(row, {decoder_ids[i]}));
      hidden.insert(hidden.end(), row.stack.hidden.begin(),
                    row.stack.hidden.end());
      logits.insert(logits.end(), out.stack.logits.begin(),
                    out.stack.logits.end());
    }
    CompareBits({name_, "rows alone, encoder, bits"}, hidden,
                encoded.stack.hidden, &report_);
    CompareBits({name_, "rows alone, logits, bits"}, logits,
                decoded.stack.logits, &report_);
    return absl::OkStatus();
  }

  // One token at a time gives the bits of one pass.
  absl::Status CompareCached(const Encoded& encoded,
                             const std::vector<Ids>& decoder_ids,
                             const Decoded& decoded) {
    std::vector<float> logits;
    for (size_t i = 0; i < decoder_ids.size(); ++i) {
      LANEWISE_ASSIGN_OR_RETURN(KvCache cache,
                                model_->NewCache(decoder_ids[i].size()));
      for (const int32_t id : decoder_ids[i]) {
        LANEWISE_ASSIGN_OR_RETURN(
            const std::vector<float> row,
            model_->Step({{id}}, {&cache}, {&encoded.memories[i]}));
        logits.insert(logits.end(), row.begin(), row.end());
      }
    }
    CompareBits({name_, "cached, logits, bits"}, logits, decoded.stack.logits,
                &report_);
    return absl::OkStatus();
  }

  // Generation.

  absl::StatusOr<RunParams> ReadRun(const nlohmann::json& run) const {
    if (!run["params"].is_string()) {
      LANEWISE_ASSIGN_OR_RETURN(RunParams params, ReadRunParams(run));
      return params;
    }
    LANEWISE_ASSIGN_OR_RETURN(
        const nlohmann::json config,
        checkpoint_->ReadJson(run["params"].get<std::string>()));
    return ReadParams(config);
  }

  absl::Status RunGenerate(const nlohmann::json& run) {
    LANEWISE_ASSIGN_OR_RETURN(RunParams params, ReadRun(run));
    if (params.max_new_tokens == 0) {
      const size_t length =
          params.max_length > 0 ? params.max_length : kDefaultMaxLength;
      params.max_new_tokens = length - 1;
    }
    params.prompt_length = 1;  // the start token
    LANEWISE_ASSIGN_OR_RETURN(const Seq2SeqInputs inputs,
                              Seq2SeqInputs::Read(golden_, run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const Encoded encoded, model_->Encode(inputs));
    if (params.beams.num_beams > 1) return RunBeams(run, params, encoded);
    LANEWISE_ASSIGN_OR_RETURN(const Generated found, Generate(params, encoded));
    LANEWISE_RETURN_IF_ERROR(CompareSequences(run["outputs"], params, found));
    LANEWISE_RETURN_IF_ERROR(CompareUncached(params, encoded, found));
    for (size_t i = 0; i < inputs.size(); ++i) {
      LANEWISE_ASSIGN_OR_RETURN(const Encoded row,
                                model_->Encode(inputs.Row(i)));
      LANEWISE_ASSIGN_OR_RETURN(const Generated alone, Generate(params, row));
      const std::string label = absl::StrCat("row ", i, " alone, ");
      CompareIds({name_, label + "ids"}, alone.ids[0], found.ids[i], &report_);
      CompareBits({name_, label + "bits"}, alone.logits[0], found.logits[i],
                  &report_);
    }
    return absl::OkStatus();
  }

  absl::Status CompareSequences(const nlohmann::json& outputs,
                                const RunParams& params,
                                const Generated& found) {
    LANEWISE_ASSIGN_OR_RETURN(const auto expected,
                              golden_.Array<int32_t>(outputs, "sequences"));
    if (expected.shape[0] != found.ids.size()) {
      return absl::InvalidArgumentError("sequences of another shape");
    }
    std::vector<float> step_logits;
    for (size_t row = 0; row < found.ids.size(); ++row) {
      Ids ids = {params.start_id};
      ids.insert(ids.end(), found.ids[row].begin(), found.ids[row].end());
      ids.resize(std::max(ids.size(), expected.Row(row).size()), params.pad_id);
      CompareIds({name_, absl::StrCat("sequence ", row)}, ids,
                 expected.Row(row), &report_);
      step_logits.insert(step_logits.end(), found.logits[row].begin(),
                         found.logits[row].end());
    }
    if (!outputs.contains("step_logits")) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(const auto logits,
                              golden_.Array<float>(outputs, "step_logits"));
    CompareToReference({name_, "step_logits"}, step_logits, logits.values,
                       &report_);
    return absl::OkStatus();
  }

  // The rows together, a token of each in a pass, until all have ended.
  absl::StatusOr<Generated> Generate(const RunParams& params,
                                     const Encoded& encoded) {
    const size_t rows = encoded.memories.size();
    const size_t vocab = model_->vocab_size();
    LANEWISE_ASSIGN_OR_RETURN(
        const Sampler sampler,
        Sampler::Create(params.processors, {vocab, params.eos_ids}));
    SamplerScratch scratch(vocab);
    Generated out;
    out.ids.resize(rows);
    out.logits.resize(rows);
    std::vector<KvCache> caches;
    std::vector<size_t> running;
    for (size_t i = 0; i < rows; ++i) {
      LANEWISE_ASSIGN_OR_RETURN(KvCache cache,
                                model_->NewCache(params.max_new_tokens));
      caches.push_back(std::move(cache));
      running.push_back(i);
    }
    for (size_t step = 0; step < params.max_new_tokens; ++step) {
      if (running.empty()) break;
      std::vector<Ids> next;
      std::vector<KvCache*> own;
      std::vector<const KvCache*> memories;
      for (const size_t i : running) {
        next.push_back({step == 0 ? params.start_id : out.ids[i].back()});
        own.push_back(&caches[i]);
        memories.push_back(&encoded.memories[i]);
      }
      LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> logits,
                                model_->Step(next, own, memories));
      std::vector<size_t> still;
      for (size_t j = 0; j < running.size(); ++j) {
        const size_t i = running[j];
        const auto row = absl::MakeConstSpan(logits).subspan(j * vocab, vocab);
        out.logits[i].insert(out.logits[i].end(), row.begin(), row.end());
        LANEWISE_ASSIGN_OR_RETURN(
            const int32_t id,
            Choose(sampler, params, row, out.ids[i], scratch));
        out.ids[i].push_back(id);
        if (!params.IsEnd(id)) still.push_back(i);
      }
      running = std::move(still);
    }
    return out;
  }

  absl::StatusOr<int32_t> Choose(const Sampler& sampler,
                                 const RunParams& params,
                                 absl::Span<const float> logits, const Ids& ids,
                                 SamplerScratch& scratch) const {
    Ids history = {params.start_id};
    history.insert(history.end(), ids.begin(), ids.end());
    SamplerInput input;
    input.logits = logits;
    input.history = {history, 1, ids.size() + 1 == params.max_new_tokens};
    LANEWISE_ASSIGN_OR_RETURN(const SampledToken token,
                              sampler.Step(context_.target(), input, scratch));
    return token.id;
  }

  // Each step's logits are those of one pass over all ids.
  absl::Status CompareUncached(const RunParams& params, const Encoded& encoded,
                               const Generated& found) {
    std::vector<Ids> ids;
    std::vector<float> stepped;
    for (size_t i = 0; i < found.ids.size(); ++i) {
      ids.push_back({params.start_id});
      ids.back().insert(ids.back().end(), found.ids[i].begin(),
                        found.ids[i].end() - 1);
      stepped.insert(stepped.end(), found.logits[i].begin(),
                     found.logits[i].end());
    }
    LANEWISE_ASSIGN_OR_RETURN(const Decoded whole,
                              model_->Decode(encoded, ids));
    CompareBits({name_, "one pass, bits"}, whole.stack.logits, stepped,
                &report_);
    return absl::OkStatus();
  }

  absl::Status RunBeams(const nlohmann::json& run, const RunParams& params,
                        const Encoded& encoded) {
    LANEWISE_ASSIGN_OR_RETURN(const ExpectedBeams expected,
                              ReadExpectedBeams(golden_, run, params));
    LANEWISE_ASSIGN_OR_RETURN(
        const auto found, Search(params, 0, encoded.memories.size(), encoded));
    CompareBeams(expected, found, &report_);
    std::string failure;
    for (size_t i = 0; i < found.size(); ++i) {
      LANEWISE_ASSIGN_OR_RETURN(const auto alone,
                                Search(params, i, i + 1, encoded));
      for (size_t j = 0; j < found[i].size(); ++j) {
        if (alone[0][j].ids == found[i][j].ids &&
            alone[0][j].score == found[i][j].score) {
          continue;
        }
        absl::StrAppend(&failure, "input ", i, " has another hypothesis ", j,
                        "; ");
      }
    }
    AddExact({name_, "inputs alone"}, failure, &report_);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::vector<BeamHypothesis>>> Search(
      const RunParams& params, size_t begin, size_t end,
      const Encoded& encoded) {
    BeamSearchRequest request = BeamRequest(params);
    request.vocab_size = model_->vocab_size();
    std::vector<const KvCache*> memories;
    for (size_t i = begin; i < end; ++i) {
      request.prompts.push_back({&params.start_id, 1});
      memories.push_back(&encoded.memories[i]);
    }
    DecoderInputs inputs;
    inputs.prompts = request.prompts;
    inputs.memories = memories;
    LANEWISE_ASSIGN_OR_RETURN(
        const auto stepper,
        DecoderBeamStepper::Create(model_->decoder(), model_->pool(), inputs));
    return BeamSearch(context_, request, *stepper);
  }

  // A text: its ids, the greedy continuation and its text.
  absl::Status RunText(const nlohmann::json& run) {
    if (tokenizer_ == nullptr) {
      LANEWISE_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Load(*checkpoint_));
    }
    LANEWISE_ASSIGN_OR_RETURN(
        const TextRun text,
        ReadTextRun(run, golden_.path() + "/case.json: text_runs"));
    EncodeOptions options;
    options.parse_special_tokens = true;
    LANEWISE_ASSIGN_OR_RETURN(const Ids ids,
                              tokenizer_->Encode(text.text, options));
    CompareIds({name_, "input_ids"}, ids, text.input_ids, &report_);
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json config,
                              checkpoint_->ReadJson("generation_config.json"));
    LANEWISE_ASSIGN_OR_RETURN(const RunParams defaults, ReadParams(config));
    RunParams params;
    params.start_id = defaults.start_id;
    params.max_new_tokens = kTextSteps;
    LANEWISE_ASSIGN_OR_RETURN(
        const Encoded encoded,
        model_->Encode(Seq2SeqInputs::FromIds({text.input_ids})));
    LANEWISE_ASSIGN_OR_RETURN(const Generated found, Generate(params, encoded));
    CompareIds({name_, "new_ids"}, found.ids[0], text.new_ids, &report_);
    DecodeOptions decode;
    decode.skip_special_tokens = true;
    const std::string found_text = tokenizer_->Decode(found.ids[0], decode);
    AddExact({name_, "new_text"},
             found_text == text.new_text ? "" : "other text", &report_);
    return absl::OkStatus();
  }

  const CaseFolder& golden_;
  const Context& context_;
  CaseReport& report_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Seq2SeqModel> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string name_;
};

}  // namespace

absl::StatusOr<CaseReport> RunSeq2SeqCase(const std::string& folder,
                                          const Context& context) {
  CaseReport report;
  LANEWISE_ASSIGN_OR_RETURN(const CaseFolder golden, CaseFolder::Open(folder));
  LANEWISE_RETURN_IF_ERROR(golden.CheckRuns());
  Runner runner(golden, context, &report);
  LANEWISE_RETURN_IF_ERROR(runner.Load());
  runner.RunAll();
  return report;
}

}  // namespace lanewise
