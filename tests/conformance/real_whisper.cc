#include "tests/conformance/real_whisper.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/kv_cache.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/status_macros.h"
#include "simd/vector_ops.h"
#include "tests/conformance/ctranslate2_folder.h"
#include "tests/conformance/seq2seq_model.h"
#include "tests/conformance/tokenizer_runner.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBands = 80, kFrames = 3000;
constexpr int32_t kEnd = 50256;
constexpr size_t kMaxTokens = 32;

// Of the suite for this case, whose weights were f16 in the source: relative to
// the row's norm.
constexpr double kRowTolerance = 2e-2;

class TemporaryFolder {
 public:
  absl::Status Create() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    std::string path = (parent / "lanewise-whisper-XXXXXX").string();
    if (error || mkdtemp(path.data()) == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot make a folder in ", parent.string()));
    }
    path_ = path;
    return absl::OkStatus();
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The spectrogram that case.json gives by formula: [bands, frames].
std::vector<float> Spectrogram() {
  constexpr double kPi = 3.14159265358979323846;
  std::vector<float> mel;
  mel.reserve(kBands * kFrames);
  for (size_t band = 0; band < kBands; ++band) {
    const double b = static_cast<double>(band) / kBands;
    for (size_t frame = 0; frame < kFrames; ++frame) {
      const double x = static_cast<double>(frame) / kFrames;
      mel.push_back(static_cast<float>(std::sin(2 * kPi * (3 + 5 * b) * x * 2) *
                                           std::exp(-3 * b) * 0.8 +
                                       0.3 * std::cos(40 * b + 11 * x) - 0.4));
    }
  }
  return mel;
}

double Norm(absl::Span<const float> row) {
  double sum = 0;
  for (const float x : row) sum += double{x} * x;
  return std::sqrt(sum);
}

class Runner {
 public:
  Runner(const CaseFolder& golden, const Context& context, CaseReport* report)
      : golden_(golden), context_(context), report_(*report) {}

