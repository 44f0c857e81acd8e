// Byte-pair encoding with a ranked list of merges (Sennrich et al. 2016,
// arXiv:1508.07909), as Hugging Face's BPE model defines it. Byte-level
// vocabularies (GPT-2) get their text through the ByteLevel pre-tokenizer.
#ifndef LANEWISE_MODEL_TOKENIZER_BPE_H_
#define LANEWISE_MODEL_TOKENIZER_BPE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/bpe_merge.h"
#include "model/tokenizer/token_model.h"

namespace lanewise {

struct BpeOptions {
  std::optional<std::string> unk_token;   // none: unknown characters vanish
  std::string continuing_subword_prefix;  // of all but a word's first symbol
  std::string end_of_word_suffix;         // of a word's last symbol
  bool fuse_unk = false;       // neighbouring unknown characters: one token
  bool byte_fallback = false;  // unknown characters become <0x00> … <0xFF>
  bool ignore_merges = false;  // a word that is a token stays whole
  // GGUF files may hold merges of tokens that the vocabulary lacks.
  bool skip_unknown_merges = false;
};

class Bpe : public TokenModel {
 public:
  using MergeList = std::vector<std::pair<std::string, std::string>>;

  // `merges` in order of rank. Errors (beginning with `where`): a merge that
  // names, or makes, a token the vocabulary lacks; an unk_token it lacks.
  static absl::StatusOr<std::unique_ptr<Bpe>> Create(Vocabulary vocabulary,
                                                     const MergeList& merges,
                                                     BpeOptions options,
                                                     absl::string_view where);

  absl::Status Tokenize(const Pieces& pieces, bool allow_special,
                        std::vector<int32_t>* ids,
                        std::vector<ByteRange>* ranges) const override;

 private:
  using TokenModel::TokenModel;

  absl::Status AddMerges(const MergeList& merges, absl::string_view where);
  void StartSymbols(absl::string_view word, bool allow_special,
                    std::vector<BpeSymbol>* symbols) const;
  std::optional<int32_t> FindAllowed(absl::string_view text,
                                     bool allow_special) const;
  bool FindByteTokens(absl::string_view text, std::vector<BpeSymbol>* symbols,
                      uint32_t begin) const;

  BpeOptions options_;
  int32_t unk_id_ = -1;
  std::array<int32_t, 256> byte_ids_;               // -1: none
  absl::flat_hash_map<uint64_t, BpeMerge> merges_;  // by left << 32 | right
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_BPE_H_
