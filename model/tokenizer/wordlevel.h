// One token a word; words outside the vocabulary are the unknown token.
#ifndef LANEWISE_MODEL_TOKENIZER_WORDLEVEL_H_
#define LANEWISE_MODEL_TOKENIZER_WORDLEVEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/tokenizer/token_model.h"

namespace lanewise {

class WordLevel : public TokenModel {
 public:
  // The vocabulary may lack `unk_token`: then an unknown word is an error.
  static std::unique_ptr<WordLevel> Create(Vocabulary vocabulary,
                                           const std::string& unk_token);

  absl::Status Tokenize(const Pieces& pieces, bool allow_special,
                        std::vector<int32_t>* ids,
                        std::vector<ByteRange>* ranges) const override;

 private:
  using TokenModel::TokenModel;

  std::optional<int32_t> unk_id_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_WORDLEVEL_H_
