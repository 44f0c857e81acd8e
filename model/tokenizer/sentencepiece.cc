#include "model/tokenizer/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/tokenizer/bpe_merge.h"
#include "model/tokenizer/unicode.h"

namespace lanewise {

absl::StatusOr<std::unique_ptr<SentencePieceBpe>> SentencePieceBpe::Create(
    Vocabulary vocabulary, const std::vector<double>& scores,
    std::vector<bool> usable, std::optional<int32_t> unk_id,
    absl::string_view where) {
  if (scores.size() != vocabulary.size() ||
      usable.size() != vocabulary.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected a score for each of ",
                     vocabulary.size(), " tokens, found ", scores.size()));
  }
  std::unique_ptr<SentencePieceBpe> model(
      new SentencePieceBpe(std::move(vocabulary)));
  std::vector<double> sorted;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, "[", i, "]: expected a finite score, found ", scores[i]));
    }
    sorted.push_back(scores[i]);
  }
  std::sort(sorted.begin(), sorted.end(), std::greater<double>());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (const double score : scores) {
    const auto place = std::lower_bound(sorted.begin(), sorted.end(), score,
                                        std::greater<double>());
    model->ranks_.push_back(static_cast<int32_t>(place - sorted.begin()));
  }
  model->usable_ = std::move(usable);
  const Vocabulary& tokens = model->vocabulary();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!model->usable_[i]) continue;
    model->longest_ =
        std::max(model->longest_, tokens.Text(static_cast<int32_t>(i)).size());
  }
  for (int byte = 0; byte < 256; ++byte) {
    model->byte_ids_[byte] =
        tokens.Find(absl::StrFormat("<0x%02X>", byte)).value_or(-1);
  }
  model->unk_id_ = unk_id.value_or(-1);
  return model;
}

int32_t SentencePieceBpe::FindUsable(absl::string_view text) const {
  if (text.size() > longest_) return -1;
  const auto id = vocabulary().Find(text);
  return id.has_value() && usable_[*id] ? *id : -1;
}

void SentencePieceBpe::AppendUnknown(absl::string_view text,
                                     std::vector<int32_t>* ids) const {
  const bool has_bytes = std::all_of(text.begin(), text.end(), [&](char c) {
    return byte_ids_[static_cast<unsigned char>(c)] >= 0;
  });
  if (!has_bytes) {
    if (unk_id_ >= 0) ids->push_back(unk_id_);
    return;
  }
  for (const char c : text) {
    ids->push_back(byte_ids_[static_cast<unsigned char>(c)]);
  }
}

absl::Status SentencePieceBpe::Tokenize(const Pieces& pieces,
                                        bool allow_special,
                                        std::vector<int32_t>* ids,
                                        std::vector<ByteRange>* ranges) const {
  std::vector<BpeSymbol> symbols;
  for (const Piece& piece : pieces.pieces) {
    const absl::string_view word = pieces.Text(piece);
    if (word.size() > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "text: expected words below 2^31 bytes, found ", word.size()));
    }
    symbols.clear();
    for (size_t pos = 0; pos < word.size();) {
      const size_t begin = pos;
      pos = std::min(word.size(),
                     pos + Utf8Length(static_cast<unsigned char>(word[pos])));
      symbols.push_back({FindUsable(word.substr(begin, pos - begin)),
                         static_cast<uint32_t>(begin),
                         static_cast<uint32_t>(pos - begin)});
    }
    MergeSymbols(&symbols, [&](const BpeSymbol& left, const BpeSymbol& right,
                               BpeMerge* merge) {
      const int32_t id =
          FindUsable(word.substr(left.begin, left.size + right.size));
      if (id < 0) return false;
      *merge = {ranks_[id], id};
      return true;
    });
    for (const BpeSymbol& symbol : symbols) {
      if (symbol.size == 0) continue;
      if (symbol.id >= 0) {
        ids->push_back(symbol.id);
      } else {
        AppendUnknown(word.substr(symbol.begin, symbol.size), ids);
      }
      if (ranges != nullptr) {
        const size_t begin = piece.begin + symbol.begin;
        ranges->resize(ids->size(), {begin, begin + symbol.size});
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace lanewise
