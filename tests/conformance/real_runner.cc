#include "tests/conformance/real_runner.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/format/text_file.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/real_encoder.h"
#include "tests/conformance/real_whisper.h"
#include "tests/conformance/run_params.h"
#include "tests/conformance/tokenizer_runner.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

constexpr double kNllTolerance = 1e-4;
constexpr size_t kLogitStride = 64;  // of the ids in logits_every_64th

// Some of the logits [positions, vocab]: the ids of each position.
std::vector<float> Gather(absl::Span<const float> logits, size_t vocab,
                          absl::Span<const int32_t> ids, size_t per_position) {
  std::vector<float> out;
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t at = i / per_position * vocab + static_cast<size_t>(ids[i]);
    out.push_back(at < logits.size() ? logits[at] : 0.0f);
  }
  return out;
}

class DecoderRunner {
 public:
  DecoderRunner(const CaseFolder& golden, const Context& context,
                CaseReport* report)
      : golden_(golden), context_(context), report_(*report) {}

  absl::Status Load(const std::string& weights) {
    EngineOptions options;
    options.activations = ActivationPrecision::kF32;
    options.cache = CachePrecision::kF32;
    options.target = std::string(context_.target().name());
    options.threads = context_.threads();
    LANEWISE_ASSIGN_OR_RETURN(engine_, Engine::Load(weights, options));
    return absl::OkStatus();
  }

  void RunAll() {
    for (const nlohmann::json& run : golden_.runs()) {
      name_ = run["name"].get<std::string>();
      AddError(RunLogits(run));
    }
    const nlohmann::json* texts = FindJson(golden_.json(), "text_runs");
    if (texts == nullptr) return;
    for (const nlohmann::json& run : *texts) {
      name_ = "text";
      AddError(RunText(run));
    }
  }

 private:
  void AddError(const absl::Status& status) {
    if (status.ok()) return;
    AddExact({name_, "run"}, std::string(status.message()), &report_);
  }

  absl::Status RunLogits(const nlohmann::json& run) {
    const nlohmann::json& outputs = run["outputs"];
    LANEWISE_ASSIGN_OR_RETURN(const TokenRows rows,
                              golden_.Rows(run["inputs"]));
    LANEWISE_ASSIGN_OR_RETURN(const double deviation,
                              GetFloat(run, golden_.path(), "logits_std"));
    const Ids& ids = rows.ids[0];
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> logits,
                              engine_->Logits(ids));
    const size_t vocab = engine_->vocab_size();
    LANEWISE_ASSIGN_OR_RETURN(const auto last,
                              golden_.Array<float>(outputs, "last_logits"));
    CompareRelative({name_, "last_logits"},
                    absl::MakeConstSpan(logits).last(vocab), last.values,
                    deviation, &report_);

    LANEWISE_ASSIGN_OR_RETURN(
        const auto sparse, golden_.Array<float>(outputs, "logits_every_64th"));
    Ids every;
    for (size_t id = 0; id + kLogitStride <= vocab; id += kLogitStride) {
      every.push_back(static_cast<int32_t>(id));
    }
    Ids sparse_ids;
    for (size_t p = 0; p < ids.size(); ++p) {
      sparse_ids.insert(sparse_ids.end(), every.begin(), every.end());
    }
    CompareRelative({name_, "logits_every_64th"},
                    Gather(logits, vocab, sparse_ids, every.size()),
                    sparse.values, deviation, &report_);

