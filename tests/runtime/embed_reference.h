// Small models that embed, and the scalar computations their vectors are
// compared with.
#ifndef LANEWISE_TESTS_RUNTIME_EMBED_REFERENCE_H_
#define LANEWISE_TESTS_RUNTIME_EMBED_REFERENCE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lanewise/engine.h"
#include "nlohmann/json.hpp"
#include "tests/model/model_folder.h"
#include "tests/runtime/load_engine.h"

namespace lanewise {

using Vectors = std::vector<std::vector<float>>;

inline constexpr size_t kEmbedWidth = 48;  // of bert_mlm and of llama

// Texts of many lengths and kinds.
const std::vector<std::string>& Texts();

EmbedRequest Request(std::vector<std::string> texts);

// A vector a text; a failure of the test and none on an error.
Vectors Embed(Engine* engine, const EmbedRequest& request);

// The message of the error that there must be.
std::string ErrorOf(Engine* engine, const EmbedRequest& request);

// Rows of a text as the encoder in `path` gives them, [ids][kEmbedWidth].
Vectors HiddenRows(const std::string& path, const std::string& text);

// Rows of the token embedding of a text's ids, [ids * kEmbedWidth].
std::vector<float> TokenRows(const std::string& path, const std::string& text);

// The same in double: pooling, scaling, comparing.
std::vector<float> Pooled(EmbedPooling pooling, const Vectors& rows);
std::vector<float> Normalized(std::vector<float> x);
void ExpectNear(const std::vector<float>& found,
                const std::vector<float>& expected);

// A copy of bert_mlm as a sentence embedding model.
class SentenceModel : public ModelFolder {
 public:
  SentenceModel();

  // A module behind those before it.
  void Add(const std::string& type, const std::string& folder);
  void Pooling(const std::string& config);
  // weights [out, kEmbedWidth]: value(row, column); biases value(row,
  // kEmbedWidth).
  void Dense(size_t out, const std::function<float(size_t, size_t)>& value,
             const std::string& activation);
  void AddFolder(const std::string& name);

 private:
  nlohmann::json modules_;
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_RUNTIME_EMBED_REFERENCE_H_
