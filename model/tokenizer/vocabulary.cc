#include "model/tokenizer/vocabulary.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/printable.h"

namespace lanewise {

absl::StatusOr<Vocabulary> Vocabulary::Create(
    std::vector<std::pair<std::string, int64_t>> entries,
    absl::string_view where) {
  int64_t largest = -1;
  for (const auto& [text, id] : entries) {
    if (id < 0 || id > kMaxTokenId) {
      return absl::InvalidArgumentError(absl::StrCat(
          where, ": token \"", Printable(text), "\": expected an id in 0..",
          kMaxTokenId, ", found ", id));
    }
    largest = std::max(largest, id);
  }
  const auto limit = static_cast<int64_t>(entries.size()) * 4 + (1 << 16);
  if (largest >= limit) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected ids below ", limit, " for ",
                     entries.size(), " tokens, found ", largest));
  }
  Vocabulary vocabulary;
  vocabulary.tokens_.resize(static_cast<size_t>(largest + 1));
  vocabulary.present_.resize(vocabulary.tokens_.size());
  vocabulary.ids_.reserve(entries.size());
  for (auto& [text, id] : entries) {
    if (vocabulary.present_[id]) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": id ", id, " has two tokens, \"",
                       Printable(vocabulary.tokens_[id]), "\" and \"",
                       Printable(text), "\""));
    }
    vocabulary.present_[id] = true;
    vocabulary.tokens_[id] = std::move(text);
    vocabulary.ids_[vocabulary.tokens_[id]] = static_cast<int32_t>(id);
  }
  return vocabulary;
}

absl::StatusOr<Vocabulary> Vocabulary::FromList(std::vector<std::string> tokens,
                                                absl::string_view where) {
  if (tokens.size() > static_cast<size_t>(kMaxTokenId)) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected at most ", kMaxTokenId,
                     " tokens, found ", tokens.size()));
  }
  Vocabulary vocabulary;
  vocabulary.tokens_ = std::move(tokens);
  vocabulary.present_.assign(vocabulary.tokens_.size(), true);
  vocabulary.ids_.reserve(vocabulary.tokens_.size());
  for (size_t id = 0; id < vocabulary.tokens_.size(); ++id) {
    vocabulary.ids_[vocabulary.tokens_[id]] = static_cast<int32_t>(id);
  }
  return vocabulary;
}

std::optional<int32_t> Vocabulary::Find(absl::string_view text) const {
  const auto it = ids_.find(text);
  if (it == ids_.end()) return std::nullopt;
  return it->second;
}

absl::string_view Vocabulary::Text(int32_t id) const {
  return Has(id) ? absl::string_view(tokens_[id]) : absl::string_view();
}

bool Vocabulary::Has(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < tokens_.size() && present_[id];
}

}  // namespace lanewise
