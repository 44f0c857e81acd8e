#include "tests/conformance/encoder_runner.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/image_stem.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/status_macros.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/run_params.h"
#include "tests/conformance/text_ids.h"

namespace lanewise {
namespace {

// What one pass gives, rows packed without padding.
struct Found {
  std::vector<float> hidden;               // [rows, width]
  std::vector<float> logits;               // [rows or sequences, head_width]
  std::vector<std::vector<float>> layers;  // [layers + 1][rows, width]
};

// The sequences of a run.
struct Inputs {
  TokenRows rows;
  std::vector<std::vector<int32_t>> types;  // empty: none
  // Of images, in place of ids; `rows` has their numbers of rows all the same.
  std::vector<std::vector<float>> vectors;
};

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
      layers_.resize(index + 1);
      layers_[index].assign(rows, rows + rows_ * model_->spec().width);
    };
    LANEWISE_ASSIGN_OR_RETURN(
        executor_, Executor::Create(*model_, context_, std::move(options)));
    return absl::OkStatus();
  }

  void RunAll() {
    for (const nlohmann::json& run : golden_.runs()) {
      name_ = run["name"].get<std::string>();
      AddError(RunForward(run["inputs"], run["outputs"]));
    }
    name_ = "texts";
    AddError(RunTexts());
  }

 private:
  void AddError(const absl::Status& status) {
    if (status.ok()) return;
    AddExact({name_, "run"}, std::string(status.message()), &report_);
  }

  // The ids of the texts whose outputs are runs.
  absl::Status RunTexts() {
    const nlohmann::json* texts = FindJson(golden_.json(), "text_runs");
    if (texts == nullptr) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(const auto tokenizer,
                              Tokenizer::Load(*checkpoint_));
    for (const nlohmann::json& run : *texts) {
      LANEWISE_ASSIGN_OR_RETURN(
          const TextRun text,
          ReadTextRun(run, golden_.path() + "/case.json: text_runs"));
      CompareTextIds(*tokenizer, text, &report_);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Inputs> Read(const nlohmann::json& fields) const {
    Inputs inputs;
    if (fields.contains("pixel_values")) return ReadImages(fields);
    LANEWISE_ASSIGN_OR_RETURN(inputs.rows, golden_.Rows(fields));
    if (!fields.contains("token_type_ids")) return inputs;
    LANEWISE_ASSIGN_OR_RETURN(TokenRows types,
                              golden_.Rows(fields, "token_type_ids"));
    inputs.types = std::move(types.ids);
    return inputs;
  }

  absl::StatusOr<Inputs> ReadImages(const nlohmann::json& fields) const {
    LANEWISE_ASSIGN_OR_RETURN(const CaseArray<float> pixels,
                              golden_.Array<float>(fields, "pixel_values"));
    LANEWISE_ASSIGN_OR_RETURN(
        const auto stem,
        ImageStem::Create(*model_, context_, ActivationType::kF32));
    Inputs inputs;
    inputs.rows.columns = stem->rows();
    for (size_t i = 0; i < pixels.shape[0]; ++i) {
      std::vector<float> rows(stem->rows() * model_->spec().width);
      LANEWISE_RETURN_IF_ERROR(stem->Run(pixels.Row(i), rows.data()));
      inputs.vectors.push_back(std::move(rows));
      inputs.rows.ids.emplace_back(stem->rows());
      inputs.rows.first.push_back(0);
    }
    return inputs;
  }

  absl::StatusOr<Found> Forward(const Inputs& inputs, size_t begin,
                                size_t end) {
    const ModelSpec& spec = model_->spec();
    std::vector<Executor::Entry> batch;
    rows_ = 0;
    for (size_t i = begin; i < end; ++i) {
      Executor::Entry entry;
      if (inputs.vectors.empty()) {
        entry.ids = inputs.rows.ids[i];
      } else {
        entry.vectors = inputs.vectors[i];
      }
      entry.logits = Executor::Logits::kAll;
      if (!inputs.types.empty()) entry.type_ids = inputs.types[i];
      rows_ += inputs.rows.ids[i].size();
      batch.push_back(entry);
    }
    const bool pooled = spec.head.pooling != Pooling::kNone;
    Found found;
    found.hidden.resize(rows_ * spec.width);
    found.logits.resize((pooled ? batch.size() : rows_) * spec.head_width());
    Executor::Outputs outputs;
    outputs.hidden = found.hidden.data();
    outputs.logits = found.logits.data();
    LANEWISE_RETURN_IF_ERROR(executor_->Reserve(rows_));
    LANEWISE_RETURN_IF_ERROR(executor_->Forward(batch, outputs));
    found.layers = std::move(layers_);
    return found;
  }

  absl::Status RunForward(const nlohmann::json& fields,
                          const nlohmann::json& outputs) {
    LANEWISE_ASSIGN_OR_RETURN(const Inputs inputs, Read(fields));
    const size_t sequences = inputs.rows.ids.size();
    LANEWISE_ASSIGN_OR_RETURN(const Found found, Forward(inputs, 0, sequences));
    for (const auto& [name, tensor] : outputs.items()) {
      LANEWISE_RETURN_IF_ERROR(Compare(name, outputs, inputs.rows, found));
    }
    // A padded batch gives the bits of its rows alone.
    Found alone;
    for (size_t i = 0; i < sequences; ++i) {
      LANEWISE_ASSIGN_OR_RETURN(const Found row, Forward(inputs, i, i + 1));
      alone.hidden.insert(alone.hidden.end(), row.hidden.begin(),
                          row.hidden.end());
      alone.logits.insert(alone.logits.end(), row.logits.begin(),
                          row.logits.end());
    }
    CompareBits({name_, "rows alone, hidden, bits"}, alone.hidden, found.hidden,
                &report_);
    CompareBits({name_, "rows alone, outputs, bits"}, alone.logits,
                found.logits, &report_);
    return absl::OkStatus();
  }

  // Whether the reference takes this output before the final norm.
  bool BeforeFinalNorm(const std::string& name) const {
    const nlohmann::json* notes = FindJson(golden_.json(), "last_hidden");
    const nlohmann::json* note =
        notes == nullptr ? nullptr : FindJson(*notes, name);
    return note != nullptr && note->is_string() &&
           absl::StartsWith(note->get<std::string>(), "before");
  }

  absl::Status Compare(const std::string& name, const nlohmann::json& outputs,
                       const TokenRows& rows, const Found& found) {
    LANEWISE_ASSIGN_OR_RETURN(const CaseArray<float> expected,
                              golden_.Array<float>(outputs, name.c_str()));
    if (name == "hidden_states") return CompareLayers(expected, rows, found);
    std::vector<float> wanted = expected.values;
    const bool pooled = model_->spec().head.pooling != Pooling::kNone;
    const bool of_rows =
        name != "pooler_output" && !(name == "logits" && pooled);
    if (of_rows) {
      LANEWISE_ASSIGN_OR_RETURN(wanted,
                                CaseFolder::RealPositions(expected, rows));
    }
    if (name == "start_logits" || name == "end_logits") {
      std::vector<float> column;
      for (size_t i = name[0] == 'e'; i < found.logits.size(); i += 2) {
        column.push_back(found.logits[i]);
      }
      CompareToReference({name_, name}, column, wanted, &report_);
    } else if (name == "last_hidden_state" || name == "encoder_output") {
      CompareToReference(
          {name_, name},
          BeforeFinalNorm(name) ? found.layers.back() : found.hidden, wanted,
          &report_);
    } else {
      CompareToReference({name_, name}, found.logits, wanted, &report_);
    }
    return absl::OkStatus();
  }

  absl::Status CompareLayers(const CaseArray<float>& expected,
                             const TokenRows& rows, const Found& found) {
    if (expected.shape[0] != found.layers.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("hidden states: expected ", expected.shape[0],
                       ", found ", found.layers.size()));
    }
    for (size_t i = 0; i < found.layers.size(); ++i) {
      const absl::Span<const float> layer = expected.Row(i);
      CaseArray<float> one{{expected.shape.begin() + 1, expected.shape.end()},
                           {layer.begin(), layer.end()}};
      LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> wanted,
                                CaseFolder::RealPositions(one, rows));
      const bool last = i + 1 == found.layers.size();
      CompareToReference({name_, absl::StrCat("hidden state ", i)},
                         last && !BeforeFinalNorm("hidden_states")
                             ? found.hidden
                             : found.layers[i],
                         wanted, &report_);
    }
    return absl::OkStatus();
  }

  const CaseFolder& golden_;
  const Context& context_;
  CaseReport& report_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  std::string name_;
  size_t rows_ = 0;
  std::vector<std::vector<float>> layers_;
};

}  // namespace

absl::StatusOr<CaseReport> RunEncoderCase(const std::string& folder,
                                          const Context& context) {
  CaseReport report;
  LANEWISE_ASSIGN_OR_RETURN(const CaseFolder golden, CaseFolder::Open(folder));
  Runner runner(golden, context, &report);
  LANEWISE_RETURN_IF_ERROR(runner.Load());
  runner.RunAll();
  return report;
}

}  // namespace lanewise
