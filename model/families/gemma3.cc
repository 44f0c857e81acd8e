// Gemma 3, the text model: Gemma 2 with norms of the query and key heads in
// place of soft-caps, and a RoPE of its own for the layers with a window
// (Gemma Team, arXiv:2503.19786).
#include "absl/strings/str_cat.h"
#include "model/families/common.h"
#include "model/families/family.h"
#include "model/families/gemma_config.h"
#include "model/families/llama_like.h"
#include "model/families/rope_config.h"
#include "model/format/json.h"
#include "model/limits.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kPattern = 6;  // every sixth layer sees all keys
constexpr double kGlobalTheta = 1e6, kLocalTheta = 1e4;

LlamaLike Defaults() { return GemmaDefaults("gemma3", "hidden_activation"); }

void SetNormsAndScale(ModelSpec* spec) {
  SetGemmaEmbeddingScale(spec);
  SetGemmaOutputNorms(spec);
  ForLayers(spec, [](LayerSpec& layer) {
    layer.attention.qk_norm = QkNormSpec{*layer.attention_norms.input};
  });
}

// Ropes: 0 for all keys, 1 for a window.
void AssignRopes(ModelSpec* spec) {
  ForLayers(spec, [](LayerSpec& layer) {
    layer.attention.rope = layer.attention.window > 0 ? 1 : 0;
  });
}

// Newer files have an object for each type of layer, older ones rope_theta and
// rope_scaling for all keys and rope_local_base_freq for windows.
absl::Status ReadRopes(const nlohmann::json& config, absl::string_view file,
                       ModelSpec* spec) {
  RopeSpec local;
  local.rotary_dim = spec->ropes[0].rotary_dim;
  local.original_positions = spec->max_positions;
  RopeSpec global = local;
  const nlohmann::json* parameters = FindJson(config, "rope_parameters");
  const std::string where = absl::StrCat(file, ": rope_parameters");
  if (parameters != nullptr) {
    global.theta = kGlobalTheta;
    LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json* full,
                              GetObject(*parameters, where, "full_attention"));
    LANEWISE_ASSIGN_OR_RETURN(
        const nlohmann::json* sliding,
        GetObject(*parameters, where, "sliding_attention"));
    LANEWISE_RETURN_IF_ERROR(ReadRopeParameters(
        *full, where + ": full_attention", spec->max_positions, &global));
    LANEWISE_RETURN_IF_ERROR(ReadRopeParameters(
        *sliding, where + ": sliding_attention", spec->max_positions, &local));
  } else {
    global = spec->ropes[0];
    LANEWISE_ASSIGN_OR_RETURN(
        global.theta, GetFloatOr(config, file, "rope_theta", kGlobalTheta));
    LANEWISE_ASSIGN_OR_RETURN(
        local.theta,
        GetFloatOr(config, file, "rope_local_base_freq", kLocalTheta));
  }
  spec->ropes = {global, local};
  return absl::OkStatus();
}

absl::StatusOr<ModelSpec> FromConfig(const nlohmann::json& config,
                                     absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadLlamaLike(config, file, Defaults()));
  SetNormsAndScale(&spec);
  LANEWISE_RETURN_IF_ERROR(ReadGemmaScores(config, file, &spec));
  const absl::string_view key =
      FindJson(config, "sliding_window_pattern") != nullptr
          ? "sliding_window_pattern"
          : "_sliding_window_pattern";
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t pattern,
      GetUintOr(config, file, key, kMaxLayers, kPattern, 1));
  LANEWISE_RETURN_IF_ERROR(ReadWindows(
      config, file, [&](size_t layer) { return (layer + 1) % pattern != 0; },
      &spec));
  LANEWISE_RETURN_IF_ERROR(ReadRopes(config, file, &spec));
  AssignRopes(&spec);
  return spec;
}

absl::StatusOr<ModelSpec> FromMetadata(const Metadata& metadata) {
  LANEWISE_ASSIGN_OR_RETURN(ModelSpec spec,
                            ReadGgufLlamaLike(metadata, Defaults()));
  SetNormsAndScale(&spec);
  SetGgufGemmaScale(62, &spec);
  LANEWISE_ASSIGN_OR_RETURN(
      const size_t window,
      metadata.GetUint("gemma3.attention.sliding_window", kMaxPositions));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    if ((i + 1) % kPattern != 0) spec.layers[i].attention.window = window;
  }
  RopeSpec local;
  local.rotary_dim = spec.ropes[0].rotary_dim;
  LANEWISE_ASSIGN_OR_RETURN(
      spec.ropes[0].theta,
      metadata.GetFloatOr("gemma3.rope.freq_base", kGlobalTheta));
  LANEWISE_ASSIGN_OR_RETURN(
      local.theta,
      metadata.GetFloatOr("gemma3.rope.freq_base_swa", kLocalTheta));
  spec.ropes.push_back(local);
  AssignRopes(&spec);
  return spec;
}

}  // namespace

const Family& Gemma3Family() {
  constexpr auto kAddOne = TensorLayout::kAddOne;
  constexpr auto kRequired = Presence::kRequired;
  static const Family* const family = new Family{
      "gemma3",
      {"gemma3_text"},
      {"gemma3"},
      FromConfig,
      FromMetadata,
      Join({GemmaTensors(),
            Gemma2NormTensors(),
            {
                // clang-format off
          {"layers.{}.self_attn.q_norm.weight", "blk.{}.attn_q_norm.weight", Slot::kQueryNorm, false, Dim::kHeadDim, Dim::kOne, kRequired, kAddOne},
          {"layers.{}.self_attn.k_norm.weight", "blk.{}.attn_k_norm.weight", Slot::kKeyNorm, false, Dim::kHeadDim, Dim::kOne, kRequired, kAddOne},
                // clang-format on
            }}),
      {"model.", ""}};
  return *family;
}

}  // namespace lanewise
