#include "model/spec.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lanewise {
namespace {

absl::string_view Name(Activation activation) {
  switch (activation) {
    case Activation::kIdentity:
      return "identity";
    case Activation::kRelu:
      return "relu";
    case Activation::kReluSquared:
      return "relu squared";
    case Activation::kSilu:
      return "silu";
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu tanh";
    case Activation::kQuickGelu:
      return "quick gelu";
    case Activation::kTanh:
      return "tanh";
    case Activation::kSigmoid:
      return "sigmoid";
  }
  return "?";
}

absl::string_view Name(RopeSpec::Scaling scaling) {
  switch (scaling) {
    case RopeSpec::Scaling::kNone:
      return "none";
    case RopeSpec::Scaling::kLinear:
      return "linear";
    case RopeSpec::Scaling::kDynamic:
      return "dynamic";
    case RopeSpec::Scaling::kLlama3:
      return "llama3";
    case RopeSpec::Scaling::kYarn:
      return "yarn";
    case RopeSpec::Scaling::kLongrope:
      return "longrope";
  }
  return "?";
}

std::string Text(const std::optional<NormSpec>& norm) {
  if (!norm.has_value()) return "none";
  return absl::StrCat(
      norm->kind == NormKind::kRmsNorm ? "RMSNorm" : "LayerNorm",
      norm->bias     ? " with bias"
      : norm->weight ? ""
                     : " without weight",
      ", eps ", norm->eps);
}

void AppendNorms(absl::string_view name, const SublayerNorms& norms,
                 std::string* out) {
  absl::StrAppend(out, "  ", name, " norm, input: ", Text(norms.input), "\n");
  if (norms.output.has_value()) {
    absl::StrAppend(out, "  ", name, " norm, output: ", Text(norms.output),
                    "\n");
  }
  if (norms.after.has_value()) {
    absl::StrAppend(out, "  ", name, " norm, after: ", Text(norms.after), "\n");
  }
}

std::string Text(const DisentangledSpec& spec) {
  return absl::StrCat(
      "disentangled over ", 2 * spec.span, " relative positions",
      spec.buckets > 0 ? absl::StrCat(" in buckets to ", spec.max_distance)
                       : "",
      spec.relative_keys ? ", keys" : "",
      spec.relative_queries ? ", queries" : "",
      spec.shared_projections ? " by the same projections"
                              : " by their own projections",
      ", norm ", Text(spec.norm));
}

std::string AttentionText(const AttentionSpec& attention) {
  std::string out = absl::StrCat(
      attention.heads, " heads, ", attention.kv_heads, " key/value heads of ",
      attention.head_dim, " and ", attention.value_dim, ", scale ",
      attention.scale, attention.causal ? ", causal" : "",
      attention.qkv_bias ? ", qkv bias" : "",
      attention.output_bias ? ", output bias" : "");
  if (attention.qkv_clip > 0.0f) {
    absl::StrAppend(&out, ", clip ", attention.qkv_clip);
  }
  if (attention.qk_norm.has_value()) {
    absl::StrAppend(&out, ", q/k ", Text(attention.qk_norm->norm),
                    attention.qk_norm->per_head ? " per head" : "");
  }
  if (attention.window > 0) {
    absl::StrAppend(&out, ", window ", attention.window);
  }
  if (attention.softcap > 0.0f) {
    absl::StrAppend(&out, ", soft-cap ", attention.softcap);
  }
  if (!attention.slopes.empty()) {
    absl::StrAppend(&out, ", slopes ", attention.slopes.front(), " to ",
                    attention.slopes.back());
  }
  if (attention.relative_bias.has_value()) {
    const RelativeBiasSpec& bias = *attention.relative_bias;
    absl::StrAppend(&out, ", ", bias.buckets, " relative buckets to ",
                    bias.max_distance, bias.bidirectional ? " either way" : "");
  }
  if (attention.disentangled.has_value()) {
    absl::StrAppend(&out, ", ", Text(*attention.disentangled));
  }
  if (attention.sinks) absl::StrAppend(&out, ", sinks");
  if (attention.rope.has_value()) {
    absl::StrAppend(&out, ", rope ", *attention.rope);
  }
  return out;
}

std::string FfnText(const FfnSpec& ffn) {
  std::string out =
      absl::StrCat(ffn.width, ", ", Name(ffn.activation),
                   ffn.gated ? ", gated" : "", ffn.bias ? ", bias" : "");
  if (ffn.gate_limit > 0.0f) {
    absl::StrAppend(&out, ", gate limit ", ffn.gate_limit);
  }
  if (ffn.up_offset != 0.0f) {
    absl::StrAppend(&out, ", up offset ", ffn.up_offset);
  }
  if (!ffn.moe.has_value()) return out;
  const MoeSpec& moe = *ffn.moe;
  absl::StrAppend(&out, ", ", moe.top_k, " of ", moe.experts, " experts",
                  moe.renormalize ? ", renormalized" : "",
                  moe.router_bias ? ", router bias" : "");
  if (moe.shared.has_value()) {
    absl::StrAppend(&out, ", a shared one of ", moe.shared->width,
                    moe.shared->gate ? " with a gate" : "");
  }
  return out;
}

std::string LayerText(const LayerSpec& layer) {
  std::string out;
  if (layer.parallel) out = "  parallel\n";
  if (layer.group.has_value()) {
    absl::StrAppend(&out, "  weights of group ", *layer.group, "\n");
  }
  AppendNorms("attention", layer.attention_norms, &out);
  absl::StrAppend(&out, "  attention: ", AttentionText(layer.attention), "\n");
  if (layer.cross.has_value()) {
    AppendNorms("cross-attention", layer.cross->norms, &out);
    absl::StrAppend(&out, "  cross-attention: ",
                    AttentionText(layer.cross->attention), "\n");
  }
  AppendNorms("ffn", layer.ffn_norms, &out);
  absl::StrAppend(&out, "  ffn: ", FfnText(layer.ffn), "\n");
  return out;
}

absl::string_view Name(HeadTask task) {
  switch (task) {
    case HeadTask::kNone:
      return "none";
    case HeadTask::kNextToken:
      return "next token";
    case HeadTask::kMaskedToken:
      return "masked token";
    case HeadTask::kPooled:
      return "pooled vector";
    case HeadTask::kSequenceLabels:
      return "labels of a sequence";
    case HeadTask::kTokenLabels:
      return "labels of tokens";
    case HeadTask::kSpan:
      return "span";
  }
  return "?";
}

absl::string_view Name(Pooling pooling) {
  switch (pooling) {
    case Pooling::kNone:
      return "none";
    case Pooling::kFirst:
      return "first";
    case Pooling::kLast:
      return "last";
    case Pooling::kMean:
      return "mean";
  }
  return "?";
}

std::string HeadText(const ModelSpec& spec) {
  const HeadSpec& head = spec.head;
  std::string out;
  if (head.task != HeadTask::kNextToken) {
    out = std::string(Name(head.task));
    if (head.task == HeadTask::kNone) return out;
    absl::StrAppend(&out, ", ", spec.head_width(), " columns, ");
  }
  if (head.pooling != Pooling::kNone) {
    absl::StrAppend(&out, "of the ", Name(head.pooling), " row, ");
  }
  if (head.transform.has_value()) {
    const HeadTransformSpec& transform = *head.transform;
    absl::StrAppend(&out, "dense ", transform.width, ", ",
                    Name(transform.activation), ", norm ", Text(transform.norm),
                    ", ");
  }
  if (head.outputs == size_t{0}) {
    absl::StrAppend(&out, "no matrix");
  } else {
    absl::StrAppend(&out, head.tied ? "tied" : "own matrix");
  }
  absl::StrAppend(&out, head.bias ? ", bias" : "");
  if (head.scale != 1.0f) absl::StrAppend(&out, ", scale ", head.scale);
  if (head.softcap > 0.0f) absl::StrAppend(&out, ", soft-cap ", head.softcap);
  return out;
}

absl::string_view Name(PositionSpec::Kind kind) {
  switch (kind) {
    case PositionSpec::Kind::kNone:
      return "";
    case PositionSpec::Kind::kLearned:
      return ", learned";
    case PositionSpec::Kind::kSinusoidalHalves:
      return ", sinusoidal in halves";
    case PositionSpec::Kind::kSinusoidalHalvesClosed:
      return ", sinusoidal in halves, closed";
    case PositionSpec::Kind::kSinusoidalInterleaved:
      return ", sinusoidal, interleaved";
  }
  return "?";
}

std::string PatchText(const std::optional<PatchSpec>& patches) {
  if (!patches.has_value()) return "";
  return absl::StrCat(" of an image [", patches->channels, ", ",
                      patches->height, ", ", patches->width, "] in patches of ",
                      patches->size);
}

}  // namespace

