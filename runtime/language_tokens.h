// The tokens by which a translation model is told languages: special ones of
// the form "en_XX" (mBART), "eng_Latn" (NLLB) and "__en__" (M2M-100), and those
// that name the target before the source text, ">>deu<<" (Marian) and "<2de>"
// (MADLAD).
//
//   const LanguageTokens languages(tokenizer);
//   LANEWISE_ASSIGN_OR_RETURN(const int32_t id,
//                             languages.Find("target_language", "de"));
#ifndef LANEWISE_RUNTIME_LANGUAGE_TOKENS_H_
#define LANEWISE_RUNTIME_LANGUAGE_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/tokenizer.h"

namespace lanewise {

class LanguageTokens {
 public:
  // Looks through the vocabulary. `tokenizer` must outlive this.
  explicit LanguageTokens(const Tokenizer& tokenizer);

  // Special tokens that name languages.
  size_t size() const { return tokens_.size(); }
  bool Has(int32_t id) const;

  // The special token of a language: spelled like `name`, or "__name__", or the
  // only one that goes on with "_". INVALID_ARGUMENT, with languages there are,
  // for none or several; `field` is what the message names.
  absl::StatusOr<int32_t> Find(absl::string_view field,
                               absl::string_view name) const;

  // The token that stands before a source text to name the target.
  std::optional<int32_t> FindMarker(absl::string_view name) const;

  // "ar_AR, cs_CZ, de_DE, … (52 in all)"
  std::string Summary() const;

 private:
  struct Token {
    std::string text;
    int32_t id;
  };

  static std::string List(const std::vector<const Token*>& tokens);

  const Tokenizer& tokenizer_;
  std::vector<Token> tokens_;  // by text, ascending
  std::vector<int32_t> ids_;   // of tokens_, ascending
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_LANGUAGE_TOKENS_H_
