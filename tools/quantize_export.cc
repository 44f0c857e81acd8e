#include "tools/quantize_export.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "model/rope_table.h"
#include "model/slots.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

constexpr size_t kRelativeLength = 512;  // T5's

class Exporter {
 public:
  Exporter(absl::string_view architecture, const ModelSpec& spec,
           Metadata* metadata)
      : architecture_(architecture), spec_(spec), metadata_(*metadata) {}

  void Export() {
    metadata_.Insert("general.architecture", std::string(architecture_));
    metadata_.Insert("general.type", std::string("model"));
    if (spec_.encoder.empty()) {
      Uint("block_count", spec_.layers.size());
    } else {
      Uint("block_count", spec_.encoder.front().layers.size());
      Uint("decoder_block_count", spec_.layers.size());
    }
    ExportPositions();
    Uint("embedding_length", spec_.width);
    Uint("vocab_size", spec_.vocab_size);
    if (spec_.token_types > 0) {
      metadata_.Insert("tokenizer.ggml.token_type_count",
                       static_cast<int64_t>(spec_.token_types),
                       MetadataType::kUint32);
    }
    if (spec_.layers.empty()) return;
    const LayerSpec& layer = spec_.layers.front();
    ExportFfn(layer.ffn);
    ExportAttention(layer.attention);
    ExportNorm(spec_.final_norm.has_value() ? spec_.final_norm
               : layer.attention_norms.input.has_value()
                   ? layer.attention_norms.input
                   : layer.attention_norms.after);
    if (spec_.head.softcap > 0.0f) {
      Float("final_logit_softcapping", spec_.head.softcap);
    }
    if (spec_.head.scale != 1.0f) Float("logit_scale", spec_.head.scale);
    if (!spec_.ropes.empty()) ExportRope(spec_.ropes.front());
    if (spec_.ropes.size() > 1) {
      Float("rope.freq_base_swa", spec_.ropes[1].theta);
    }
  }

 private:
  std::string Key(absl::string_view name) const {
    return absl::StrCat(architecture_, ".", name);
  }
  void Uint(absl::string_view name, size_t value) {
    metadata_.Insert(Key(name), static_cast<int64_t>(value),
                     MetadataType::kUint32);
  }
  void Float(absl::string_view name, double value) {
    // As the file will hold it: what is read back must be what others read.
    metadata_.Insert(Key(name), static_cast<double>(static_cast<float>(value)),
                     MetadataType::kFloat32);
  }

  // Relative positions know no limit: then the length of pre-training, which
  // others size their caches by.
  void ExportPositions() {
    const auto& bias = spec_.layers.empty()
                           ? std::nullopt
                           : spec_.layers.front().attention.relative_bias;
    Uint("context_length",
         bias.has_value() ? kRelativeLength : spec_.max_positions);
    if (bias.has_value()) {
      Uint("attention.relative_buckets_count", bias->buckets);
    }
  }

  void ExportFfn(const FfnSpec& ffn) {
    Uint("feed_forward_length", ffn.width);
    if (!ffn.moe.has_value()) return;
    Uint("expert_feed_forward_length", ffn.width);
    Uint("expert_count", ffn.moe->experts);
    Uint("expert_used_count", ffn.moe->top_k);
  }

  void ExportAttention(const AttentionSpec& attention) {
    Uint("attention.head_count", attention.heads);
    Uint("attention.head_count_kv", attention.kv_heads);
    if (!attention.causal) {
      metadata_.Insert(Key("attention.causal"), false);
    }
    const bool divided = attention.head_dim == attention.value_dim &&
                         attention.query_width() == spec_.width;
    if (!divided) {
      Uint("attention.key_length", attention.head_dim);
      Uint("attention.value_length", attention.value_dim);
    }
    size_t window = 0;
    for (const LayerSpec& layer : spec_.layers) {
      window = std::max(window, layer.attention.window);
    }
    if (window > 0) Uint("attention.sliding_window", window);
    if (attention.softcap > 0.0f) {
      Float("attn_logit_softcapping", attention.softcap);
    }
  }

  void ExportNorm(const std::optional<NormSpec>& norm) {
    if (!norm.has_value()) return;
    Float(norm->kind == NormKind::kRmsNorm ? "attention.layer_norm_rms_epsilon"
                                           : "attention.layer_norm_epsilon",
          norm->eps);
  }

