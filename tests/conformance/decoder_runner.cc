#include "tests/conformance/decoder_runner.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/sampler.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/run_params.h"
#include "tests/conformance/text_ids.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

// Negative log-likelihoods, absolute.
constexpr double kNllTolerance = 1e-4;
constexpr double kMeanNllTolerance = 1e-5;
constexpr size_t kCacheBytes = size_t{1} << 30;

class Runner {
 public:
  Runner(const CaseFolder& golden, const Context& context, CaseReport* report)
      : golden_(golden), context_(context), report_(*report) {}

  absl::Status Load() {
    LANEWISE_ASSIGN_OR_RETURN(checkpoint_, OpenModel(golden_, &report_));
    LANEWISE_ASSIGN_OR_RETURN(model_, Model::Load(*checkpoint_, context_, {}));
    Executor::Options options;
    options.activations = ActivationType::kF32;
    options.observer = [this](size_t index, const float* rows) {
      if (!keep_hidden_) return;
      hidden_.resize(index + 1);
      hidden_[index].assign(rows, rows + hidden_rows_ * model_->spec().width);
    };
    LANEWISE_ASSIGN_OR_RETURN(
        executor_, Executor::Create(*model_, context_, std::move(options)));
    pool_ = KvPagePool::Create(model_->spec(), CacheType::kF32, kCacheBytes);
    return absl::OkStatus();
  }

  void RunAll(const std::vector<std::string>& kinds) {
    const auto wanted = [&](const std::string& kind) {
      return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    };
    for (const nlohmann::json& run : golden_.runs()) {
      name_ = run["name"].get<std::string>();
      const std::string kind =
          HasBeams(run) ? "beam" : run["kind"].get<std::string>();
      if (!wanted(kind)) {
        report_.skipped.push_back(name_);
        continue;
      }
      AddError(RunOne(run, kind));
    }
    const nlohmann::json* texts = FindJson(golden_.json(), "text_runs");
    if (texts == nullptr || !wanted("text")) return;
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

  absl::Status RunOne(const nlohmann::json& run, const std::string& kind) {
    if (kind == "forward") return RunForward(run);
    if (kind == "perplexity") return RunPerplexity(run);
    if (kind == "generate") return RunGenerate(run);
    return absl::UnimplementedError(absl::StrCat("no runs of kind ", kind));
  }

  // Logits of all positions of all rows, computed as one packed batch.
  absl::StatusOr<std::vector<float>> Forward(const std::vector<Ids>& rows) {
    std::vector<KvCache> caches;
    caches.reserve(rows.size());
    std::vector<Executor::Entry> batch;
    size_t total = 0;
    for (const Ids& ids : rows) {
      caches.emplace_back(pool_);
      LANEWISE_RETURN_IF_ERROR(caches.back().Reserve(ids.size()));
      batch.push_back({ids, &caches.back(), Executor::Logits::kAll});
      total += ids.size();
    }
    std::vector<float> logits(total * model_->spec().vocab_size);
    hidden_rows_ = total;
    LANEWISE_RETURN_IF_ERROR(executor_->Forward(batch, logits.data()));
    return logits;
  }

  absl::Status RunForward(const nlohmann::json& run) {
    LANEWISE_ASSIGN_OR_RETURN(const TokenRows rows,
                              golden_.Rows(run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const auto expected,
                              golden_.Array<float>(run["outputs"], "logits"));
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> wanted,
                              CaseFolder::RealPositions(expected, rows));
    keep_hidden_ = run["outputs"].contains("hidden_states");
    hidden_.clear();
    absl::StatusOr<std::vector<float>> logits = Forward(rows.ids);
    keep_hidden_ = false;
    LANEWISE_RETURN_IF_ERROR(logits.status());
    CompareToReference({name_, "logits"}, *logits, wanted, &report_);
    LANEWISE_RETURN_IF_ERROR(CompareRowsAlone(rows.ids, *logits));
    LANEWISE_RETURN_IF_ERROR(CompareChunks(rows.ids, *logits));
    if (run["outputs"].contains("hidden_states")) {
      LANEWISE_RETURN_IF_ERROR(CompareHidden(run["outputs"]));
    }
    return absl::OkStatus();
  }

  // A padded batch gives the bits of its rows alone.
  absl::Status CompareRowsAlone(const std::vector<Ids>& rows,
                                const std::vector<float>& batch) {
    std::vector<float> alone;
    for (const Ids& ids : rows) {
      LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> row, Forward({ids}));
      alone.insert(alone.end(), row.begin(), row.end());
    }
    CompareBits({name_, "rows alone, bits"}, alone, batch, &report_);
    return absl::OkStatus();
  }

