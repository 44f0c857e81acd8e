// Vectors of texts: what Engine::Embed takes and gives.
//
//   lanewise::EmbedRequest request;
//   request.texts = {"A cat sits outside.", "A feline is in the garden."};
//   auto result = engine->Embed(request, {});
//   if (!result.ok()) return Fail(result.status());
//   // result->vectors: [texts, width], in the order of request.texts
//
// How a model's rows become one vector is in its files: modules.json with
// 1_Pooling, 2_Dense, 2_Normalize (Reimers & Gurevych, arXiv:1908.10084), or
// <architecture>.pooling_type in GGUF. Any model with hidden states can embed,
// also one that was not trained for it. A text's vector does not depend, in any
// bit, on the texts beside it.
#ifndef LANEWISE_RUNTIME_EMBEDDING_H_
#define LANEWISE_RUNTIME_EMBEDDING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lanewise {

// Which of a text's rows x[0] … x[n - 1] make its vector.
enum class EmbedPooling : uint8_t {
  // As the model's files say; where they say nothing, the mean, or the last row
  // of a model whose rows see only earlier ones.
  kModel,
  kFirst,
  kLast,
  kMean,
  kMax,             // the largest of each column
  kMeanSqrtLength,  // sum / sqrt(n)
  kWeightedMean,    // (1 x[0] + 2 x[1] + …) / (1 + 2 + …)
};

struct EmbedRequest {
  std::vector<std::string> texts;

  // In place of texts: the rows of each input as the model's embedding would
  // give them, before positions and norm, [rows, width of the embedding]. For
  // what is not text: time series, features of another model. No prompt and no
  // special tokens are put to them, and nothing is cut.
  std::vector<std::vector<float>> vectors;

  // Put before every text. By name: one of the model's own prompts ("query").
  // At most one of the two; with neither the model's default prompt, if it has
  // one; an empty `prompt`: none.
  std::string prompt_name;
  std::optional<std::string> prompt;

  EmbedPooling pooling = EmbedPooling::kModel;
  // Whether vectors are scaled to length one; unset: as the model's files say
  // (of a GGUF file: yes, as they cannot say).
  std::optional<bool> normalize;
  // The vector's first values only, before it is scaled (Matryoshka; Kusupati
  // et al., arXiv:2205.13147). 0: all.
  size_t dimensions = 0;

  // A text that is longer than the model takes loses its end; off: it is an
  // error.
  bool truncate = true;

  // Tokens that are computed together; longer texts alone. No result depends on
  // it.
  size_t batch_tokens = 512;
};

struct EmbedCallbacks {
  // After every batch: texts done, texts in all.
  std::function<void(size_t done, size_t total)> on_progress;
  // Asked before every batch; true ends it with CANCELLED.
  std::function<bool()> should_cancel;
};

struct EmbedResult {
  std::vector<float> vectors;  // [texts, width]
  size_t width = 0;
  std::vector<size_t> tokens;  // of each text, with prompt and special tokens;
                               // rows of vectors
  size_t truncated = 0;        // texts that lost their end
  size_t max_tokens = 0;       // that a text may have
  // What the model's files do not say, and what was cut; one line each.
  std::vector<std::string> notices;
  double seconds = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_EMBEDDING_H_