std::string SpecToString(const ModelSpec& spec) {
  std::string out = absl::StrCat(
      "family: ", spec.family, "\nvocabulary: ", spec.vocab_size,
      "\nwidth: ", spec.width,
      spec.embedding_width.has_value()
          ? absl::StrCat(", of the embedding ", *spec.embedding_width,
                         spec.embedding_projected_last ? " up to its norm" : "")
          : "",
      "\npositions: ", spec.max_positions, Name(spec.positions.kind),
      spec.positions.offset > 0
          ? absl::StrCat(" from row ", spec.positions.offset)
          : "",
      spec.positions.bare_id.has_value()
          ? absl::StrCat(", none for id ", *spec.positions.bare_id)
          : "",
      spec.token_types > 0 ? absl::StrCat("\ntoken types: ", spec.token_types)
                           : "",
      spec.input == InputKind::kVectors ? "\ninput: vectors" : "",
      PatchText(spec.patches),
      spec.audio_stem.has_value()
          ? absl::StrCat(" of ", spec.audio_stem->bands, " bands of audio")
          : "",
      "\nembedding scale: ", spec.embedding_scale,
      "\nembedding norm: ", Text(spec.embedding_norm), "\n");
  for (size_t i = 0; i < spec.ropes.size(); ++i) {
    const RopeSpec& rope = spec.ropes[i];
    absl::StrAppend(
        &out, "rope ", i, ": ", rope.rotary_dim, " of a head, ",
        rope.pairing == RopePairing::kHalves ? "halves" : "interleaved",
        ", theta ", rope.theta, ", scaling ", Name(rope.scaling));
    if (rope.scaling != RopeSpec::Scaling::kNone) {
      absl::StrAppend(&out, " by ", rope.factor);
    }
    if (rope.attention_factor != 1.0) {
      absl::StrAppend(&out, ", attention factor ", rope.attention_factor);
    }
    absl::StrAppend(&out, "\n");
  }
  std::vector<std::string> layers;
  for (const LayerSpec& layer : spec.layers) layers.push_back(LayerText(layer));
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin + 1;
    while (end < layers.size() && layers[end] == layers[begin]) ++end;
    absl::StrAppend(&out, "layers ", begin, " to ", end - 1, ":\n",
                    layers[begin]);
    begin = end;
  }
  if (spec.convolution.has_value()) {
    const ConvolutionSpec& convolution = *spec.convolution;
    absl::StrAppend(&out, "convolution beside layer 0: ", convolution.kernel,
                    " rows, ", Name(convolution.activation), ", norm ",
                    Text(std::optional<NormSpec>(convolution.norm)), "\n");
  }
  absl::StrAppend(&out, "final norm: ", Text(spec.final_norm),
                  "\nhead: ", HeadText(spec), "\n");
  for (const ModelSpec& encoder : spec.encoder) {
    absl::StrAppend(&out, "encoder:\n", SpecToString(encoder));
  }
  return out;
}

}  // namespace lanewise