  // A prompt in chunks gives the bits of the whole.
  absl::Status CompareChunks(const std::vector<Ids>& rows,
                             const std::vector<float>& batch) {
    constexpr size_t kChunk = 3;
    const size_t vocab = model_->spec().vocab_size;
    std::vector<float> all;
    for (const Ids& ids : rows) {
      KvCache cache(pool_);
      LANEWISE_RETURN_IF_ERROR(cache.Reserve(ids.size()));
      std::vector<float> logits(ids.size() * vocab);
      while (cache.length() < ids.size()) {
        const size_t done = cache.length();
        Executor::Entry entry{absl::MakeConstSpan(ids).subspan(done, kChunk),
                              &cache, Executor::Logits::kAll};
        entry.prompt_length = ids.size();
        LANEWISE_RETURN_IF_ERROR(
            executor_->Forward({&entry, 1}, logits.data() + done * vocab));
      }
      all.insert(all.end(), logits.begin(), logits.end());
    }
    CompareBits({name_, "chunks, bits"}, all, batch, &report_);
    return absl::OkStatus();
  }

  // All but the last entry, which the reference takes after the final norm.
  absl::Status CompareHidden(const nlohmann::json& outputs) {
    LANEWISE_ASSIGN_OR_RETURN(const auto expected,
                              golden_.Array<float>(outputs, "hidden_states"));
    for (size_t i = 0; i + 1 < expected.shape[0]; ++i) {
      const std::vector<float> none;
      CompareToReference({name_, absl::StrCat("hidden state ", i)},
                         i < hidden_.size() ? hidden_[i] : none,
                         expected.Row(i), &report_);
    }
    return absl::OkStatus();
  }

  absl::Status RunPerplexity(const nlohmann::json& run) {
    LANEWISE_ASSIGN_OR_RETURN(const TokenRows rows,
                              golden_.Rows(run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> logits,
                              Forward(rows.ids));
    const Ids& ids = rows.ids[0];
    const size_t vocab = model_->spec().vocab_size;
    std::vector<float> nll;
    double sum = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const float* row = logits.data() + i * vocab;
      const double value =
          LogSumExp(context_.target(), row, vocab) - double{row[ids[i + 1]]};
      nll.push_back(static_cast<float>(value));
      sum += value;
    }
    const nlohmann::json& outputs = run["outputs"];
    LANEWISE_ASSIGN_OR_RETURN(const auto expected,
                              golden_.Array<float>(outputs, "token_nll"));
    CompareAbsolute({name_, "token_nll"}, nll, expected.values, kNllTolerance,
                    &report_);
    LANEWISE_ASSIGN_OR_RETURN(const auto mean,
                              golden_.Array<float>(outputs, "mean_nll"));
    const float found =
        static_cast<float>(sum / static_cast<double>(nll.size()));
    CompareAbsolute({name_, "mean_nll"}, {&found, 1}, mean.values,
                    kMeanNllTolerance, &report_);
    LANEWISE_ASSIGN_OR_RETURN(const auto last,
                              golden_.Array<float>(outputs, "last_logits"));
    CompareToReference(
        {name_, "last_logits"},
        absl::MakeConstSpan(logits).subspan((ids.size() - 1) * vocab),
        last.values, &report_);
    return absl::OkStatus();
  }

