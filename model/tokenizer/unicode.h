// UTF-8 and Unicode properties, as the tokenizer stages need them. Properties
// come from utf8proc; functions that take text want valid UTF-8 (what
// ReplaceInvalidUtf8 returns).
#ifndef LANEWISE_MODEL_TOKENIZER_UNICODE_H_
#define LANEWISE_MODEL_TOKENIZER_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lanewise {

// The code point that starts at text[*pos]; moves *pos behind it.
char32_t NextCodePoint(absl::string_view text, size_t* pos);

// The code point that ends before text[*pos] (*pos > 0); moves *pos to it.
char32_t PreviousCodePoint(absl::string_view text, size_t* pos);

// Bytes of the character with this first byte.
size_t Utf8Length(unsigned char first);

void AppendUtf8(char32_t c, std::string* out);

// Length of the longest valid prefix.
size_t ValidUtf8Prefix(absl::string_view bytes);

// Each maximal invalid part becomes U+FFFD (the WHATWG rule: "substitution of
// maximal subparts", Unicode 16, section 3.9). Where `offsets` is not null it
// gets, for each byte of the result and its end, the place in `bytes`.
std::string ReplaceInvalidUtf8(absl::string_view bytes,
                               std::vector<size_t>* offsets = nullptr);

// As the reference's tables have them (unicode_age.h), Numeric and word
// characters apart.
bool IsWhitespace(char32_t c);   // property White_Space
bool IsPunctuation(char32_t c);  // P*
bool IsAsciiPunctuation(char32_t c);
bool IsNumeric(char32_t c);         // Nd, Nl, No
bool IsMark(char32_t c);            // Mn, Mc, Me
bool IsNonspacingMark(char32_t c);  // Mn
bool IsOther(char32_t c);           // Cc, Cf, Co
bool IsWordCharacter(char32_t c);   // \w: letters, marks, Nd, Pc, joiners

// Character by character, without context (a final sigma is an ordinary one),
// with the full mapping of U+0130.
void AppendLowercase(char32_t c, std::string* out);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// Appends the normal form of `text` (UAX #15, Unicode 9). Linear but for the
// sort of each run of combining marks.
void AppendNormalForm(NormalForm form, absl::string_view text,
                      std::string* out);

// End of the character at `begin` and the combining marks (of a class that is
// not 0) behind it.
size_t CombiningEnd(absl::string_view text, size_t begin);

// End of the extended grapheme cluster (UAX #29) that starts at `begin`.
size_t GraphemeEnd(absl::string_view text, size_t begin);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_UNICODE_H_
