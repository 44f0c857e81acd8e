// Unigram language model (Kudo 2018, arXiv:1804.10959), as SentencePiece and
// Hugging Face define it: of all cuts of a word into tokens the one with the
// largest sum of scores; of equal sums the one whose last tokens begin first.
#ifndef LANEWISE_MODEL_TOKENIZER_UNIGRAM_H_
#define LANEWISE_MODEL_TOKENIZER_UNIGRAM_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/token_model.h"
#include "model/tokenizer/trie.h"

namespace lanewise {

class Unigram : public TokenModel {
 public:
  // scores[id] is the log probability of a token. Unknown characters cost the
  // lowest score less 10; neighbouring ones are one unknown token, or with
  // `byte_fallback` the tokens <0x00> … <0xFF> of their bytes where all exist.
  static absl::StatusOr<std::unique_ptr<Unigram>> Create(
      Vocabulary vocabulary, std::vector<double> scores,
      std::optional<int32_t> unk_id, bool byte_fallback,
      absl::string_view where);

  // FAILED_PRECONDITION for an unknown character without an unknown token.
  absl::Status Tokenize(const Pieces& pieces, bool allow_special,
                        std::vector<int32_t>* ids,
                        std::vector<ByteRange>* ranges) const override;

 private:
  using TokenModel::TokenModel;

  // The best way to the end of a prefix of the word.
  struct Step {
    double score = 0;
    int64_t begin = -1;  // of its last token; -1: none yet
    int32_t id = -1;
  };

  bool FillSteps(absl::string_view word, bool allow_special,
                 std::vector<Step>* steps) const;
  void AppendUnknown(absl::string_view text, bool allow_special,
                     std::vector<int32_t>* ids) const;

  std::vector<double> scores_;
  ByteTrie trie_;
  double unk_score_ = 0;
  int32_t unk_id_ = -1;
  bool byte_fallback_ = false;
  std::array<int32_t, 256> byte_ids_;  // -1: none
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_UNIGRAM_H_