  absl::Status Load(const std::string& folder) {
    LANEWISE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(folder));
    report_.weights = WeightTypes(*checkpoint);
    LANEWISE_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Load(*checkpoint));
    LANEWISE_ASSIGN_OR_RETURN(model_,
                              Seq2SeqModel::Load(*checkpoint, context_));
    return absl::OkStatus();
  }

  absl::Status RunAll() {
    const std::vector<float> mel = Spectrogram();
    double sum = 0;
    for (const float value : mel) sum += value;
    LANEWISE_ASSIGN_OR_RETURN(
        const double expected,
        GetFloat(golden_.json(), golden_.path(), "mel_sum"));
    AddExact({"encoder", "spectrogram"},
             std::fabs(sum - expected) < 0.1
                 ? ""
                 : absl::StrCat("sum ", sum, " instead of ", expected),
             &report_);
    LANEWISE_ASSIGN_OR_RETURN(
        const Encoded encoded,
        model_->Encode(Seq2SeqInputs::FromFeatures({mel})));
    LANEWISE_RETURN_IF_ERROR(CompareRows(encoded.stack.hidden));
    LANEWISE_RETURN_IF_ERROR(Decode(encoded));
    const std::string texts = golden_.path() + "/tokenizer";
    if (fs::exists(texts)) {
      AddGoldens(CompareGoldens(*tokenizer_, texts), &report_);
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<std::vector<float>> Golden(const char* name) const {
    const nlohmann::json fields = {{name, name}};
    LANEWISE_ASSIGN_OR_RETURN(const auto array,
                              golden_.Array<float>(fields, name));
    return array.values;
  }

  absl::Status CompareRows(const std::vector<float>& hidden) {
    const size_t width = model_->model().encoder()->spec().width;
    const size_t rows = hidden.size() / width;
    const auto row_of = [&](size_t row) {
      return absl::MakeConstSpan(hidden).subspan(row * width, width);
    };
    LANEWISE_ASSIGN_OR_RETURN(const auto expected,
                              Golden("encoder_rows_0_8_700_1499"));
    const size_t chosen[] = {0, 8, 700, 1499};
    for (size_t i = 0; i < 4 && chosen[i] < rows; ++i) {
      const auto wanted =
          absl::MakeConstSpan(expected).subspan(i * width, width);
      CompareAbsolute({"encoder", absl::StrCat("row ", chosen[i])},
                      row_of(chosen[i]), wanted, kRowTolerance * Norm(wanted),
                      &report_);
    }
    std::vector<float> norms, mean(width, 0.0f);
    for (size_t row = 0; row < rows; ++row) {
      norms.push_back(static_cast<float>(Norm(row_of(row))));
      for (size_t i = 0; i < width; ++i) {
        mean[i] += row_of(row)[i] / static_cast<float>(rows);
      }
    }
    LANEWISE_ASSIGN_OR_RETURN(const auto norms_wanted,
                              Golden("encoder_row_norms"));
    LANEWISE_ASSIGN_OR_RETURN(const auto mean_wanted, Golden("encoder_mean"));
    CompareAbsolute({"encoder", "row norms"}, norms, norms_wanted,
                    kRowTolerance * *std::min_element(norms_wanted.begin(),
                                                      norms_wanted.end()),
                    &report_);
    CompareAbsolute({"encoder", "mean"}, mean, mean_wanted,
                    kRowTolerance * Norm(mean_wanted), &report_);
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int32_t>> Ids(const nlohmann::json& object,
                                           const char* key) const {
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* list,
                              GetArray(object, golden_.path(), key));
    std::vector<int32_t> ids;
    for (const nlohmann::json& id : *list) {
      if (!id.is_number_integer()) {
        return absl::InvalidArgumentError(absl::StrCat(key, ": no ids"));
      }
      ids.push_back(id.get<int32_t>());
    }
    return ids;
  }

  // The most probable ids, a step at a time on a cache. The reference divides
  // the sum of log-probabilities, the end's included, by the number of ids
  // without it.
  absl::Status Decode(const Encoded& encoded) {
    LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> next,
                              Ids(golden_.json(), "decoder_prompt"));
    LANEWISE_ASSIGN_OR_RETURN(
        const nlohmann::json* config,
        GetObject(golden_.json(), golden_.path(), "config"));
    LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> banned,
                              Ids(*config, "suppress_ids_begin"));
    LANEWISE_ASSIGN_OR_RETURN(KvCache cache,
                              model_->NewCache(next.size() + kMaxTokens));
    std::vector<int32_t> found;
    double sum = 0;
    size_t steps = 0;
    while (steps < kMaxTokens) {
      LANEWISE_ASSIGN_OR_RETURN(
          std::vector<float> logits,
          model_->Step({next}, {&cache}, {&encoded.memories[0]}));
      for (const int32_t id : banned) logits[id] = -INFINITY;
      banned.clear();
      const auto best = std::max_element(logits.begin(), logits.end());
      sum += double{*best} -
             LogSumExp(context_.target(), logits.data(), logits.size());
      ++steps;
      const auto id = static_cast<int32_t>(best - logits.begin());
      if (id == kEnd) break;
      found.push_back(id);
      next = {id};
    }
    LANEWISE_ASSIGN_OR_RETURN(const auto ids,
                              Ids(golden_.json(), "greedy_ids"));
    CompareIds({"greedy", "ids"}, found, ids, &report_);
    LANEWISE_ASSIGN_OR_RETURN(
        const double score,
        GetFloat(golden_.json(), golden_.path(), "greedy_score"));
    const auto mean =
        static_cast<float>(sum / static_cast<double>(found.size()));
    const auto wanted = static_cast<float>(score);
    CompareAbsolute({"greedy", "score"}, {&mean, 1}, {&wanted, 1},
                    kRowTolerance, &report_);
    LANEWISE_ASSIGN_OR_RETURN(
        const std::string text,
        GetString(golden_.json(), golden_.path(), "greedy_text"));
    AddExact({"greedy", "text"},
             tokenizer_->Decode(found, {}) == text ? "" : "other text",
             &report_);
    return absl::OkStatus();
  }

  const CaseFolder& golden_;
  const Context& context_;
  CaseReport& report_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Seq2SeqModel> model_;
};

}  // namespace

absl::Status RunRealWhisper(const CaseFolder& golden,
                            const std::string& weights, const Context& context,
                            CaseReport* report) {
  std::error_code error;
  fs::path model = weights;
  if (fs::is_directory(model, error)) model /= "model.bin";
  TemporaryFolder folder;
  LANEWISE_RETURN_IF_ERROR(folder.Create());
  LANEWISE_RETURN_IF_ERROR(WriteWhisperFolder(model.string(), folder.path()));
  const fs::path tokenizer = model.parent_path();
  fs::copy_file(tokenizer / "tokenizer.json",
                fs::path(folder.path()) / "tokenizer.json", error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat(tokenizer.string(), "/tokenizer.json: ", error.message()));
  }
  Runner runner(golden, context, report);
  LANEWISE_RETURN_IF_ERROR(runner.Load(folder.path()));
  return runner.RunAll();
}

}  // namespace lanewise
