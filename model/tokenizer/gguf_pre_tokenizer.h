// Pre-tokenizers that GGUF files name in `tokenizer.ggml.pre`: the patterns
// are not in the file, so they are here, by the names and with the meaning the
// format's reference gives them.
#ifndef LANEWISE_MODEL_TOKENIZER_GGUF_PRE_TOKENIZER_H_
#define LANEWISE_MODEL_TOKENIZER_GGUF_PRE_TOKENIZER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pre_tokenizer.h"

namespace lanewise {

struct GgufPreTokenizer {
  PreTokenizerPtr stage;
  bool nfc = false;            // text is put in normal form C first
  bool ignore_merges = false;  // a word that is a token stays whole
  bool add_bos = false;        // where the file does not say
  bool add_eos = false;        // the separator, where the file does not say
};

// `where` begins messages; an unknown name is UNIMPLEMENTED and named.
absl::StatusOr<GgufPreTokenizer> MakeGgufPreTokenizer(absl::string_view name,
                                                      absl::string_view where);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_GGUF_PRE_TOKENIZER_H_
