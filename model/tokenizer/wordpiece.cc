#include "model/tokenizer/wordpiece.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/printable.h"
#include "model/tokenizer/unicode.h"

namespace lanewise {

absl::StatusOr<std::unique_ptr<WordPiece>> WordPiece::Create(
    Vocabulary vocabulary, const WordPieceOptions& options,
    absl::string_view where) {
  std::unique_ptr<WordPiece> model(new WordPiece(std::move(vocabulary)));
  const Vocabulary& tokens = model->vocabulary();
  const auto unk = tokens.Find(options.unk_token);
  if (!unk.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ".unk_token: expected a token of the vocabulary, found \"",
        Printable(options.unk_token), "\""));
  }
  model->unk_id_ = *unk;
  model->max_characters_ = options.max_input_chars_per_word;
  std::vector<std::pair<absl::string_view, int32_t>> entries;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (!tokens.Text(id).empty()) entries.emplace_back(tokens.Text(id), id);
  }
  model->trie_ = ByteTrie::Build(std::move(entries));
  for (const char c : options.continuing_subword_prefix) {
    model->has_inner_ =
        model->has_inner_ && model->trie_.Walk(c, &model->inner_);
  }
  return model;
}

bool WordPiece::TokenizeWord(absl::string_view word, size_t base,
                             bool allow_special, std::vector<int32_t>* ids,
                             std::vector<ByteRange>* ranges) const {
  for (size_t begin = 0; begin < word.size();) {
    if (begin > 0 && !has_inner_) return false;
    ByteTrie::Node node = begin > 0 ? inner_ : ByteTrie::kRoot;
    int32_t longest = -1;
    size_t next = begin;
    for (size_t end = begin;
         end < word.size() && trie_.Walk(word[end], &node);) {
      ++end;
      const int32_t id = trie_.value(node);
      if (id < 0 || IsBlocked(id, allow_special)) continue;
      longest = id;
      next = end;
    }
    if (longest < 0) return false;
    ids->push_back(longest);
    if (ranges != nullptr) ranges->emplace_back(base + begin, base + next);
    begin = next;
  }
  return true;
}

absl::Status WordPiece::Tokenize(const Pieces& pieces, bool allow_special,
                                 std::vector<int32_t>* ids,
                                 std::vector<ByteRange>* ranges) const {
  for (const Piece& piece : pieces.pieces) {
    const absl::string_view word = pieces.Text(piece);
    size_t characters = 0;
    for (const char c : word) characters += (c & 0xC0) != 0x80;
    const size_t before = ids->size();
    if (characters > max_characters_ ||
        !TokenizeWord(word, piece.begin, allow_special, ids, ranges)) {
      ids->resize(before);
      ids->push_back(unk_id_);
      if (ranges != nullptr) {
        ranges->resize(before);
        ranges->emplace_back(piece.begin, piece.end);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace lanewise
