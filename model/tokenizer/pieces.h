// Text on its way from the normalizer to the model: one buffer, cut in pieces.
#ifndef LANEWISE_MODEL_TOKENIZER_PIECES_H_
#define LANEWISE_MODEL_TOKENIZER_PIECES_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lanewise {

// Stages of a hostile file could let a text grow without end.
inline constexpr size_t kMaxNormalizedBytes = size_t{1} << 26;

inline absl::Status TooLong() {
  return absl::ResourceExhaustedError(
      absl::StrCat("normalized text: expected at most ", kMaxNormalizedBytes,
                   " bytes, found more"));
}

// Bytes [begin, end).
using ByteRange = std::pair<size_t, size_t>;

struct Piece {
  size_t begin;
  size_t end;
  bool first;  // starts where the caller's text starts
};

// Pieces ascend, do not overlap, are not empty; bytes between them were
// removed.
struct Pieces {
  std::string text;
  std::vector<Piece> pieces;
  // Of each byte of text and of its end, a place in the caller's text; empty
  // where nobody asks.
  std::vector<size_t> origin;

  absl::string_view Text(const Piece& piece) const {
    return absl::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_PIECES_H_
