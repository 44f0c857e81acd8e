// WordPiece (BERT; Wu et al. 2016, arXiv:1609.08144): from the left always the
// longest token that fits; inside a word tokens carry a prefix ("##").
#ifndef LANEWISE_MODEL_TOKENIZER_WORDPIECE_H_
#define LANEWISE_MODEL_TOKENIZER_WORDPIECE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/token_model.h"
#include "model/tokenizer/trie.h"

namespace lanewise {

struct WordPieceOptions {
  std::string unk_token = "[UNK]";
  std::string continuing_subword_prefix = "##";
  size_t max_input_chars_per_word = 100;  // longer words are unknown
};

class WordPiece : public TokenModel {
 public:
  // Errors (beginning with `where`): the vocabulary lacks unk_token.
  static absl::StatusOr<std::unique_ptr<WordPiece>> Create(
      Vocabulary vocabulary, const WordPieceOptions& options,
      absl::string_view where);

  // A word that cannot be cut into tokens is one unknown token.
  absl::Status Tokenize(const Pieces& pieces, bool allow_special,
                        std::vector<int32_t>* ids,
                        std::vector<ByteRange>* ranges) const override;

 private:
  using TokenModel::TokenModel;

  // `base` is where the word begins.
  bool TokenizeWord(absl::string_view word, size_t base, bool allow_special,
                    std::vector<int32_t>* ids,
                    std::vector<ByteRange>* ranges) const;

  ByteTrie trie_;
  ByteTrie::Node inner_ = ByteTrie::kRoot;  // behind the prefix
  bool has_inner_ = true;
  size_t max_characters_ = 0;
  int32_t unk_id_ = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_WORDPIECE_H_
