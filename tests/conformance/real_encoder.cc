#include "tests/conformance/real_encoder.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "model/executor.h"
#include "model/format/json.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Ids = std::vector<int32_t>;

constexpr double kTolerance = 1e-5;  // of vectors whose length is 1

absl::StatusOr<std::vector<std::string>> Sentences(const CaseFolder& golden) {
  LANEWISE_ASSIGN_OR_RETURN(
      const nlohmann::json* sentences,
      GetArray(golden.json(), golden.path(), "sentences"));
  std::vector<std::string> out;
  for (const nlohmann::json& sentence : *sentences) {
    if (!sentence.is_string()) {
      return absl::InvalidArgumentError("sentences: expected texts");
    }
    out.push_back(sentence.get<std::string>());
  }
  return out;
}

absl::Status CompareSentenceIds(const Checkpoint& checkpoint,
                                const std::vector<std::string>& sentences,
                                const TokenRows& rows, CaseReport* report) {
  LANEWISE_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(checkpoint));
  EncodeOptions options;
  options.pad = false;
  for (size_t i = 0; i < sentences.size() && i < rows.ids.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(const Ids ids,
                              tokenizer->Encode(sentences[i], options));
    CompareIds({absl::StrCat("sentence ", i), "input_ids"}, ids, rows.ids[i],
               report);
  }
  return absl::OkStatus();
}

// [rows, width] of one sequence.
absl::StatusOr<std::vector<float>> HiddenRows(const Checkpoint& checkpoint,
                                              const Ids& ids,
                                              const Context& context) {
  LANEWISE_ASSIGN_OR_RETURN(const auto model,
                            Model::Load(checkpoint, context, {}));
  Executor::Options options;
  options.activations = ActivationType::kF32;
  LANEWISE_ASSIGN_OR_RETURN(const auto executor,
                            Executor::Create(*model, context, options));
  LANEWISE_RETURN_IF_ERROR(executor->Reserve(ids.size()));
  std::vector<float> hidden(ids.size() * model->spec().width);
  Executor::Entry entry;
  entry.ids = ids;
  entry.logits = Executor::Logits::kNone;
  Executor::Outputs outputs;
  outputs.hidden = hidden.data();
  LANEWISE_RETURN_IF_ERROR(executor->Forward({&entry, 1}, outputs));
  return hidden;
}

std::vector<float> Cosines(const std::vector<float>& vectors, size_t count) {
  const size_t width = vectors.size() / count;
  std::vector<float> out;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      double dot = 0;
      for (size_t c = 0; c < width; ++c) {
        dot += double{vectors[i * width + c]} * vectors[j * width + c];
      }
      out.push_back(static_cast<float>(dot));
    }
  }
  return out;
}

absl::Status CompareVectors(const CaseFolder& golden, const nlohmann::json& run,
                            const std::vector<std::string>& sentences,
                            Engine& engine, CaseReport* report) {
  const std::string name = run["name"].get<std::string>();
  const nlohmann::json& outputs = run["outputs"];
  EmbedRequest request;
  request.texts = sentences;
  LANEWISE_ASSIGN_OR_RETURN(const EmbedResult unit, engine.Embed(request, {}));
  LANEWISE_ASSIGN_OR_RETURN(const auto embeddings,
                            golden.Array<float>(outputs, "embeddings"));
  CompareAbsolute({name, "embeddings"}, unit.vectors, embeddings.values,
                  kTolerance, report);
  LANEWISE_ASSIGN_OR_RETURN(const auto cosine,
                            golden.Array<float>(outputs, "cosine"));
  CompareAbsolute({name, "cosine"}, Cosines(unit.vectors, sentences.size()),
                  cosine.values, kTolerance, report);
  request.normalize = false;
  LANEWISE_ASSIGN_OR_RETURN(const EmbedResult mean, engine.Embed(request, {}));
  LANEWISE_ASSIGN_OR_RETURN(const auto pooled,
                            golden.Array<float>(outputs, "mean_pooled"));
  CompareToReference({name, "mean_pooled"}, mean.vectors, pooled.values,
                     report);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunRealEncoder(const CaseFolder& golden,
                            const Checkpoint& checkpoint,
                            const std::string& weights, const Context& context,
                            CaseReport* report) {
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<std::string> sentences,
                            Sentences(golden));
  EngineOptions options;
  options.activations = ActivationPrecision::kF32;
  options.target = std::string(context.target().name());
  options.threads = context.threads();
  LANEWISE_ASSIGN_OR_RETURN(const auto engine, Engine::Load(weights, options));
  for (const nlohmann::json& run : golden.runs()) {
    LANEWISE_ASSIGN_OR_RETURN(const TokenRows rows, golden.Rows(run["inputs"]));
    LANEWISE_RETURN_IF_ERROR(
        CompareSentenceIds(checkpoint, sentences, rows, report));
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<float> hidden,
                              HiddenRows(checkpoint, rows.ids[0], context));
    LANEWISE_ASSIGN_OR_RETURN(
        const auto expected,
        golden.Array<float>(run["outputs"], "last_hidden_state_row0"));
    CompareToReference(
        {run["name"].get<std::string>(), "last_hidden_state_row0"}, hidden,
        expected.values, report);
    LANEWISE_RETURN_IF_ERROR(
        CompareVectors(golden, run, sentences, *engine, report));
  }
  return absl::OkStatus();
}

}  // namespace lanewise