    LANEWISE_ASSIGN_OR_RETURN(const auto top_ids,
                              golden_.Array<int32_t>(outputs, "top20_ids"));
    LANEWISE_ASSIGN_OR_RETURN(const auto top_values,
                              golden_.Array<float>(outputs, "top20_values"));
    CompareRelative({name_, "top20_values"},
                    Gather(logits, vocab, top_ids.values,
                           top_ids.values.size() / ids.size()),
                    top_values.values, deviation, &report_);
    return CompareNll(ids, logits, outputs);
  }

  absl::Status CompareNll(const Ids& ids, absl::Span<const float> logits,
                          const nlohmann::json& outputs) {
    const size_t vocab = engine_->vocab_size();
    std::vector<float> nll;
    for (size_t p = 0; p + 1 < ids.size(); ++p) {
      const float* row = logits.data() + p * vocab;
      nll.push_back(
          static_cast<float>(LogSumExp(context_.target(), row, vocab) -
                             double{row[static_cast<size_t>(ids[p + 1])]}));
    }
    LANEWISE_ASSIGN_OR_RETURN(const auto expected,
                              golden_.Array<float>(outputs, "token_nll"));
    CompareAbsolute({name_, "token_nll"}, nll, expected.values, kNllTolerance,
                    &report_);
    return absl::OkStatus();
  }

  absl::Status RunText(const nlohmann::json& run) {
    const std::string file = golden_.path() + "/case.json: text_runs";
    LANEWISE_ASSIGN_OR_RETURN(const TextRun text, ReadTextRun(run, file));
    name_ = text.name;
    GenerateRequest request;
    request.max_tokens = 32;
    if (FindJson(run, "messages") != nullptr) {
      for (const nlohmann::json& message : run["messages"]) {
        Message one;
        LANEWISE_ASSIGN_OR_RETURN(one.role, GetString(message, file, "role"));
        LANEWISE_ASSIGN_OR_RETURN(one.content,
                                  GetString(message, file, "content"));
        request.messages.push_back(std::move(one));
      }
      LANEWISE_ASSIGN_OR_RETURN(const std::string rendered,
                                engine_->RenderChat(request.messages));
      AddExact({name_, "rendered"}, rendered == text.text ? "" : "other text",
               &report_);
    } else {
      request.prompt = text.text;
    }
    LANEWISE_ASSIGN_OR_RETURN(const Ids ids, engine_->PromptIds(request));
    CompareIds({name_, "input_ids"}, ids, text.input_ids, &report_);
    LANEWISE_ASSIGN_OR_RETURN(const GenerateResult result,
                              engine_->Generate(request, {}));
    CompareIds({name_, "new_ids"}, result.ids, text.new_ids, &report_);
    LANEWISE_ASSIGN_OR_RETURN(const std::string new_text,
                              GetString(run, file, "new_text_skip"));
    AddExact({name_, "new_text"}, result.text == new_text ? "" : "other text",
             &report_);
    return absl::OkStatus();
  }

  const CaseFolder& golden_;
  const Context& context_;
  CaseReport& report_;
  std::unique_ptr<Engine> engine_;
  std::string name_;
};

}  // namespace

absl::StatusOr<CaseReport> RunRealCase(const std::string& folder,
                                       const std::string& weights,
                                       const Context& context) {
  LANEWISE_ASSIGN_OR_RETURN(const CaseFolder golden, CaseFolder::Open(folder));
  LANEWISE_ASSIGN_OR_RETURN(const std::string family,
                            GetString(golden.json(), folder, "family"));
  CaseReport report;
  LANEWISE_ASSIGN_OR_RETURN(report.name,
                            GetString(golden.json(), folder, "name"));
  if (family == "real-encoder-decoder") {
    LANEWISE_RETURN_IF_ERROR(RunRealWhisper(golden, weights, context, &report));
    return report;
  }
  LANEWISE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(weights));
  report.weights = WeightTypes(*checkpoint);
  if (family == "real-decoder") {
    DecoderRunner runner(golden, context, &report);
    LANEWISE_RETURN_IF_ERROR(runner.Load(weights));
    runner.RunAll();
  } else if (family == "real-encoder") {
    LANEWISE_RETURN_IF_ERROR(
        RunRealEncoder(golden, *checkpoint, weights, context, &report));
  } else {
    return absl::UnimplementedError(
        absl::StrCat("models of the kind ", family, " are not run"));
  }
  if (FileExists(folder + "/tokenizer")) {
    LANEWISE_ASSIGN_OR_RETURN(const auto tokenizer,
                              Tokenizer::Load(*checkpoint));
    AddGoldens(CompareGoldens(*tokenizer, folder + "/tokenizer"), &report);
  }
  return report;
}

std::string FindRealWeights(const std::string& folder,
                            const std::string& models) {
  if (models.empty()) return "";
  const std::string name = std::filesystem::path(folder).filename().string();
  std::vector<std::string> candidates = {name, name + ".gguf"};
  const auto golden = CaseFolder::Open(folder);
  if (golden.ok()) {
    const nlohmann::json* source = FindJson(golden->json(), "source");
    const nlohmann::json* member =
        source == nullptr ? nullptr : FindJson(*source, "member");
    if (member != nullptr && member->is_string()) {
      candidates.push_back(std::filesystem::path(member->get<std::string>())
                               .filename()
                               .string());
    }
  }
  for (const std::string& candidate : candidates) {
    const std::string path = absl::StrCat(models, "/", candidate);
    if (FileExists(path)) return path;
  }
  return "";
}

}  // namespace lanewise
