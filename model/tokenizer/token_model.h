// The stage that turns pieces of text into ids: BPE, Unigram, WordPiece,
// WordLevel.
#ifndef LANEWISE_MODEL_TOKENIZER_TOKEN_MODEL_H_
#define LANEWISE_MODEL_TOKENIZER_TOKEN_MODEL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "model/tokenizer/pieces.h"
#include "model/tokenizer/vocabulary.h"

namespace lanewise {

class TokenModel {
 public:
  explicit TokenModel(Vocabulary vocabulary)
      : vocabulary_(std::move(vocabulary)) {}
  virtual ~TokenModel() = default;

  // Appends the ids of all pieces and, where `ranges` is not null, the bytes of
  // pieces.text that each stands for; bytes of one character may stand for all
  // of it. Without `allow_special` no token given to BlockSpecial comes out,
  // but for the unknown token. Thread-safe.
  virtual absl::Status Tokenize(const Pieces& pieces, bool allow_special,
                                std::vector<int32_t>* ids,
                                std::vector<ByteRange>* ranges) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

  // Ids of control tokens; called once, before use.
  void BlockSpecial(const std::vector<int32_t>& ids) {
    blocked_.assign(vocabulary_.size(), false);
    for (const int32_t id : ids) {
      if (vocabulary_.Has(id)) blocked_[id] = true;
    }
  }

 protected:
  bool IsBlocked(int32_t id, bool allow_special) const {
    return !allow_special && static_cast<size_t>(id) < blocked_.size() &&
           blocked_[id];
  }

 private:
  Vocabulary vocabulary_;
  std::vector<bool> blocked_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_TOKEN_MODEL_H_
