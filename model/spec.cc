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
  AppendNorms("attention", layer.attention_norms, &out);
  absl::StrAppend(&out, "  attention: ", AttentionText(layer.attention), "\n");
  AppendNorms("ffn", layer.ffn_norms, &out);
  absl::StrAppend(&out, "  ffn: ", FfnText(layer.ffn), "\n");
  return out;
}

std::string HeadText(const HeadSpec& head) {
  std::string out = absl::StrCat(head.tied ? "tied" : "own matrix",
                                 head.bias ? ", bias" : "");
  if (head.scale != 1.0f) absl::StrAppend(&out, ", scale ", head.scale);
  if (head.softcap > 0.0f) absl::StrAppend(&out, ", soft-cap ", head.softcap);
  return out;
}

}  // namespace

std::string SpecToString(const ModelSpec& spec) {
  std::string out = absl::StrCat(
      "family: ", spec.family, "\nvocabulary: ", spec.vocab_size,
      "\nwidth: ", spec.width,
      spec.embedding_width.has_value()
          ? absl::StrCat(", of the embedding ", *spec.embedding_width)
          : "",
      "\npositions: ", spec.max_positions,
      spec.positions.kind == PositionSpec::Kind::kLearned ? ", learned" : "",
      spec.positions.offset > 0
          ? absl::StrCat(" from row ", spec.positions.offset)
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
  absl::StrAppend(&out, "final norm: ", Text(spec.final_norm),
                  "\nhead: ", HeadText(spec.head), "\n");
  return out;
}

}  // namespace lanewise