  void ExportRope(const RopeSpec& rope) {
    Uint("rope.dimension_count", rope.rotary_dim);
    Float("rope.freq_base", rope.theta);
    const bool linear = rope.scaling == RopeSpec::Scaling::kLinear;
    const bool yarn = rope.scaling == RopeSpec::Scaling::kYarn;
    const bool longrope = rope.scaling == RopeSpec::Scaling::kLongrope;
    if (linear || yarn) {
      metadata_.Insert(Key("rope.scaling.type"),
                       std::string(linear ? "linear" : "yarn"));
      Float("rope.scaling.factor", rope.factor);
    }
    if (yarn || longrope) {
      Uint("rope.scaling.original_context_length", rope.original_positions);
    }
    // Its lists of factors are tensors.
    if (longrope) Float("rope.scaling.attn_factor", rope.attention_factor);
  }

  const absl::string_view architecture_;
  const ModelSpec& spec_;
  Metadata& metadata_;
};

// Takes away what a GGUF file tells by its tensors.
void MakeComparable(ModelSpec* spec) {
  spec->family.clear();
  spec->head.tied = spec->head.bias = false;
  // Files of encoders leave the pooler out: sentences are pooled otherwise.
  if (spec->head.task == HeadTask::kPooled) {
    spec->head = {};
    spec->head.task = HeadTask::kNone;
  }
  for (LayerSpec& layer : spec->layers) {
    layer.attention.qkv_bias = layer.attention.output_bias = false;
    layer.ffn.bias = false;
  }
  for (RopeSpec& rope : spec->ropes) {
    if (rope.scaling == RopeSpec::Scaling::kLlama3 ||
        rope.scaling == RopeSpec::Scaling::kLongrope) {
      rope.scaling = RopeSpec::Scaling::kNone;
    }
    rope.attention_factor = static_cast<float>(rope.attention_factor);
  }
  for (ModelSpec& encoder : spec->encoder) MakeComparable(&encoder);
}

std::string ComparableText(ModelSpec spec) {
  MakeComparable(&spec);
  return SpecToString(spec);
}

// Whether the file of a model will have a tensor of that name, in layer 0 or
// outside of layers.
bool WillHave(absl::string_view name, absl::Span<const TensorRule> rules,
              const ModelSpec& spec) {
  for (const TensorRule& rule : rules) {
    const bool in_layer = absl::StrContains(rule.gguf, "{}");
    if (absl::StrReplaceAll(rule.gguf, {{"{}", "0"}}) != name) continue;
    if (rule.slot == Slot::kHead && !rule.bias && spec.head.tied) continue;
    const LayerSpec* layer = in_layer ? &spec.layers.front() : nullptr;
    if (HasSlot(spec, layer, rule.slot, rule.bias)) return true;
  }
  return false;
}

// Numbers that the text of a spec rounds or leaves out.
absl::Status CheckSameRopes(const std::string& path, const ModelSpec& folder,
                            const ModelSpec& gguf) {
  for (size_t i = 0; i < folder.ropes.size(); ++i) {
    const RopeSpec& a = folder.ropes[i];
    const RopeSpec& b = gguf.ropes[i];
    const bool yarn = a.scaling == RopeSpec::Scaling::kYarn;
    const bool longrope = a.scaling == RopeSpec::Scaling::kLongrope;
    const bool scaled = yarn || a.scaling == RopeSpec::Scaling::kLinear;
    if (a.theta == b.theta && (!scaled || a.factor == b.factor) &&
        (!(yarn || longrope) || (a.original_positions == b.original_positions &&
                                 static_cast<float>(a.attention_factor) ==
                                     static_cast<float>(b.attention_factor))) &&
        (!yarn || (a.beta_fast == b.beta_fast && a.beta_slow == b.beta_slow &&
                   a.truncate == b.truncate))) {
      continue;
    }
    return absl::UnimplementedError(absl::StrCat(
        path, ": GGUF cannot hold the numbers of this model's RoPE (theta ",
        a.theta, ", factor ", a.factor, ") exactly"));
  }
  return absl::OkStatus();
}

