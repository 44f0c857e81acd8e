// tokenizer.json's regular expressions are Oniguruma's (Ruby syntax); PCRE2
// reads a somewhat different language. This rewrites the one into the other:
//
//   x{n,m}+      repeats x{n,m} in Oniguruma, is possessive in PCRE2
//   \s \S \w \h  White_Space, word characters (with all marks), hex digits
//   [[:space:]] [[:word:]]  likewise
//   \p{Han}      the script; PCRE2 alone would take its extensions too
//   \p{Letter}   long names of general categories
//   [a&&b], [a[b]]  sets within sets (PCRE2 10.45 and later)
//   ^ $          always at lines
//   (?m:x)       "." matches newlines: (?s:x)
//
// What has no equal is an error that names it: absent operators (?~…),
// conditions and options in the middle of a pattern.
// Known difference that stays: the two libraries' versions of Unicode.
#ifndef LANEWISE_MODEL_TOKENIZER_REGEX_SYNTAX_H_
#define LANEWISE_MODEL_TOKENIZER_REGEX_SYNTAX_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise {

struct Pcre2Pattern {
  std::string text;
  bool nested_classes = false;  // needs PCRE2_ALT_EXTENDED_CLASS
};

absl::StatusOr<Pcre2Pattern> TranslateOniguruma(absl::string_view pattern);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_REGEX_SYNTAX_H_
