#include "model/tokenizer/bpe.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/format/printable.h"
#include "model/tokenizer/unicode.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Words kept by one call of Tokenize, and the longest of them in bytes.
constexpr size_t kCachedWords = 1 << 14;
constexpr size_t kCachedBytes = 64;
constexpr size_t kMaxMerges = size_t{1} << 24;

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 |
         static_cast<uint32_t>(right);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bpe>> Bpe::Create(Vocabulary vocabulary,
                                                 const MergeList& merges,
                                                 BpeOptions options,
                                                 absl::string_view where) {
  std::unique_ptr<Bpe> bpe(new Bpe(std::move(vocabulary)));
  bpe->options_ = std::move(options);
  if (bpe->options_.unk_token.has_value()) {
    const auto id = bpe->vocabulary().Find(*bpe->options_.unk_token);
    if (!id.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where,
                       ".unk_token: expected a token of the vocabulary, "
                       "found \"",
                       Printable(*bpe->options_.unk_token), "\""));
    }
    bpe->unk_id_ = *id;
  }
  for (int byte = 0; byte < 256; ++byte) {
    bpe->byte_ids_[byte] =
        bpe->vocabulary().Find(absl::StrFormat("<0x%02X>", byte)).value_or(-1);
  }
  LANEWISE_RETURN_IF_ERROR(bpe->AddMerges(merges, where));
  return bpe;
}

absl::Status Bpe::AddMerges(const MergeList& merges, absl::string_view where) {
  if (merges.size() > kMaxMerges) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ".merges: expected at most ", kMaxMerges,
                     ", found ", merges.size()));
  }
  merges_.reserve(merges.size());
  const size_t prefix = options_.continuing_subword_prefix.size();
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    const auto left_id = vocabulary().Find(left);
    const auto right_id = vocabulary().Find(right);
    std::optional<int32_t> merged;
    if (right.size() >= prefix) {
      merged = vocabulary().Find(absl::StrCat(left, right.substr(prefix)));
    }
    if (!left_id || !right_id || !merged) {
      if (options_.skip_unknown_merges) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(where, ".merges[", rank,
                       "]: expected tokens of the vocabulary, "
                       "found \"",
                       Printable(left), "\" and \"", Printable(right), "\""));
    }
    merges_[PairKey(*left_id, *right_id)] = {static_cast<int32_t>(rank),
                                             *merged};
  }
  return absl::OkStatus();
}

std::optional<int32_t> Bpe::FindAllowed(absl::string_view text,
                                        bool allow_special) const {
  const auto id = vocabulary().Find(text);
  if (id.has_value() && IsBlocked(*id, allow_special)) return std::nullopt;
  return id;
}

bool Bpe::FindByteTokens(absl::string_view text,
                         std::vector<BpeSymbol>* symbols,
                         uint32_t begin) const {
  for (const char c : text) {
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (const char c : text) {
    symbols->push_back({byte_ids_[static_cast<unsigned char>(c)], begin++, 1});
  }
  return true;
}

void Bpe::StartSymbols(absl::string_view word, bool allow_special,
                       std::vector<BpeSymbol>* symbols) const {
  symbols->clear();
  std::optional<BpeSymbol> unknown;
  const auto flush = [&] {
    if (unknown.has_value()) symbols->push_back(*unknown);
    unknown.reset();
  };
  std::string decorated;
  for (size_t pos = 0; pos < word.size();) {
    const size_t begin = pos;
    pos += Utf8Length(static_cast<unsigned char>(word[pos]));
    absl::string_view text = word.substr(begin, pos - begin);
    const bool prefix =
        begin > 0 && !options_.continuing_subword_prefix.empty();
    const bool suffix =
        pos >= word.size() && !options_.end_of_word_suffix.empty();
    if (prefix || suffix) {
      decorated = absl::StrCat(prefix ? options_.continuing_subword_prefix : "",
                               text, suffix ? options_.end_of_word_suffix : "");
      text = decorated;
    }
    const auto at = static_cast<uint32_t>(begin);
    const auto size = static_cast<uint32_t>(pos - begin);
    if (const auto id = FindAllowed(text, allow_special); id.has_value()) {
      flush();
      symbols->push_back({*id, at, size});
      continue;
    }
    // As in the reference, bytes come before a pending unknown token.
    if (options_.byte_fallback && FindByteTokens(text, symbols, at)) continue;
    if (unk_id_ < 0) continue;
    if (unknown.has_value() && options_.fuse_unk) {
      unknown->size += size;
    } else {
      flush();
      unknown = BpeSymbol{unk_id_, at, size};
    }
  }
  flush();
}

absl::Status Bpe::Tokenize(const Pieces& pieces, bool allow_special,
                           std::vector<int32_t>* ids,
                           std::vector<ByteRange>* ranges) const {
  struct Cached {
    size_t first;  // place in *ids
    size_t size;
    size_t begin;  // of the piece
  };
  absl::flat_hash_map<absl::string_view, Cached> cache;
  std::vector<BpeSymbol> symbols;
  for (const Piece& piece : pieces.pieces) {
    const absl::string_view word = pieces.Text(piece);
    if (word.size() > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "text: expected words below 2^31 bytes, found ", word.size()));
    }
    if (options_.ignore_merges) {
      if (const auto id = FindAllowed(word, allow_special); id.has_value()) {
        ids->push_back(*id);
        if (ranges != nullptr) ranges->emplace_back(piece.begin, piece.end);
        continue;
      }
    }
    const bool cached = word.size() <= kCachedBytes;
    if (cached) {
      if (const auto it = cache.find(word); it != cache.end()) {
        const Cached& found = it->second;
        for (size_t i = found.first; i < found.first + found.size; ++i) {
          ids->push_back((*ids)[i]);
          if (ranges == nullptr) continue;
          const auto [begin, end] = (*ranges)[i];
          ranges->emplace_back(begin - found.begin + piece.begin,
                               end - found.begin + piece.begin);
        }
        continue;
      }
    }
    const size_t before = ids->size();
    StartSymbols(word, allow_special, &symbols);
    MergeSymbols(&symbols, [&](const BpeSymbol& left, const BpeSymbol& right,
                               BpeMerge* merge) {
      const auto it = merges_.find(PairKey(left.id, right.id));
      if (it == merges_.end()) return false;
      *merge = it->second;
      return !IsBlocked(merge->id, allow_special);
    });
    for (const BpeSymbol& symbol : symbols) {
      if (symbol.size == 0) continue;
      ids->push_back(symbol.id);
      if (ranges == nullptr) continue;
      const size_t begin = piece.begin + symbol.begin;
      ranges->emplace_back(begin, begin + symbol.size);
    }
    if (cached && cache.size() < kCachedWords) {
      cache.emplace(word, Cached{before, ids->size() - before, piece.begin});
    }
  }
  return absl::OkStatus();
}

}  // namespace lanewise
