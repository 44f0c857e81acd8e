// SentencePiece's BPE as GGUF files carry it (`tokenizer.ggml.model` =
// "llama"): no list of merges, any two neighbours may merge whose text is a
// token, the best score first, of equals the leftmost. What is left over and
// is no token becomes bytes <0x00> … <0xFF>, or the unknown token.
#ifndef LANEWISE_MODEL_TOKENIZER_SENTENCEPIECE_H_
#define LANEWISE_MODEL_TOKENIZER_SENTENCEPIECE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/token_model.h"

namespace lanewise {

class SentencePieceBpe : public TokenModel {
 public:
  // For each id: its score, and whether text may become it (control, byte and
  // unused tokens may not).
  static absl::StatusOr<std::unique_ptr<SentencePieceBpe>> Create(
      Vocabulary vocabulary, const std::vector<double>& scores,
      std::vector<bool> usable, std::optional<int32_t> unk_id,
      absl::string_view where);

  absl::Status Tokenize(const Pieces& pieces, bool allow_special,
                        std::vector<int32_t>* ids,
                        std::vector<ByteRange>* ranges) const override;

 private:
  using TokenModel::TokenModel;

  int32_t FindUsable(absl::string_view text) const;  // -1: none
  void AppendUnknown(absl::string_view text, std::vector<int32_t>* ids) const;

  std::vector<int32_t> ranks_;  // by id; equal scores have equal ranks
  std::vector<bool> usable_;
  size_t longest_ = 0;  // bytes of the longest usable token
  int32_t unk_id_ = -1;
  std::array<int32_t, 256> byte_ids_;  // -1: none
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_SENTENCEPIECE_H_
