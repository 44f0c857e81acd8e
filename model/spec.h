// ModelSpec: a Transformer as data. Family files (model/families) fill it from
// a config.json or GGUF metadata; one executor (model/executor.h) runs it.
// Behaviour depends on these fields, never on a model's name. A part that a
// model does not have is an absent optional.
//
// A pre-norm decoder in code:
//
//   ModelSpec spec;
//   spec.vocab_size = 512, spec.width = 48, spec.max_positions = 96;
//   LayerSpec layer;
//   layer.attention.heads = 4, layer.attention.head_dim = 12, …;
//   layer.attention_norms.input = NormSpec{NormKind::kRmsNorm, 1e-6f};
//   spec.layers.assign(3, layer);
#ifndef LANEWISE_MODEL_SPEC_H_
#define LANEWISE_MODEL_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/encoder_parts.h"
#include "model/norm_spec.h"
#include "simd/activation.h"
#include "simd/rope.h"

namespace lanewise {

// How positions enter at the input.
struct PositionSpec {
  enum class Kind : uint8_t {
    kNone,
    kLearned,
    // Computed: model/position_tables.h says how they differ.
    kSinusoidalHalves,        // Marian, Pegasus
    kSinusoidalHalvesClosed,  // M2M-100
    kSinusoidalInterleaved,   // Vaswani et al., 2017
  };
  Kind kind = Kind::kNone;
  size_t offset = 0;  // position that the first token has, learned: its row
  // Computed: a token that nothing is added to, though it counts. M2M-100's
  // padding id, which a model may generate.
  std::optional<int32_t> bare_id = std::nullopt;
};

// Rotary embedding. Layers refer to one by index.
struct RopeSpec {
  enum class Scaling : uint8_t {
    kNone,
    kLinear,
    kDynamic,  // the base grows with the sequence (NTK)
    kLlama3,
    kYarn,
    kLongrope,  // one of two lists of divisors, by the sequence's length
  };
  RopePairing pairing = RopePairing::kHalves;
  size_t rotary_dim = 0;  // elements of a head that are rotated; even
  double theta = 10000.0;
  Scaling scaling = Scaling::kNone;
  double factor = 1.0;
  size_t original_positions = 0;  // length of pre-training
  double low_freq_factor = 1.0;   // llama3
  double high_freq_factor = 4.0;  // llama3
  double beta_fast = 32.0;        // yarn
  double beta_slow = 1.0;         // yarn
  bool truncate = true;           // yarn: correction range in whole dimensions
  double attention_factor = 1.0;  // factor of cos and sin
  // Divisors of the inverse frequencies as a file lists them ([rotary_dim /
  // 2]); empty: none.
  std::vector<float> frequency_factors;
  std::vector<float> short_factors;  // longrope: up to original_positions
  std::vector<float> long_factors;   // longrope: beyond
};

// Relative positions by bucket (Raffel et al., arXiv:1910.10683): one bias a
// bucket and head, added to the scores. The table belongs to the stack.
struct RelativeBiasSpec {
  size_t buckets = 0;
  size_t max_distance = 0;  // from here on all distances share a bucket
  bool bidirectional = true;
};

// Norm of each head of queries and keys, before they are rotated.
struct QkNormSpec {
  NormSpec norm;
  bool per_head = false;  // every head has weights of its own
};

struct AttentionSpec {
  size_t heads = 0;
  size_t kv_heads = 0;
  size_t head_dim = 0;  // of queries and keys
  size_t value_dim = 0;
  float scale = 1.0f;  // of the scores
  bool causal = true;
  size_t window = 0;     // 0: all keys
  float softcap = 0.0f;  // 0: none
  bool qkv_bias = false;
  bool output_bias = false;
  float qkv_clip = 0.0f;  // > 0: queries, keys and values lie in [-clip, clip]
  std::optional<QkNormSpec> qk_norm;
  std::vector<float> slopes;                      // [heads]: ALiBi; empty: none
  std::optional<RelativeBiasSpec> relative_bias;  // the same in all layers
  std::optional<DisentangledSpec> disentangled;   // of all layers or none
  bool sinks = false;          // one more logit a head, without a value
  std::optional<size_t> rope;  // index into ModelSpec::ropes

