// What the Gemma families share.
#ifndef LANEWISE_MODEL_FAMILIES_GEMMA_CONFIG_H_
#define LANEWISE_MODEL_FAMILIES_GEMMA_CONFIG_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/families/family.h"
#include "model/families/llama_like.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

LlamaLike GemmaDefaults(absl::string_view family,
                        absl::string_view activation_key);

// Embeddings times the root of the width.
void SetGemmaEmbeddingScale(ModelSpec* spec);

// From Gemma 2 on: a second norm around each sublayer.
void SetGemmaOutputNorms(ModelSpec* spec);

// query_pre_attn_scalar and the soft-caps of Gemma 2 and 3.
absl::Status ReadGemmaScores(const nlohmann::json& config,
                             absl::string_view file, ModelSpec* spec);

// GGUF stores no query_pre_attn_scalar. It is the head size, but for the model
// of `layers` layers (27B), whose is the width divided by the heads.
void SetGgufGemmaScale(size_t layers, ModelSpec* spec);

// Norms are stored as their difference from 1, in GGUF as they are.
std::vector<TensorRule> GemmaTensors();       // without norms within layers
std::vector<TensorRule> GemmaNormTensors();   // Gemma 1: before sublayers
std::vector<TensorRule> Gemma2NormTensors();  // before and after

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_GEMMA_CONFIG_H_
