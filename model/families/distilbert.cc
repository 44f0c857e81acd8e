// DistilBERT: BERT without token types and pooler (Sanh et al.,
// arXiv:1910.01108).
#include "model/families/bert_like.h"
#include "model/families/family.h"

namespace lanewise {
namespace {

// sinusoidal_pos_embds only says what the position table was filled with: files
// hold it all the same.
absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  BertLike keys{"distilbert"};
  keys.layers = "n_layers";
  keys.width = "dim";
  keys.heads = "n_heads";
  keys.ffn = "hidden_dim";
  keys.eps = "";
  keys.activation = "activation";
  keys.token_types = false;
  keys.label_dense = Activation::kRelu;
  keys.pooler.reset();
  return ReadBertLike(config, file, keys);
}

}  // namespace

const Family& DistilbertFamily() {
  constexpr auto kRequired = Presence::kRequired;
  constexpr auto kOptional = Presence::kOptional;
  constexpr auto kPlain = TensorLayout::kPlain;
  static const Family* const family = new Family{
      "distilbert",
      {"distilbert"},
      {},
      FromConfig,
      nullptr,
      {
          // clang-format off
          {"embeddings.word_embeddings.weight", "", Slot::kTokenEmbedding, false, Dim::kVocab, Dim::kWidth},
          {"embeddings.position_embeddings.weight", "", Slot::kPositionEmbedding, false, Dim::kPositions, Dim::kWidth},
          {"embeddings.position_ids", "", Slot::kIgnored, false, Dim::kOne, Dim::kOne, kOptional},
          {"embeddings.LayerNorm.weight", "", Slot::kEmbeddingNorm, false, Dim::kWidth, Dim::kOne},
          {"embeddings.LayerNorm.bias", "", Slot::kEmbeddingNorm, true, Dim::kWidth, Dim::kOne},
          {"transformer.layer.{}.attention.q_lin.weight", "", Slot::kQuery, false, Dim::kQuery, Dim::kWidth},
          {"transformer.layer.{}.attention.q_lin.bias", "", Slot::kQuery, true, Dim::kQuery, Dim::kOne},
          {"transformer.layer.{}.attention.k_lin.weight", "", Slot::kKey, false, Dim::kKey, Dim::kWidth},
          {"transformer.layer.{}.attention.k_lin.bias", "", Slot::kKey, true, Dim::kKey, Dim::kOne},
          {"transformer.layer.{}.attention.v_lin.weight", "", Slot::kValue, false, Dim::kValue, Dim::kWidth},
          {"transformer.layer.{}.attention.v_lin.bias", "", Slot::kValue, true, Dim::kValue, Dim::kOne},
          {"transformer.layer.{}.attention.out_lin.weight", "", Slot::kAttentionOutput, false, Dim::kWidth, Dim::kAttentionOutput},
          {"transformer.layer.{}.attention.out_lin.bias", "", Slot::kAttentionOutput, true, Dim::kWidth, Dim::kOne},
          {"transformer.layer.{}.sa_layer_norm.weight", "", Slot::kAttentionAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"transformer.layer.{}.sa_layer_norm.bias", "", Slot::kAttentionAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"transformer.layer.{}.ffn.lin1.weight", "", Slot::kUp, false, Dim::kFfn, Dim::kWidth},
          {"transformer.layer.{}.ffn.lin1.bias", "", Slot::kUp, true, Dim::kFfn, Dim::kOne},
          {"transformer.layer.{}.ffn.lin2.weight", "", Slot::kDown, false, Dim::kWidth, Dim::kFfn},
          {"transformer.layer.{}.ffn.lin2.bias", "", Slot::kDown, true, Dim::kWidth, Dim::kOne},
          {"transformer.layer.{}.output_layer_norm.weight", "", Slot::kFfnAfterNorm, false, Dim::kWidth, Dim::kOne},
          {"transformer.layer.{}.output_layer_norm.bias", "", Slot::kFfnAfterNorm, true, Dim::kWidth, Dim::kOne},
          {"vocab_transform.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kMaskedTask},
          {"vocab_transform.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"vocab_layer_norm.weight", "", Slot::kHeadNorm, false, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"vocab_layer_norm.bias", "", Slot::kHeadNorm, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"vocab_projector.weight", "", Slot::kHead, false, Dim::kVocab, Dim::kHeadTransform, kOptional, kPlain, kPlain, kMaskedTask},
          {"vocab_projector.bias", "", Slot::kHead, true, Dim::kVocab, Dim::kOne, kRequired, kPlain, kPlain, kMaskedTask},
          {"pre_classifier.weight", "", Slot::kHeadDense, false, Dim::kHeadTransform, Dim::kWidth, kRequired, kPlain, kPlain, kSequenceTask},
          {"pre_classifier.bias", "", Slot::kHeadDense, true, Dim::kHeadTransform, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask},
          {"classifier.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"classifier.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSequenceTask | kTokenTask},
          {"qa_outputs.weight", "", Slot::kHead, false, Dim::kHeadOutputs, Dim::kHeadInput, kRequired, kPlain, kPlain, kSpanTask},
          {"qa_outputs.bias", "", Slot::kHead, true, Dim::kHeadOutputs, Dim::kOne, kRequired, kPlain, kPlain, kSpanTask},
          // clang-format on
      },
      {"distilbert.", ""}};
  return *family;
}

}  // namespace lanewise