  size_t query_width() const { return heads * head_dim; }
  size_t key_width() const { return kv_heads * head_dim; }
  size_t value_width() const { return kv_heads * value_dim; }
  size_t output_width() const { return heads * value_dim; }
};

// An expert that sees every row.
struct SharedExpertSpec {
  size_t width = 0;
  bool gate = false;  // its output is multiplied by sigmoid(gate(x))
};

// Mixture of experts: the router's top_k experts of a row, each a feed-forward
// network as FfnSpec says, weighted and added in ascending order.
struct MoeSpec {
  size_t experts = 0;
  size_t top_k = 0;
  bool renormalize = false;  // softmax over the chosen ones, not over all
  bool router_bias = false;
  std::optional<SharedExpertSpec> shared;
};

struct FfnSpec {
  Activation activation = Activation::kGelu;
  bool gated = false;  // activation(gate(x)) * up(x)
  size_t width = 0;    // of the hidden layer; of one expert's
  bool bias = false;
  // > 0: gate(x) is at most this and up(x) lies in [-limit, limit].
  float gate_limit = 0.0f;
  float up_offset = 0.0f;  // added to up(x)
  std::optional<MoeSpec> moe;
};

// Norms around a sublayer: y = after(x + output(sublayer(input(x)))).
struct SublayerNorms {
  std::optional<NormSpec> input;
  std::optional<NormSpec> output;
  std::optional<NormSpec> after;
};

// Attention to the rows of the encoder, between self-attention and the
// feed-forward part. Their keys and values are computed once a sequence.
struct CrossAttentionSpec {
  SublayerNorms norms;
  AttentionSpec attention;  // not causal, no rope
};

struct LayerSpec {
  // Number of the weights in the files; layers of one group share them
  // (ALBERT). Absent: every layer has its own, under its own number.
  std::optional<size_t> group;
  // Both sublayers read the layer's input: x + attention(x) + ffn(x). Without
  // an input norm of its own the feed-forward part shares attention's.
  bool parallel = false;
  SublayerNorms attention_norms;
  AttentionSpec attention;
  std::optional<CrossAttentionSpec> cross;
  SublayerNorms ffn_norms;
  FfnSpec ffn;
};

// What a model's outputs are for.
enum class HeadTask : uint8_t {
  kNone,            // hidden states only
  kNextToken,       // logits of the vocabulary at each row: the next token
  kMaskedToken,     // the same: the token at the row itself
  kPooled,          // one vector a sequence
  kSequenceLabels,  // logits of labels, one row a sequence
  kTokenLabels,     // logits of labels at each row
  kSpan,            // two columns a row: start and end of an answer
};

// Rows that the head reads.
enum class Pooling : uint8_t { kNone, kFirst, kLast, kMean };

// A dense layer, its activation and a norm before the output matrix: the
// transform of masked language models, the pooler of classifiers.
struct HeadTransformSpec {
  size_t width = 0;
  bool bias = false;
  Activation activation = Activation::kIdentity;
  std::optional<NormSpec> norm;
};

struct HeadSpec {
  HeadTask task = HeadTask::kNextToken;
  Pooling pooling = Pooling::kNone;  // else one row a sequence
  std::optional<HeadTransformSpec> transform;
  // Rows of the output matrix; absent: one for each token of the vocabulary.
  // 0: no matrix, the transform's result is the output.
  std::optional<size_t> outputs;
  bool tied = false;  // the token embedding serves as output matrix
  bool bias = false;
  float scale = 1.0f;               // of the logits
  float softcap = 0.0f;             // > 0: of the scaled logits
  std::vector<std::string> labels;  // names of the outputs; may be empty
};

// What a stack's rows are made of.
enum class InputKind : uint8_t {
  kTokens,
  kVectors,  // the caller's, [rows, width], or those of a stem: patches
};

// What makes rows of a spectrogram [frames, bands]: two convolutions of
// kConv1dTaps frames, each followed by GELU, the second over every other frame
// (Radford et al., Whisper, arXiv:2212.04356). Outside a sequence is zero.
struct AudioStemSpec {
  size_t bands = 0;
};
inline constexpr size_t kConv1dTaps = 3;

// One stack of layers. An encoder-decoder is its decoder, with the encoder's
// stack beside it.
struct ModelSpec {
  std::string family;  // for messages only
  InputKind input = InputKind::kTokens;
  std::optional<PatchSpec> patches;  // how an image becomes vectors
  size_t vocab_size = 0;
  size_t width = 0;          // of the residual stream
  size_t max_positions = 0;  // the longest sequence
  float embedding_scale = 1.0f;
  // Of the token embedding where it is not `width`: a matrix leads from it to
  // the residual stream, another back before the head.
  std::optional<size_t> embedding_width;
  // Where that matrix comes: false: right after the token embedding (OPT);
  // true: after positions, token types and norm, which have the embedding's
  // width then, and none leads back (ALBERT).
  bool embedding_projected_last = false;
  std::optional<AudioStemSpec> audio_stem;  // of InputKind::kVectors
  PositionSpec positions;
  size_t token_types = 0;  // rows of the table of token types; 0: none
  std::optional<NormSpec> embedding_norm;
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  std::optional<ConvolutionSpec> convolution;
  std::optional<NormSpec> final_norm;
  HeadSpec head;
  std::vector<ModelSpec> encoder;  // one for an encoder-decoder, without a head

  size_t token_width() const { return embedding_width.value_or(width); }
  // Of positions, token types and the embedding's norm.
  size_t input_width() const {
    return embedding_projected_last ? token_width() : width;
  }
  // Columns of what the head gives: logits, or the pooled vector.
  size_t head_width() const {
    if (head.task == HeadTask::kNone) return 0;
    const size_t outputs = head.outputs.value_or(vocab_size);
    return outputs > 0 || !head.transform.has_value() ? outputs
                                                      : head.transform->width;
  }
  // Whether rows see later ones, so that a sequence must be run whole.
  bool bidirectional() const {
    return !layers.empty() && !layers.front().attention.causal;
  }
};

// The fields, one a line, as `inspect --spec` prints them; equal consecutive
// layers are printed once.
std::string SpecToString(const ModelSpec& spec);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_SPEC_H_