  absl::Status RunGenerate(const nlohmann::json& run) {
    LANEWISE_ASSIGN_OR_RETURN(const TokenRows rows,
                              golden_.Rows(run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(
        const auto expected,
        golden_.Array<int32_t>(run["outputs"], "sequences"));
    LANEWISE_ASSIGN_OR_RETURN(const RunParams params, ReadRunParams(run));
    if (expected.shape[0] != rows.ids.size() ||
        expected.Row(0).size() < params.prompt_length) {
      return absl::InvalidArgumentError("sequences of another shape");
    }
    // Where the reference's rows depend on the longest of their batch, through
    // RoPE that depends on the length, each row counts as that long.
    const nlohmann::json* consistent =
        FindJson(golden_.json(), "row_consistency");
    if (consistent != nullptr) consistent = FindJson(*consistent, name_);
    const size_t counted_length = consistent != nullptr && *consistent == false
                                      ? params.prompt_length
                                      : 0;
    std::vector<float> step_logits;
    std::string failure;
    for (size_t row = 0; row < rows.ids.size(); ++row) {
      LANEWISE_ASSIGN_OR_RETURN(
          Ids found,
          GenerateRow(rows.ids[row], params, counted_length, &step_logits));
      const auto wanted = expected.Row(row).subspan(params.prompt_length);
      found.resize(std::max(found.size(), wanted.size()), params.pad_id);
      if (absl::MakeConstSpan(found) != wanted) {
        absl::StrAppend(&failure, "row ", row, " gives other token ids; ");
      }
    }
    AddExact({name_, "sequences"}, failure, &report_);
    if (run["outputs"].contains("step_logits")) {
      LANEWISE_ASSIGN_OR_RETURN(
          const auto logits,
          golden_.Array<float>(run["outputs"], "step_logits"));
      CompareToReference({name_, "step_logits"}, step_logits, logits.values,
                         &report_);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Ids> GenerateRow(const Ids& prompt, const RunParams& params,
                                  size_t counted_length,
                                  std::vector<float>* step_logits) {
    const size_t vocab = model_->spec().vocab_size;
    LANEWISE_ASSIGN_OR_RETURN(
        const Sampler sampler,
        Sampler::Create(params.processors, {vocab, params.eos_ids}));
    SamplerScratch scratch(vocab);
    KvCache cache(pool_);
    LANEWISE_RETURN_IF_ERROR(
        cache.Reserve(prompt.size() + params.max_new_tokens));
    std::vector<float> logits(vocab);
    Ids history = prompt;
    Ids next = prompt;
    while (history.size() < prompt.size() + params.max_new_tokens) {
      Executor::Entry entry{next, &cache, Executor::Logits::kLast};
      if (counted_length > 0) {
        entry.prompt_length = counted_length + history.size() - prompt.size();
      }
      LANEWISE_RETURN_IF_ERROR(executor_->Forward({&entry, 1}, logits.data()));
      if (step_logits != nullptr) {
        step_logits->insert(step_logits->end(), logits.begin(), logits.end());
      }
      SamplerInput input;
      input.logits = logits;
      input.history = {history, prompt.size()};
      LANEWISE_ASSIGN_OR_RETURN(
          const SampledToken token,
          sampler.Step(context_.target(), input, scratch));
      history.push_back(token.id);
      next = {token.id};
      if (params.IsEnd(token.id)) break;
    }
    return Ids(history.begin() + prompt.size(), history.end());
  }

  // A text: its ids, the greedy continuation, and the texts of both.
  absl::Status RunText(const nlohmann::json& run) {
    if (tokenizer_ == nullptr) {
      LANEWISE_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Load(*checkpoint_));
    }
    const std::string file = golden_.path() + "/case.json: text_runs";
    LANEWISE_ASSIGN_OR_RETURN(TextRun text, ReadTextRun(run, file));
    text.name = name_;
    CompareTextIds(*tokenizer_, text, &report_);
    RunParams params;
    params.max_new_tokens = text.new_ids.size();
    LANEWISE_ASSIGN_OR_RETURN(const Ids found,
                              GenerateRow(text.input_ids, params, 0, nullptr));
    CompareIds({name_, "new_ids"}, found, text.new_ids, &report_);
    AddExact({name_, "new_text"},
             tokenizer_->Decode(found, {}) == text.new_text ? "" : "other text",
             &report_);
    if (!run.contains("full_text")) return absl::OkStatus();
    Ids all = text.input_ids;
    all.insert(all.end(), found.begin(), found.end());
    LANEWISE_ASSIGN_OR_RETURN(const std::string full,
                              GetString(run, file, "full_text"));
    AddExact({name_, "full_text"},
             tokenizer_->Decode(all, {}) == full ? "" : "other text", &report_);
    return absl::OkStatus();
  }

  const CaseFolder& golden_;
  const Context& context_;
  CaseReport& report_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<KvPagePool> pool_;
  std::string name_;
  bool keep_hidden_ = false;
  size_t hidden_rows_ = 0;
  std::vector<std::vector<float>> hidden_;
};

}  // namespace

absl::StatusOr<CaseReport> RunDecoderCase(
    const std::string& folder, const Context& context,
    const std::vector<std::string>& kinds) {
  LANEWISE_ASSIGN_OR_RETURN(const CaseFolder golden, CaseFolder::Open(folder));
  CaseReport report;
  Runner runner(golden, context, &report);
  LANEWISE_RETURN_IF_ERROR(runner.Load());
  runner.RunAll(kinds);
  return report;
}

}  // namespace lanewise
