#include "runtime/language_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/format/printable.h"

namespace lanewise {
namespace {

constexpr size_t kListed = 8;  // languages that a message names

bool IsCode(absl::string_view text) {  // ISO 639: "en", "eng"
  return (text.size() == 2 || text.size() == 3) &&
         std::all_of(text.begin(), text.end(), absl::ascii_islower);
}

// "XX", a country, or "Latn", a script (ISO 15924).
bool IsRegion(absl::string_view text) {
  if (text.size() == 2) {
    return absl::ascii_isupper(text[0]) && absl::ascii_isupper(text[1]);
  }
  return text.size() == 4 && absl::ascii_isupper(text[0]) &&
         std::all_of(text.begin() + 1, text.end(), absl::ascii_islower);
}

bool NamesLanguage(absl::string_view text) {
  if (absl::ConsumePrefix(&text, "__")) {
    return absl::ConsumeSuffix(&text, "__") && IsCode(text);
  }
  const size_t bar = text.find('_');
  return bar != absl::string_view::npos && IsCode(text.substr(0, bar)) &&
         IsRegion(text.substr(bar + 1));
}

}  // namespace

LanguageTokens::LanguageTokens(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer) {
  const auto vocab = static_cast<int32_t>(tokenizer.vocab_size());
  for (int32_t id = 0; id < vocab; ++id) {
    if (!tokenizer.IsSpecial(id)) continue;
    std::string text = tokenizer.TokenText(id);
    if (!NamesLanguage(text)) continue;
    tokens_.push_back({std::move(text), id});
    ids_.push_back(id);
  }
  std::sort(tokens_.begin(), tokens_.end(),
            [](const Token& a, const Token& b) { return a.text < b.text; });
}

bool LanguageTokens::Has(int32_t id) const {
  return std::binary_search(ids_.begin(), ids_.end(), id);
}

absl::StatusOr<int32_t> LanguageTokens::Find(absl::string_view field,
                                             absl::string_view name) const {
  const std::string begin = absl::StrCat(name, "_");
  const std::string framed = absl::StrCat("__", name, "__");
  std::vector<const Token*> found;
  for (const Token& token : tokens_) {
    if (token.text == name || token.text == framed) return token.id;
    if (!name.empty() && absl::StartsWith(token.text, begin)) {
      found.push_back(&token);
    }
  }
  if (found.size() == 1) return found.front()->id;
  if (found.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": expected one language, found \"",
                     Printable(name), "\", which may be any of ", List(found)));
  }
  if (tokens_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field,
                     ": the model has no languages to choose from, "
                     "found \"",
                     Printable(name), "\""));
  }
  return absl::InvalidArgumentError(absl::StrCat(field, ": expected one of ",
                                                 Summary(), ", found \"",
                                                 Printable(name), "\""));
}

std::optional<int32_t> LanguageTokens::FindMarker(
    absl::string_view name) const {
  for (const std::string& text :
       {absl::StrCat(">>", name, "<<"), absl::StrCat("<2", name, ">")}) {
    if (const auto id = tokenizer_.TokenId(text)) return id;
  }
  return std::nullopt;
}

std::string LanguageTokens::Summary() const {
  std::vector<const Token*> all;
  for (const Token& token : tokens_) all.push_back(&token);
  return List(all);
}

std::string LanguageTokens::List(const std::vector<const Token*>& tokens) {
  std::string text;
  for (size_t i = 0; i < tokens.size() && i < kListed; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", tokens[i]->text);
  }
  if (tokens.size() > kListed) {
    absl::StrAppend(&text, ", ... (", tokens.size(), " in all)");
  }
  return text;
}

}  // namespace lanewise
