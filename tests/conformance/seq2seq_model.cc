#include "tests/conformance/seq2seq_model.h"

#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kCacheBytes = size_t{1} << 30;

}  // namespace

absl::StatusOr<Seq2SeqInputs> Seq2SeqInputs::Read(
    const CaseFolder& golden, const nlohmann::json& fields) {
  Seq2SeqInputs inputs;
  if (!fields.contains("input_features")) {
    LANEWISE_ASSIGN_OR_RETURN(inputs.rows_, golden.Rows(fields));
    return inputs;
  }
  LANEWISE_ASSIGN_OR_RETURN(const auto features,
                            golden.Array<float>(fields, "input_features"));
  for (size_t i = 0; i < features.shape[0]; ++i) {
    inputs.features_.emplace_back(features.Row(i).begin(),
                                  features.Row(i).end());
  }
  return inputs;
}

Seq2SeqInputs Seq2SeqInputs::FromIds(std::vector<std::vector<int32_t>> ids) {
  Seq2SeqInputs inputs;
  inputs.rows_.ids = std::move(ids);
  return inputs;
}

Seq2SeqInputs Seq2SeqInputs::FromFeatures(
    std::vector<std::vector<float>> features) {
  Seq2SeqInputs inputs;
  inputs.features_ = std::move(features);
  return inputs;
}

Seq2SeqInputs Seq2SeqInputs::Row(size_t row) const {
  Seq2SeqInputs inputs;
  if (features_.empty()) return FromIds({rows_.ids[row]});
  inputs.features_.push_back(features_[row]);
  return inputs;
}

absl::StatusOr<std::unique_ptr<Executor>> Seq2SeqModel::NewExecutor(
    const Model& model, const Context& context, Stack* stack) {
  Executor::Options options;
  options.activations = ActivationType::kF32;
  const size_t width = model.spec().width;
  options.observer = [stack, width](size_t index, const float* rows) {
    stack->layers.resize(index + 1);
    stack->layers[index].assign(rows, rows + stack->rows * width);
  };
  return Executor::Create(model, context, std::move(options));
}

absl::StatusOr<std::unique_ptr<Seq2SeqModel>> Seq2SeqModel::Load(
    const Checkpoint& checkpoint, const Context& context) {
  std::unique_ptr<Seq2SeqModel> out(new Seq2SeqModel);
  LANEWISE_ASSIGN_OR_RETURN(out->model_, Model::Load(checkpoint, context, {}));
  const Model& model = *out->model_;
  if (model.encoder() == nullptr) {
    return absl::InvalidArgumentError("expected a model with an encoder");
  }
  LANEWISE_ASSIGN_OR_RETURN(
      out->encoder_,
      NewExecutor(*model.encoder(), context, &out->encoder_stack_));
  LANEWISE_ASSIGN_OR_RETURN(out->decoder_,
                            NewExecutor(model, context, &out->decoder_stack_));
  if (model.encoder()->spec().audio_stem.has_value()) {
    LANEWISE_ASSIGN_OR_RETURN(
        out->audio_,
        AudioStem::Create(*model.encoder(), context, ActivationType::kF32));
  }
  out->pool_ = KvPagePool::Create(model.spec(), CacheType::kF32, kCacheBytes);
  out->memory_pool_ =
      KvPagePool::CreateForMemory(model.spec(), CacheType::kF32, kCacheBytes);
  return out;
}

absl::StatusOr<Encoded> Seq2SeqModel::Encode(const Seq2SeqInputs& inputs) {
  std::vector<Executor::Entry> batch;
  size_t rows = 0;
  const size_t width = model_->encoder()->spec().width;
  Encoded encoded;
  for (const auto& ids : inputs.rows().ids) {
    batch.push_back({ids, nullptr, Executor::Logits::kNone});
    encoded.lengths.push_back(ids.size());
  }
  std::vector<std::vector<float>> audio(inputs.features().size());
  for (size_t i = 0; i < audio.size(); ++i) {
    if (audio_ == nullptr) {
      return absl::InvalidArgumentError("expected a model of audio");
    }
    LANEWISE_RETURN_IF_ERROR(audio_->Run(inputs.features()[i], &audio[i]));
    batch.push_back({{}, nullptr, Executor::Logits::kNone});
    batch.back().vectors = audio[i];
    encoded.lengths.push_back(audio[i].size() / width);
  }
  for (const size_t length : encoded.lengths) rows += length;
  encoded.stack.hidden.resize(rows * width);
  Executor::Outputs outputs;
  outputs.hidden = encoded.stack.hidden.data();
  encoder_stack_.rows = rows;
  LANEWISE_RETURN_IF_ERROR(encoder_->Reserve(rows));
  LANEWISE_RETURN_IF_ERROR(encoder_->Forward(batch, outputs));
  encoded.stack.layers = std::move(encoder_stack_.layers);
  size_t row = 0;
  for (const size_t length : encoded.lengths) {
    encoded.memories.emplace_back(memory_pool_);
    LANEWISE_RETURN_IF_ERROR(
        decoder_->FillMemory(absl::MakeConstSpan(encoded.stack.hidden)
                                 .subspan(row * width, length * width),
                             &encoded.memories.back()));
    row += length;
  }
  return encoded;
}

absl::StatusOr<Decoded> Seq2SeqModel::Decode(
    const Encoded& encoded, const std::vector<std::vector<int32_t>>& ids) {
  std::vector<KvCache> caches;
  caches.reserve(ids.size());
  std::vector<Executor::Entry> batch;
  size_t rows = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    LANEWISE_ASSIGN_OR_RETURN(KvCache cache, NewCache(ids[i].size()));
    caches.push_back(std::move(cache));
    batch.push_back({ids[i], &caches.back(), Executor::Logits::kAll});
    batch.back().memory = &encoded.memories[i];
    rows += ids[i].size();
  }
  Decoded decoded;
  decoded.stack.hidden.resize(rows * model_->spec().width);
  decoded.stack.logits.resize(rows * vocab_size());
  Executor::Outputs outputs;
  outputs.hidden = decoded.stack.hidden.data();
  outputs.logits = decoded.stack.logits.data();
  decoder_stack_.rows = rows;
  LANEWISE_RETURN_IF_ERROR(decoder_->Reserve(rows));
  LANEWISE_RETURN_IF_ERROR(decoder_->Forward(batch, outputs));
  decoded.stack.layers = std::move(decoder_stack_.layers);
  return decoded;
}

absl::StatusOr<std::vector<float>> Seq2SeqModel::Step(
    const std::vector<std::vector<int32_t>>& ids,
    const std::vector<KvCache*>& caches,
    const std::vector<const KvCache*>& memories) {
  std::vector<Executor::Entry> batch;
  size_t rows = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    batch.push_back({ids[i], caches[i], Executor::Logits::kLast});
    batch.back().memory = memories[i];
    rows += ids[i].size();
  }
  std::vector<float> logits(ids.size() * vocab_size());
  decoder_stack_.rows = rows;
  LANEWISE_RETURN_IF_ERROR(decoder_->Forward(batch, logits.data()));
  return logits;
}

absl::StatusOr<KvCache> Seq2SeqModel::NewCache(size_t positions) const {
  KvCache cache(pool_);
  LANEWISE_RETURN_IF_ERROR(cache.Reserve(positions));
  return cache;
}

}  // namespace lanewise
