// What the families after BERT share: LayerNorm after each sublayer, no causal
// mask, biases everywhere, a head by the library class the file was saved from
// (Devlin et al., arXiv:1810.04805).
#ifndef LANEWISE_MODEL_FAMILIES_BERT_LIKE_H_
#define LANEWISE_MODEL_FAMILIES_BERT_LIKE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/families/family.h"
#include "model/format/metadata.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// Keys of config.json.
struct BertLike {
  absl::string_view family;
  absl::string_view layers = "num_hidden_layers";
  absl::string_view width = "hidden_size";
  absl::string_view heads = "num_attention_heads";
  absl::string_view ffn = "intermediate_size";
  absl::string_view eps = "layer_norm_eps";  // empty: default_eps
  float default_eps = 1e-12f;
  absl::string_view activation = "hidden_act";
  bool tokens = true;  // false: no vocabulary, and positions are the family's
  size_t position_offset = 0;  // rows of the position table before the first
  bool token_types = true;
  size_t default_token_types = 2;
  bool head = true;  // false: the family reads its own
  // Activation of the dense layer before the labels of a sequence, of the
  // pooler, and of the masked-token head; nullopt: no such layer, or for the
  // last, that of the layers.
  std::optional<Activation> label_dense = Activation::kTanh;
  std::optional<Activation> pooler = Activation::kTanh;
  std::optional<Activation> masked_dense = std::nullopt;
};

// Without rotations: a family adds its own.
absl::StatusOr<ModelSpec> ReadBertLike(const nlohmann::json& config,
                                       absl::string_view file,
                                       const BertLike& keys);

// What the class in `architectures` is for: "…Model", "…ForMaskedLM",
// "…ForSequenceClassification" and so on; without any, "…Model". An error names
// a class that has no head here.
absl::StatusOr<HeadTask> ReadHeadTask(const nlohmann::json& config,
                                      absl::string_view file);

// Names of the labels from id2label, else "LABEL_0" and on, as many as
// num_labels says (2).
absl::StatusOr<std::vector<std::string>> ReadLabels(
    const nlohmann::json& config, absl::string_view file);

// Fills spec->head for the task; `norm` is the layers'.
absl::Status ReadBertHead(const nlohmann::json& config, absl::string_view file,
                          const BertLike& keys, const NormSpec& norm,
                          ModelSpec* spec);

// The metadata of a GGUF file of these families under the names of BERT's
// config.json.
absl::StatusOr<nlohmann::json> BertConfigOfGguf(const Metadata& metadata,
                                                absl::string_view architecture);

// Tensors of embeddings and layers under BERT's names, in folders and GGUF.
// Norms may also have the old names "gamma" and "beta".
std::vector<TensorRule> BertTensors();

// Heads under RoBERTa's names: lm_head, classifier.dense and .out_proj, pooler,
// qa_outputs.
std::vector<TensorRule> RobertaHeadTensors();

// `rules` with `more` behind.
std::vector<TensorRule> Joined(std::vector<TensorRule> rules,
                               absl::Span<const TensorRule> more);

// Where rules of heads count.
inline constexpr uint32_t kPooledTask = TaskBit(HeadTask::kPooled);
inline constexpr uint32_t kMaskedTask = TaskBit(HeadTask::kMaskedToken);
inline constexpr uint32_t kSequenceTask = TaskBit(HeadTask::kSequenceLabels);
inline constexpr uint32_t kTokenTask = TaskBit(HeadTask::kTokenLabels);
inline constexpr uint32_t kSpanTask = TaskBit(HeadTask::kSpan);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_BERT_LIKE_H_
