#include "model/families/bert_like.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr uint64_t kMaxLabels = kMaxVocab;

struct TaskName {
  absl::string_view suffix;
  HeadTask task;
};
// ForPreTraining is the masked-token head with another one beside it.
constexpr TaskName kTaskNames[] = {
    {"ForMaskedLM", HeadTask::kMaskedToken},
    {"ForPreTraining", HeadTask::kMaskedToken},
    {"ForSequenceClassification", HeadTask::kSequenceLabels},
    {"ForImageClassification", HeadTask::kSequenceLabels},
    {"ForTokenClassification", HeadTask::kTokenLabels},
    {"ForQuestionAnswering", HeadTask::kSpan},
    {"Model", HeadTask::kPooled}};

// The vocabulary and the tables of positions and token types.
absl::Status ReadTokens(const nlohmann::json& config, absl::string_view file,
                        const BertLike& keys, ModelSpec* spec) {
  LANEWISE_ASSIGN_OR_RETURN(spec->vocab_size,
                            GetUint(config, file, "vocab_size", kMaxVocab));
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t positions,
      GetUint(config, file, "max_position_embeddings", kMaxPositions));
  if (positions <= keys.position_offset) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": max_position_embeddings: expected more than ",
                     keys.position_offset, ", found ", positions));
  }
  spec->max_positions = positions - keys.position_offset;
  if (!keys.token_types) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(
      spec->token_types, GetUintOr(config, file, "type_vocab_size", kMaxVocab,
                                   keys.default_token_types, 0));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HeadTask> ReadHeadTask(const nlohmann::json& config,
                                      absl::string_view file) {
  const nlohmann::json* classes = FindJson(config, "architectures");
  if (classes == nullptr) return HeadTask::kPooled;
  LANEWISE_RETURN_IF_ERROR(GetArray(config, file, "architectures").status());
  if (classes->empty()) return HeadTask::kPooled;
  if (!(*classes)[0].is_string()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": architectures: expected names of classes, found another value"));
  }
  const std::string& name = (*classes)[0].get_ref<const std::string&>();
  for (const TaskName& known : kTaskNames) {
    if (absl::EndsWith(name, known.suffix)) return known.task;
  }
  std::string suffixes;
  for (const TaskName& known : kTaskNames) {
    absl::StrAppend(&suffixes, suffixes.empty() ? "" : ", ", "*", known.suffix);
  }
  return absl::UnimplementedError(
      absl::StrCat(file, ": architectures: expected one of ", suffixes,
                   ", found ", Printable(name)));
}

absl::StatusOr<std::vector<std::string>> ReadLabels(
    const nlohmann::json& config, absl::string_view file) {
  const nlohmann::json* names = FindJson(config, "id2label");
  size_t absent = 2;
  if (names != nullptr && names->is_object()) absent = names->size();
  LANEWISE_ASSIGN_OR_RETURN(
      const uint64_t count,
      GetUintOr(config, file, "num_labels", kMaxLabels, absent, 1));
  std::vector<std::string> labels;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = absl::StrCat(i);
    labels.push_back(absl::StrCat("LABEL_", i));
    if (names == nullptr || !names->is_object()) continue;
    const nlohmann::json* label = FindJson(*names, number);
    if (label != nullptr && label->is_string()) {
      labels.back() = label->get<std::string>();
      continue;
    }
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": id2label: expected a name for each of ", count,
                     " labels, found none for ", number));
  }
  return labels;
}

absl::Status ReadBertHead(const nlohmann::json& config, absl::string_view file,
                          const BertLike& keys, const NormSpec& norm,
                          ModelSpec* spec) {
  HeadSpec& head = spec->head;
  LANEWISE_ASSIGN_OR_RETURN(head.task, ReadHeadTask(config, file));
  head.bias = true;
  HeadTransformSpec transform;
  transform.width = spec->width;
  transform.bias = true;
  switch (head.task) {
    case HeadTask::kMaskedToken: {
      transform.activation =
          keys.masked_dense.value_or(spec->layers.front().ffn.activation);
      transform.norm = norm;
      head.transform = transform;
      LANEWISE_ASSIGN_OR_RETURN(
          head.tied, GetBoolOr(config, file, "tie_word_embeddings", true));
      return absl::OkStatus();
    }
    case HeadTask::kSequenceLabels:
      head.pooling = Pooling::kFirst;
      if (keys.label_dense.has_value()) {
        transform.activation = *keys.label_dense;
        head.transform = transform;
      }
      break;
    case HeadTask::kPooled:
      head.outputs = 0;
      head.bias = false;
      if (!keys.pooler.has_value()) {
        head.task = HeadTask::kNone;
        return absl::OkStatus();
      }
      head.pooling = Pooling::kFirst;
      transform.activation = *keys.pooler;
      head.transform = transform;
      return absl::OkStatus();
    case HeadTask::kSpan:
      head.outputs = 2;
      return absl::OkStatus();
    default:
      break;
  }
  LANEWISE_ASSIGN_OR_RETURN(head.labels, ReadLabels(config, file));
  head.outputs = head.labels.size();
  return absl::OkStatus();
}

