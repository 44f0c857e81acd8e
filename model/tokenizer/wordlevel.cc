#include "model/tokenizer/wordlevel.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/printable.h"

namespace lanewise {

std::unique_ptr<WordLevel> WordLevel::Create(Vocabulary vocabulary,
                                             const std::string& unk_token) {
  std::unique_ptr<WordLevel> model(new WordLevel(std::move(vocabulary)));
  model->unk_id_ = model->vocabulary().Find(unk_token);
  return model;
}

absl::Status WordLevel::Tokenize(const Pieces& pieces, bool allow_special,
                                 std::vector<int32_t>* ids,
                                 std::vector<ByteRange>* ranges) const {
  for (const Piece& piece : pieces.pieces) {
    const absl::string_view word = pieces.Text(piece);
    std::optional<int32_t> id = vocabulary().Find(word);
    if (id.has_value() && IsBlocked(*id, allow_special)) id.reset();
    if (!id.has_value()) id = unk_id_;
    if (!id.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the vocabulary lacks \"", Printable(word, 80),
                       "\" and has no unknown token"));
    }
    ids->push_back(*id);
    if (ranges != nullptr) ranges->emplace_back(piece.begin, piece.end);
  }
  return absl::OkStatus();
}

}  // namespace lanewise