// OK when the file would be read as the model that the folder holds.
absl::Status CheckSame(const std::string& path, const ModelSpec& folder,
                       const ModelSpec& gguf, absl::string_view architecture) {
  const std::string expected = ComparableText(folder);
  const std::string found = ComparableText(gguf);
  if (expected == found) return CheckSameRopes(path, folder, gguf);
  const std::vector<absl::string_view> a = absl::StrSplit(expected, '\n');
  const std::vector<absl::string_view> b = absl::StrSplit(found, '\n');
  // The first line that the other text has not; which layers a line is of
  // differs more often than it tells something.
  const auto only_in = [](const std::vector<absl::string_view>& these,
                          const std::vector<absl::string_view>& those) {
    const absl::flat_hash_set<absl::string_view> other(those.begin(),
                                                       those.end());
    absl::string_view first;
    for (const absl::string_view line : these) {
      if (other.contains(line)) continue;
      if (first.empty() || absl::StartsWith(first, "layers ")) first = line;
    }
    return absl::StripAsciiWhitespace(first);
  };
  return absl::UnimplementedError(absl::StrCat(
      path, ": GGUF's architecture ", architecture,
      " has no key for a part of this model: the folder says \"", only_in(a, b),
      "\", the file would say \"", only_in(b, a), "\""));
}

std::string BaseName(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

absl::StatusOr<ExportedModel> ExportAs(const std::string& path,
                                       absl::string_view architecture,
                                       const Family& family,
                                       const ModelSpec& spec) {
  ExportedModel model;
  model.metadata = Metadata(path);
  Exporter(architecture, spec, &model.metadata).Export();
  model.metadata.Insert("general.name", BaseName(path));
  LANEWISE_ASSIGN_OR_RETURN(model.spec, family.from_metadata(model.metadata));
  if (family.from_tensors != nullptr) {
    const auto has = [&](absl::string_view name) {
      return WillHave(name, family.TensorsOf(spec), spec) ||
             (!spec.encoder.empty() &&
              WillHave(name, family.encoder_tensors, spec.encoder.front()));
    };
    family.from_tensors(has, &model.spec);
  }
  LANEWISE_RETURN_IF_ERROR(CheckSame(path, spec, model.spec, architecture));
  model.family = &family;
  return model;
}

constexpr absl::string_view kGeneral = "llama";

}  // namespace

absl::StatusOr<ExportedModel> ExportModel(const std::string& path,
                                          const Family& family,
                                          const ModelSpec& spec) {
  absl::Status first;
  for (const absl::string_view architecture : family.gguf_architectures) {
    absl::StatusOr<ExportedModel> model =
        ExportAs(path, architecture, family, spec);
    if (model.ok()) return model;
    if (first.ok()) first = model.status();
  }
  if (!first.ok()) return first;
  // Families without an architecture of their own are in GGUF as "llama", when
  // they are that (Mistral, Mixtral).
  for (const Family* candidate : Families()) {
    if (candidate->name != kGeneral) continue;
    absl::StatusOr<ExportedModel> model =
        ExportAs(path, kGeneral, *candidate, spec);
    if (model.ok() || absl::IsUnimplemented(model.status())) return model;
  }
  return absl::UnimplementedError(absl::StrCat(
      path, ": no GGUF architecture is known here for family ", family.name));
}

std::vector<float> RopeFactors(const RopeSpec& rope) {
  RopeSpec plain_spec;
  plain_spec.rotary_dim = rope.rotary_dim;
  plain_spec.theta = rope.theta;
  const RopeTable scaled(rope), plain(plain_spec);
  std::vector<float> scratch(2 * plain.half());
  const auto from = plain.Frequencies(0, scratch.data());
  const auto to = scaled.Frequencies(0, scratch.data() + plain.half());
  std::vector<float> factors;
  for (size_t i = 0; i < from.size(); ++i) {
    // The quotient, or a neighbour by which division gives `to` exactly.
    const float quotient = from[i] / to[i];
    float factor = quotient;
    for (const float candidate :
         {quotient, quotient * (1 + 0x1p-23f), quotient * (1 - 0x1p-23f)}) {
      if (from[i] / candidate == to[i]) {
        factor = candidate;
        break;
      }
    }
    factors.push_back(factor);
  }
  return factors;
}

void ExportNoTokenizer(Metadata* metadata) {
  metadata->Insert("tokenizer.ggml.model", std::string("no_vocab"));
}

}  // namespace lanewise
