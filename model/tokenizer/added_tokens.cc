#include "model/tokenizer/added_tokens.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/tokenizer/unicode.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

bool IsSingleWord(absl::string_view text, size_t begin, size_t end) {
  if (begin > 0) {
    size_t pos = begin;
    if (IsWordCharacter(PreviousCodePoint(text, &pos))) return false;
  }
  size_t pos = end;
  return end >= text.size() || !IsWordCharacter(NextCodePoint(text, &pos));
}

}  // namespace

absl::StatusOr<AddedTokens> AddedTokens::Create(std::vector<AddedToken> tokens,
                                                const Normalizer* normalizer,
                                                absl::string_view where) {
  AddedTokens added;
  added.tokens_ = std::move(tokens);
  std::vector<AlignedText> contents(added.tokens_.size());
  std::vector<std::pair<absl::string_view, int32_t>> keys[2];
  for (size_t i = 0; i < added.tokens_.size(); ++i) {
    AddedToken& token = added.tokens_[i];
    if (token.content.size() > kMaxContent) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": token ", token.id, ": expected at most ",
                       kMaxContent, " bytes, found ", token.content.size()));
    }
    added.by_id_[token.id] = i;
    added.by_content_[token.content] = i;
    contents[i].text = token.content;
    if (token.normalized && normalizer != nullptr) {
      LANEWISE_RETURN_IF_ERROR(normalizer->Apply(&contents[i]));
    }
    token.decoded = contents[i].text;
    // Only whole characters are looked for, so that the text stays text.
    const absl::string_view key = contents[i].text;
    if (key.empty() || ValidUtf8Prefix(key) != key.size()) continue;
    keys[token.normalized].emplace_back(key, static_cast<int32_t>(i));
    Set& set = token.normalized ? added.normalized_ : added.raw_;
    set.empty = false;
    set.starts[static_cast<unsigned char>(key[0])] = true;
    if (token.normalized && token.special) added.has_special_normalized_ = true;
  }
  added.raw_.trie = ByteTrie::Build(std::move(keys[0]));
  added.normalized_.trie = ByteTrie::Build(std::move(keys[1]));
  return added;
}

AddedTokens::Found AddedTokens::FindAt(const Set& set, absl::string_view text,
                                       size_t pos, Allow allow_special) const {
  Found found;
  ByteTrie::Node node = ByteTrie::kRoot;
  for (size_t end = pos;
       end < text.size() && set.trie.Walk(text[end], &node);) {
    ++end;
    const int32_t index = set.trie.value(node);
    if (index < 0) continue;
    const AddedToken& token = tokens_[index];
    if (token.special && !allow_special(pos, end)) continue;
    found = {&token, end};
  }
  return found;
}

std::vector<Segment> AddedTokens::Split(absl::string_view text, bool normalized,
                                        Allow allow_special) const {
  const Set& tokens = set(normalized);
  std::vector<Segment> segments;
  size_t done = 0;                          // end of the last segment
  size_t spaces_begin = 1, spaces_end = 0;  // the run looked at last
  for (size_t pos = 0; !tokens.empty && pos < text.size();) {
    if (!tokens.starts[static_cast<unsigned char>(text[pos])]) {
      ++pos;
      continue;
    }
    const Found found = FindAt(tokens, text, pos, allow_special);
    if (found.token == nullptr) {
      ++pos;
      continue;
    }
    size_t begin = pos;
    size_t end = found.end;
    pos = found.end;
    if (found.token->single_word && !IsSingleWord(text, begin, end)) continue;
    if (found.token->lstrip) {
      for (size_t at = begin;
           at > done && IsWhitespace(PreviousCodePoint(text, &at));)
        begin = at;
      begin = std::max(begin, done);  // the token before may have them
    }
    if (found.token->rstrip) {
      if (end < spaces_begin || end > spaces_end) {
        spaces_begin = spaces_end = end;
        for (size_t at = end;
             at < text.size() && IsWhitespace(NextCodePoint(text, &at));)
          spaces_end = at;
      }
      end = spaces_end;
    }
    if (begin >= end) continue;  // nothing is left of it
    if (done < begin) segments.push_back({done, begin, -1});
    segments.push_back({begin, end, found.token->id});
    done = end;
  }
  if (done < text.size()) segments.push_back({done, text.size(), -1});
  return segments;
}

const AddedToken* AddedTokens::Find(int32_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::Find(absl::string_view content) const {
  const auto it = by_content_.find(content);
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

}  // namespace lanewise
