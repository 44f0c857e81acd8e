// `inspect --attention TEXT`: runs a model on a text and writes what its layers
// attend to.
#ifndef LANEWISE_TOOLS_INSPECT_ATTENTION_H_
#define LANEWISE_TOOLS_INSPECT_ATTENTION_H_

#include <string>

#include "absl/status/statusor.h"

namespace lanewise {

struct AttentionRequest {
  std::string model;  // path
  std::string text;
  std::string layers;  // "0,3" or empty: all
  std::string heads;
  std::string output;  // files are output.npy and output.html
};

// What was written, one line a file. The array is [layers, heads, rows, keys];
// weights are those of f32 activations. Of an encoder-decoder the encoder is
// shown. INVALID_ARGUMENT for a layer or head that is not there, or for a text
// that gives no token.
absl::StatusOr<std::string> WriteAttention(const AttentionRequest& request);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_INSPECT_ATTENTION_H_
