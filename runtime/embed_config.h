// What a model's files say about making vectors of texts.
#ifndef LANEWISE_RUNTIME_EMBED_CONFIG_H_
#define LANEWISE_RUNTIME_EMBED_CONFIG_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lanewise/embedding.h"
#include "model/format/checkpoint.h"
#include "model/spec.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/activation.h"

namespace lanewise {

// How long a text may be.
struct TextLimit {
  size_t max_tokens = 0;       // special tokens included
  bool truncate_left = false;  // too long a text loses its beginning instead
  bool lowercase = false;      // asked for before the tokenizer: not supported
};

// What bounds a text: the model's positions, and of a folder max_seq_length of
// sentence_bert_config.json, else model_max_length of tokenizer_config.json,
// else the tokenizer's own truncation.
absl::StatusOr<TextLimit> ReadTextLimit(const Checkpoint& checkpoint,
                                        const ModelSpec& spec,
                                        const Tokenizer& tokenizer);

// A linear map after pooling, in a folder of its own.
struct EmbedDenseConfig {
  std::string file;  // its weights
  size_t in = 0;
  size_t out = 0;
  bool bias = true;
  Activation activation = Activation::kTanh;
};

struct EmbedConfig {
  std::vector<EmbedPooling> pooling;  // several: one after the other in the
                                      // vector; none is kModel
  bool pooling_stated = false;        // by a file
  bool pool_prompt = true;            // whether rows of the prompt are pooled
  std::vector<EmbedDenseConfig> dense;
  bool normalize = false;
  std::vector<std::pair<std::string, std::string>> prompts;  // name, text
  std::string default_prompt;                                // a name; or empty
  TextLimit limit;
};

// Folder: modules.json and the folders it names,
// config_sentence_transformers.json, and ReadTextLimit; without modules.json no
// dense layers and no scaling. GGUF: <architecture>.pooling_type. UNIMPLEMENTED
// for modules that are not known, with their type.
absl::StatusOr<EmbedConfig> ReadEmbedConfig(const Checkpoint& checkpoint,
                                            const ModelSpec& spec,
                                            const Tokenizer& tokenizer);

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_EMBED_CONFIG_H_
