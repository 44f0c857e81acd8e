// SentencePiece's precompiled character map, as T5 and XLM-R carry it: a
// double-array trie of strings and what each becomes.
#ifndef LANEWISE_MODEL_TOKENIZER_PRECOMPILED_H_
#define LANEWISE_MODEL_TOKENIZER_PRECOMPILED_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/normalizer.h"

namespace lanewise {

// `bytes`: u32 (little-endian) size of the trie in bytes, the trie's units
// (u32), then strings that end in NUL. An empty map changes nothing. A map cut
// short is an error that begins with `where`.
absl::StatusOr<NormalizerPtr> MakePrecompiledNormalizer(
    absl::string_view bytes, absl::string_view where);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_PRECOMPILED_H_