namespace {

// Variants of attention that change results and that no family here has.
absl::Status CheckPlainEncoder(const nlohmann::json& config,
                               absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(
      const std::string positions,
      GetStringOr(config, file, "position_embedding_type", "absolute"));
  // Nomic BERT's folders name their rotations here.
  if (positions != "absolute" && positions != "rotary") {
    return absl::UnimplementedError(absl::StrCat(
        file, ": position_embedding_type: expected absolute, found ",
        Printable(positions)));
  }
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    LANEWISE_ASSIGN_OR_RETURN(const bool value,
                              GetBoolOr(config, file, key, false));
    if (value) {
      return absl::UnimplementedError(absl::StrCat(
          file, ": ", key, ": expected false (an encoder), found true"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSpec> ReadBertLike(const nlohmann::json& config,
                                       absl::string_view file,
                                       const BertLike& keys) {
  LANEWISE_RETURN_IF_ERROR(CheckPlainEncoder(config, file));
  ModelSpec spec;
  spec.family = std::string(keys.family);
  LANEWISE_ASSIGN_OR_RETURN(const size_t layers,
                            GetUint(config, file, keys.layers, kMaxLayers));
  LANEWISE_ASSIGN_OR_RETURN(spec.width,
                            GetUint(config, file, keys.width, kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(const size_t heads,
                            GetUint(config, file, keys.heads, kMaxHeads));
  if (spec.width % heads != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": ", keys.heads, ": expected a divisor of the width ",
        spec.width, ", found ", heads));
  }
  NormSpec norm;
  norm.bias = true;
  norm.eps = keys.default_eps;
  if (!keys.eps.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(
        norm.eps, GetFloatOr(config, file, keys.eps, keys.default_eps));
  }
  LayerSpec layer;
  layer.attention_norms.after = layer.ffn_norms.after = norm;
  layer.attention.causal = false;
  layer.attention.heads = layer.attention.kv_heads = heads;
  layer.attention.head_dim = layer.attention.value_dim = spec.width / heads;
  layer.attention.scale = DefaultScale(layer.attention.head_dim);
  layer.attention.qkv_bias = layer.attention.output_bias = true;
  layer.ffn.bias = true;
  LANEWISE_ASSIGN_OR_RETURN(layer.ffn.width,
                            GetUint(config, file, keys.ffn, kMaxWidth));
  LANEWISE_ASSIGN_OR_RETURN(
      layer.ffn.activation,
      ReadActivation(config, file, keys.activation, "gelu"));
  spec.layers.assign(layers, layer);
  spec.embedding_norm = norm;
  spec.positions = {PositionSpec::Kind::kLearned, keys.position_offset};
  if (keys.tokens) {
    LANEWISE_RETURN_IF_ERROR(ReadTokens(config, file, keys, &spec));
  }
  if (keys.head) {
    LANEWISE_RETURN_IF_ERROR(ReadBertHead(config, file, keys, norm, &spec));
  }
  return spec;
}

absl::StatusOr<nlohmann::json> BertConfigOfGguf(
    const Metadata& metadata, absl::string_view architecture) {
  nlohmann::json config = nlohmann::json::object();
  const auto key = [&](absl::string_view name) {
    return absl::StrCat(architecture, ".", name);
  };
  const std::pair<absl::string_view, const char*> sizes[] = {
      {"block_count", "num_hidden_layers"},
      {"embedding_length", "hidden_size"},
      {"attention.head_count", "num_attention_heads"},
      {"feed_forward_length", "intermediate_size"},
      {"context_length", "max_position_embeddings"}};
  for (const auto& [name, usual] : sizes) {
    LANEWISE_ASSIGN_OR_RETURN(config[usual],
                              metadata.GetUint(key(name), kMaxPositions, 1));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      config["layer_norm_eps"],
      metadata.GetFloatOr(key("attention.layer_norm_epsilon"), 1e-12));
  LANEWISE_ASSIGN_OR_RETURN(
      config["type_vocab_size"],
      metadata.GetUintOr("tokenizer.ggml.token_type_count", kMaxVocab, 2));
  LANEWISE_ASSIGN_OR_RETURN(config["vocab_size"],
                            ReadGgufVocabSize(metadata, architecture));
  return config;
}

std::vector<TensorRule> RobertaHeadTensors() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kPlain = TensorLayout::kPlain;
  return {
      // clang-format off
      {"pooler.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kPooledTask},
      {"pooler.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kPooledTask},
      {"lm_head.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kMaskedTask},
      {"lm_head.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
      {"lm_head.layer_norm.weight", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
      {"lm_head.layer_norm.bias", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
      {"lm_head.decoder.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kHeadTransform, kOptional, kPlain, kPlain, kMaskedTask},
      {"lm_head.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
      {"lm_head.decoder.bias", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
      {"classifier.dense.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kSequenceTask},
      {"classifier.dense.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask},
      {"classifier.out_proj.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSequenceTask},
      {"classifier.out_proj.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask},
      {"classifier.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kTokenTask},
      {"classifier.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kTokenTask},
      {"qa_outputs.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSpanTask},
      {"qa_outputs.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSpanTask},
      // clang-format on
  };
}

std::vector<TensorRule> Joined(std::vector<TensorRule> rules,
                               absl::Span<const TensorRule> more) {
  rules.insert(rules.end(), more.begin(), more.end());
  return rules;
}

std::vector<TensorRule> BertTensors() {
  constexpr auto kOptional = Presence::kOptional;
  return {
      // clang-format off
      {"embeddings.word_embeddings.weight", "token_embd.weight", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kEmbeddingWidth},
      {"embeddings.position_embeddings.weight", "position_embd.weight", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kInputWidth},
      {"embeddings.token_type_embeddings.weight", "token_types.weight", Slot::kTokenTypeEmbedding, false, Dim::kTokenTypes, Dim::kInputWidth},
      {"embeddings.LayerNorm.weight", "token_embd_norm.weight", Slot::kEmbeddingNorm, false, Dim::kInputWidth, Dim::kOne},
      {"embeddings.LayerNorm.bias", "token_embd_norm.bias", Slot::kEmbeddingNorm, true, Dim::kInputWidth, Dim::kOne},
      {"embeddings.LayerNorm.gamma", "", Slot::kEmbeddingNorm, false, Dim::kInputWidth, Dim::kOne},
      {"embeddings.LayerNorm.beta", "", Slot::kEmbeddingNorm, true, Dim::kInputWidth, Dim::kOne},
      {"embeddings.position_ids", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
      {"embeddings.token_type_ids", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
      {"encoder.layer.{}.attention.self.query.weight", "blk.{}.attn_q.weight", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
      {"encoder.layer.{}.attention.self.query.bias", "blk.{}.attn_q.bias", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
      {"encoder.layer.{}.attention.self.key.weight", "blk.{}.attn_k.weight", Slot::kKey, false, Dim::kKey, Dim::kWidth},
      {"encoder.layer.{}.attention.self.key.bias", "blk.{}.attn_k.bias", Slot::kKey, true, Dim::kKey, Dim::kOne},
      {"encoder.layer.{}.attention.self.value.weight", "blk.{}.attn_v.weight", Slot::kValue, false, Dim::kValue, Dim::kWidth},
      {"encoder.layer.{}.attention.self.value.bias", "blk.{}.attn_v.bias", Slot::kValue, true, Dim::kValue, Dim::kOne},
      {"encoder.layer.{}.attention.output.dense.weight", "blk.{}.attn_output.weight", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
      {"encoder.layer.{}.attention.output.dense.bias", "blk.{}.attn_output.bias", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.attention.output.LayerNorm.weight", "blk.{}.attn_output_norm.weight", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.attention.output.LayerNorm.bias", "blk.{}.attn_output_norm.bias", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.attention.output.LayerNorm.gamma", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.attention.output.LayerNorm.beta", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.intermediate.dense.weight", "blk.{}.ffn_up.weight", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
      {"encoder.layer.{}.intermediate.dense.bias", "blk.{}.ffn_up.bias", Slot::kUp, true, Dim::kFfn, Dim::kOne},
      {"encoder.layer.{}.output.dense.weight", "blk.{}.ffn_down.weight", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
      {"encoder.layer.{}.output.dense.bias", "blk.{}.ffn_down.bias", Slot::kDown, true, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.output.LayerNorm.weight", "blk.{}.layer_output_norm.weight", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.output.LayerNorm.bias", "blk.{}.layer_output_norm.bias", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.output.LayerNorm.gamma", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
      {"encoder.layer.{}.output.LayerNorm.beta", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
      // clang-format on
  };
}

}  // namespace lanewise
