// Which characters the tables of the reference do not know. It takes general
// categories from Unicode 8 and normal forms from Unicode 9, and models were
// trained on what it made of newer characters: they are no marks, punctuation
// or format characters there, and have no decomposition.
#ifndef LANEWISE_MODEL_TOKENIZER_UNICODE_AGE_H_
#define LANEWISE_MODEL_TOKENIZER_UNICODE_AGE_H_

namespace lanewise {

// Whether `c` is none of that version's characters but came later. For code
// points that were never assigned the answer may be either.
bool IsAfterUnicode8(char32_t c);
bool IsAfterUnicode9(char32_t c);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_UNICODE_AGE_H_
