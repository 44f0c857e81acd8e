#include "tests/conformance/case_runner.h"

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
#include "runtime/sampler.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

// Tolerances of the suite: logits and hidden states relative to their standard
// deviation, negative log-likelihoods absolute.
constexpr double kRelativeTolerance = 1e-3;
constexpr double kNllTolerance = 1e-4;
constexpr double kMeanNllTolerance = 1e-5;
constexpr size_t kCacheBytes = size_t{1} << 30;

struct FloatTensor {
  std::vector<uint64_t> shape;
  std::vector<float> values;
};
struct IntTensor {
  std::vector<uint64_t> shape;
  std::vector<int32_t> values;

  Ids Row(size_t row) const {
    const size_t n = shape.back();
    return Ids(values.begin() + row * n, values.begin() + (row + 1) * n);
  }
};

double StandardDeviation(const std::vector<float>& values) {
  double sum = 0, squares = 0;
  for (const float v : values) sum += v;
  const double mean = sum / static_cast<double>(values.size());
  for (const float v : values) squares += (v - mean) * (v - mean);
  return std::sqrt(squares / static_cast<double>(values.size()));
}

class Runner {
 public:
  Runner(const Context& context, CaseReport* report)
      : context_(context), report_(*report) {}

  absl::Status Load(const std::string& folder) {
    std::ifstream stream(folder + "/case.json");
    std::stringstream text;
    text << stream.rdbuf();
    LANEWISE_ASSIGN_OR_RETURN(case_, ParseJson(text.str(), "case.json"));
    LANEWISE_ASSIGN_OR_RETURN(report_.name,
                              GetString(case_, "case.json", "name"));
    LANEWISE_ASSIGN_OR_RETURN(
        report_.architecture,
        GetStringOr(case_, "case.json", "architecture", "?"));
    LANEWISE_ASSIGN_OR_RETURN(
        SafetensorsFile golden,
        SafetensorsFile::Open(folder + "/golden.safetensors"));
    golden_ = std::make_unique<SafetensorsFile>(std::move(golden));
    LANEWISE_ASSIGN_OR_RETURN(checkpoint_, Checkpoint::Open(folder));
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

  absl::Status RunAll(const std::vector<std::string>& kinds) {
    for (const nlohmann::json& run : case_["runs"]) {
      std::string kind = run.value("kind", "");
      const nlohmann::json params =
          run.value("params", nlohmann::json::object());
      if (params.is_object() && params.value("num_beams", 1) > 1) kind = "beam";
      name_ = run.value("name", "");
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
        report_.skipped.push_back(name_);
        continue;
      }
      absl::Status status;
      if (kind == "forward") {
        status = RunForward(run);
      } else if (kind == "perplexity") {
        status = RunPerplexity(run);
      } else {
        status = RunGenerate(run, params);
      }
      if (!status.ok()) {
        report_.comparisons.push_back(
            {name_, "run", 0, 0, std::string(status.message())});
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<FloatTensor> Floats(const nlohmann::json& fields,
                                     const char* field) {
    LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor, Find(fields, field));
    FloatTensor out{tensor->shape, std::vector<float>(tensor->elements())};
    std::memcpy(out.values.data(), tensor->data.data(), tensor->data.size());
    return out;
  }

  absl::StatusOr<IntTensor> Ints(const nlohmann::json& fields,
                                 const char* field) {
    LANEWISE_ASSIGN_OR_RETURN(const Tensor* tensor, Find(fields, field));
    IntTensor out{tensor->shape, std::vector<int32_t>(tensor->elements())};
    std::memcpy(out.values.data(), tensor->data.data(), tensor->data.size());
    return out;
  }

  absl::StatusOr<const Tensor*> Find(const nlohmann::json& fields,
                                     const char* field) {
    const Tensor* tensor = golden_->Find(fields.value(field, ""));
    if (tensor != nullptr) return tensor;
    return absl::NotFoundError(absl::StrCat("golden field ", field));
  }

  // Real tokens of each row, by the mask where there is one.
  absl::StatusOr<std::vector<Ids>> Rows(const nlohmann::json& inputs) {
    LANEWISE_ASSIGN_OR_RETURN(const IntTensor ids, Ints(inputs, "input_ids"));
    IntTensor mask{ids.shape, std::vector<int32_t>(ids.values.size(), 1)};
    if (inputs.contains("attention_mask")) {
      LANEWISE_ASSIGN_OR_RETURN(mask, Ints(inputs, "attention_mask"));
    }
    std::vector<Ids> rows(ids.shape[0]);
    first_.assign(rows.size(), 0);
    for (size_t row = 0; row < rows.size(); ++row) {
      const Ids all = ids.Row(row), real = mask.Row(row);
      first_[row] = std::find(real.begin(), real.end(), 1) - real.begin();
      for (size_t i = 0; i < all.size(); ++i) {
        if (real[i] != 0) rows[row].push_back(all[i]);
      }
    }
    return rows;
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

  void Compare(const std::string& output, absl::Span<const float> found,
               absl::Span<const float> expected, double scale,
               double tolerance) {
    Comparison c{name_, output, 0, tolerance, ""};
    if (found.size() != expected.size()) {
      c.failure = absl::StrCat("expected ", expected.size(), " values, found ",
                               found.size());
    } else {
      for (size_t i = 0; i < found.size(); ++i) {
        const double error =
            std::fabs(double{found[i]} - double{expected[i]}) / scale;
        if (!(error <= c.error)) c.error = error;  // NaN counts as an error
      }
      if (!(c.error <= tolerance)) {
        c.failure = absl::StrCat("error ", c.error, " above ", tolerance);
      }
    }
    report_.comparisons.push_back(std::move(c));
  }

  absl::Status RunForward(const nlohmann::json& run) {
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<Ids> rows, Rows(run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const FloatTensor expected,
                              Floats(run["outputs"], "logits"));
    keep_hidden_ = run["outputs"].contains("hidden_states");
    absl::StatusOr<std::vector<float>> logits = Forward(rows);
    keep_hidden_ = false;
    LANEWISE_RETURN_IF_ERROR(logits.status());
    const size_t vocab = model_->spec().vocab_size;
    const size_t length = expected.shape[1];
    std::vector<float> wanted;  // only real positions, as they are packed
    for (size_t row = 0; row < rows.size(); ++row) {
      const auto begin =
          expected.values.begin() + (row * length + first_[row]) * vocab;
      wanted.insert(wanted.end(), begin, begin + rows[row].size() * vocab);
    }
    Compare("logits", *logits, wanted, StandardDeviation(wanted),
            kRelativeTolerance);
    LANEWISE_RETURN_IF_ERROR(CompareRowsAlone(rows, *logits));
    LANEWISE_RETURN_IF_ERROR(CompareChunks(rows, *logits));
    if (run["outputs"].contains("hidden_states")) {
      LANEWISE_RETURN_IF_ERROR(CompareHidden(run["outputs"]));
    }
    return absl::OkStatus();
  }

  // A padded batch gives the bits of its rows alone.
  absl::Status CompareRowsAlone(const std::vector<Ids>& rows,
                                const std::vector<float>& batch) {
    size_t offset = 0;
    Comparison c{name_, "rows alone, bits", 0, 0, ""};
    for (const Ids& ids : rows) {
      LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> alone, Forward({ids}));
      if (std::memcmp(alone.data(), batch.data() + offset,
                      alone.size() * sizeof(float)) != 0) {
        c.failure = "a row alone differs from the row in its batch";
      }
      offset += alone.size();
    }
    report_.comparisons.push_back(std::move(c));
    return absl::OkStatus();
  }

  // A prompt in chunks gives the bits of the whole.
  absl::Status CompareChunks(const std::vector<Ids>& rows,
                             const std::vector<float>& batch) {
    constexpr size_t kChunk = 3;
    const size_t vocab = model_->spec().vocab_size;
    Comparison c{name_, "chunks, bits", 0, 0, ""};
    size_t offset = 0;
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
      if (std::memcmp(logits.data(), batch.data() + offset,
                      logits.size() * sizeof(float)) != 0) {
        c.failure = "a row in chunks differs from the row in its batch";
      }
      offset += logits.size();
    }
    report_.comparisons.push_back(std::move(c));
    return absl::OkStatus();
  }

  // All but the last entry, which the reference takes after the final norm.
  absl::Status CompareHidden(const nlohmann::json& outputs) {
    LANEWISE_ASSIGN_OR_RETURN(const FloatTensor expected,
                              Floats(outputs, "hidden_states"));
    const size_t per_layer = expected.values.size() / expected.shape[0];
    for (size_t i = 0; i + 1 < expected.shape[0]; ++i) {
      const std::vector<float> wanted(
          expected.values.begin() + i * per_layer,
          expected.values.begin() + (i + 1) * per_layer);
      Compare(absl::StrCat("hidden state ", i), hidden_[i], wanted,
              StandardDeviation(wanted), kRelativeTolerance);
    }
    return absl::OkStatus();
  }

  absl::Status RunPerplexity(const nlohmann::json& run) {
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<Ids> rows, Rows(run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> logits, Forward(rows));
    const Ids& ids = rows[0];
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
    LANEWISE_ASSIGN_OR_RETURN(const FloatTensor expected,
                              Floats(run["outputs"], "token_nll"));
    Compare("token_nll", nll, expected.values, 1.0, kNllTolerance);
    LANEWISE_ASSIGN_OR_RETURN(const FloatTensor mean,
                              Floats(run["outputs"], "mean_nll"));
    const float found =
        static_cast<float>(sum / static_cast<double>(nll.size()));
    Compare("mean_nll", {&found, 1}, mean.values, 1.0, kMeanNllTolerance);
    LANEWISE_ASSIGN_OR_RETURN(const FloatTensor last,
                              Floats(run["outputs"], "last_logits"));
    Compare("last_logits",
            absl::MakeConstSpan(logits).subspan((ids.size() - 1) * vocab),
            last.values, StandardDeviation(last.values), kRelativeTolerance);
    return absl::OkStatus();
  }

  absl::Status RunGenerate(const nlohmann::json& run,
                           const nlohmann::json& params) {
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<Ids> rows, Rows(run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const IntTensor expected,
                              Ints(run["outputs"], "sequences"));
    const size_t prompt_length = run.value("prompt_length", size_t{0});
    Comparison c{name_, "sequences", 0, 0, ""};
    std::vector<float> step_logits;
    // Where the reference's rows depend on the longest of their batch, through
    // RoPE that depends on the length, each row counts as that long.
    const nlohmann::json consistent =
        case_.value("row_consistency", nlohmann::json::object())
            .value(name_, nlohmann::json(true));
    const size_t counted_length = consistent == false ? prompt_length : 0;
    for (size_t row = 0; row < rows.size(); ++row) {
      LANEWISE_ASSIGN_OR_RETURN(
          Ids found,
          GenerateRow(rows[row], params, counted_length, &step_logits));
      const Ids whole = expected.Row(row);
      const Ids wanted(whole.begin() + prompt_length, whole.end());
      found.resize(std::max(found.size(), wanted.size()),
                   params.value("pad_token_id", 0));
      if (found != wanted) {
        c.failure =
            absl::StrCat(c.failure, "row ", row, " gives other token ids; ");
      }
    }
    report_.comparisons.push_back(std::move(c));
    if (run["outputs"].contains("step_logits")) {
      LANEWISE_ASSIGN_OR_RETURN(const FloatTensor logits,
                                Floats(run["outputs"], "step_logits"));
      Compare("step_logits", step_logits, logits.values,
              StandardDeviation(logits.values), kRelativeTolerance);
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<SamplingOptions> ReadParams(
      const nlohmann::json& params) {
    SamplingOptions options;
    for (const auto& [key, value] : params.items()) {
      if (key == "repetition_penalty") {
        options.repetition_penalty = value.get<double>();
      } else if (key == "no_repeat_ngram_size") {
        options.no_repeat_ngram = value.get<int32_t>();
      } else if (key == "min_new_tokens") {
        options.min_new_tokens = value.get<int32_t>();
      } else if (key != "do_sample" && key != "num_beams" &&
                 key != "use_cache" && key != "max_new_tokens" &&
                 key != "pad_token_id" && key != "eos_token_id") {
        return absl::UnimplementedError(
            absl::StrCat("parameter ", key, " is not supported"));
      }
    }
    return options;
  }

  absl::StatusOr<Ids> GenerateRow(const Ids& prompt,
                                  const nlohmann::json& params,
                                  size_t counted_length,
                                  std::vector<float>* step_logits) {
    LANEWISE_ASSIGN_OR_RETURN(const SamplingOptions options,
                              ReadParams(params));
    std::vector<int32_t> ends;
    if (params.contains("eos_token_id")) ends = {params["eos_token_id"]};
    const size_t steps = params.value("max_new_tokens", size_t{0});
    LANEWISE_ASSIGN_OR_RETURN(
        const Sampler sampler,
        Sampler::Create(options, {model_->spec().vocab_size, ends}));
    SamplerScratch scratch(model_->spec().vocab_size);
    KvCache cache(pool_);
    LANEWISE_RETURN_IF_ERROR(cache.Reserve(prompt.size() + steps));
    std::vector<float> logits(model_->spec().vocab_size);
    Ids history = prompt;
    Ids next = prompt;
    while (history.size() < prompt.size() + steps) {
      Executor::Entry entry{next, &cache, Executor::Logits::kLast};
      if (counted_length > 0) {
        entry.prompt_length = counted_length + history.size() - prompt.size();
      }
      LANEWISE_RETURN_IF_ERROR(executor_->Forward({&entry, 1}, logits.data()));
      step_logits->insert(step_logits->end(), logits.begin(), logits.end());
      SamplerInput input;
      input.logits = logits;
      input.history = {history, prompt.size()};
      LANEWISE_ASSIGN_OR_RETURN(
          const SampledToken token,
          sampler.Step(context_.target(), input, scratch));
      history.push_back(token.id);
      next = {token.id};
      if (std::find(ends.begin(), ends.end(), token.id) != ends.end()) break;
    }
    return Ids(history.begin() + prompt.size(), history.end());
  }

  const Context& context_;
  CaseReport& report_;
  nlohmann::json case_;
  std::unique_ptr<SafetensorsFile> golden_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<KvPagePool> pool_;
  std::string name_;
  std::vector<size_t> first_;  // first real position of each row
  bool keep_hidden_ = false;
  size_t hidden_rows_ = 0;
  std::vector<std::vector<float>> hidden_;
};

}  // namespace

bool CaseReport::passed() const {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& c) { return c.failure.empty(); });
}

std::string CaseReport::Failures() const {
  std::string out;
  for (const Comparison& c : comparisons) {
    if (c.failure.empty()) continue;
    absl::StrAppend(&out, name, ": ", c.run, ": ", c.output, ": ", c.failure,
                    "\n");
  }
  return out;
}

absl::StatusOr<CaseReport> RunDecoderCase(
    const std::string& folder, const Context& context,
    const std::vector<std::string>& kinds) {
  CaseReport report;
  Runner runner(context, &report);
  LANEWISE_RETURN_IF_ERROR(runner.Load(folder));
  LANEWISE_RETURN_IF_ERROR(runner.RunAll(kinds));
  return report;
}

}  // namespace lanewise
