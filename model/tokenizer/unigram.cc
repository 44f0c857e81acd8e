#include "model/tokenizer/unigram.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/tokenizer/unicode.h"

namespace lanewise {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

absl::StatusOr<std::unique_ptr<Unigram>> Unigram::Create(
    Vocabulary vocabulary, std::vector<double> scores,
    std::optional<int32_t> unk_id, bool byte_fallback,
    absl::string_view where) {
  if (scores.size() != vocabulary.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected a score for each of ",
                     vocabulary.size(), " tokens, found ", scores.size()));
  }
  std::unique_ptr<Unigram> unigram(new Unigram(std::move(vocabulary)));
  const Vocabulary& tokens = unigram->vocabulary();
  double lowest = 0;
  std::vector<std::pair<absl::string_view, int32_t>> entries;
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (!std::isfinite(scores[i])) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, "[", i, "]: expected a finite score, found ", scores[i]));
    }
    lowest = i == 0 ? scores[i] : std::min(lowest, scores[i]);
    if (!tokens.Text(id).empty()) entries.emplace_back(tokens.Text(id), id);
  }
  unigram->trie_ = ByteTrie::Build(std::move(entries));
  unigram->unk_score_ = lowest - kUnknownPenalty;
  unigram->scores_ = std::move(scores);
  unigram->byte_fallback_ = byte_fallback;
  for (int byte = 0; byte < 256; ++byte) {
    unigram->byte_ids_[byte] =
        tokens.Find(absl::StrFormat("<0x%02X>", byte)).value_or(-1);
  }
  if (unk_id.has_value()) {
    if (!tokens.Has(*unk_id)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": expected an unknown token below ",
                       tokens.size(), ", found ", *unk_id));
    }
    unigram->unk_id_ = *unk_id;
  }
  return unigram;
}

bool Unigram::FillSteps(absl::string_view word, bool allow_special,
                        std::vector<Step>* steps) const {
  steps->assign(word.size() + 1, Step());
  const auto offer = [&](size_t begin, size_t end, double score, int32_t id) {
    Step& step = (*steps)[end];
    if (step.begin < 0 || score > step.score) {
      step = {score, static_cast<int64_t>(begin), id};
    }
  };
  for (size_t begin = 0; begin < word.size();) {
    const double score = (*steps)[begin].score;
    const size_t length =
        std::min(Utf8Length(static_cast<unsigned char>(word[begin])),
                 word.size() - begin);
    bool has_character = false;
    ByteTrie::Node node = ByteTrie::kRoot;
    for (size_t end = begin;
         end < word.size() && trie_.Walk(word[end], &node);) {
      ++end;
      const int32_t id = trie_.value(node);
      if (id < 0 || IsBlocked(id, allow_special)) continue;
      offer(begin, end, score + scores_[id], id);
      has_character |= end - begin == length;
    }
    if (!has_character) {
      if (unk_id_ < 0) return false;
      offer(begin, begin + length, score + unk_score_, unk_id_);
    }
    begin += length;
  }
  return true;
}

void Unigram::AppendUnknown(absl::string_view text, bool allow_special,
                            std::vector<int32_t>* ids) const {
  if (const auto id = vocabulary().Find(text);
      id.has_value() && !IsBlocked(*id, allow_special)) {
    ids->push_back(*id);
    return;
  }
  const bool has_bytes =
      byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char c) {
        return byte_ids_[static_cast<unsigned char>(c)] >= 0;
      });
  if (!has_bytes) {
    ids->push_back(unk_id_);
    return;
  }
  for (const char c : text) {
    ids->push_back(byte_ids_[static_cast<unsigned char>(c)]);
  }
}

absl::Status Unigram::Tokenize(const Pieces& pieces, bool allow_special,
                               std::vector<int32_t>* ids,
                               std::vector<ByteRange>* ranges) const {
  std::vector<Step> steps;
  struct Token {
    size_t begin;
    size_t end;
    int32_t id;
  };
  std::vector<Token> tokens;  // of a word, the last one first
  for (const Piece& piece : pieces.pieces) {
    const absl::string_view word = pieces.Text(piece);
    if (!FillSteps(word, allow_special, &steps)) {
      return absl::FailedPreconditionError(
          "the vocabulary lacks a character of the text and has no unknown "
          "token");
    }
    tokens.clear();
    for (size_t end = word.size(); end > 0;) {
      const Step& step = steps[end];
      const auto begin = static_cast<size_t>(step.begin);
      if (step.id == unk_id_ && !tokens.empty() &&
          tokens.back().id == unk_id_) {
        tokens.back().begin = begin;
      } else {
        tokens.push_back({begin, end, step.id});
      }
      end = begin;
    }
    for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
      if (token->id == unk_id_) {
        AppendUnknown(word.substr(token->begin, token->end - token->begin),
                      allow_special, ids);
      } else {
        ids->push_back(token->id);
      }
      if (ranges != nullptr) {
        ranges->resize(ids->size(),
                       {piece.begin + token->begin, piece.begin + token->end});
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace lanewise
