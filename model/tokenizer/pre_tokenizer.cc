#include "model/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "model/tokenizer/byte_level.h"
#include "model/tokenizer/unicode.h"
#include "simd/status_macros.h"

namespace lanewise {

const absl::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

// The new text of pieces.
class PieceWriter {
 public:
  explicit PieceWriter(Pieces* pieces) : pieces_(*pieces) {
    text_.reserve(pieces_.text.size() + pieces_.text.size() / 2);
  }

  // New bytes for the old one at `place`, or before it.
  void Append(absl::string_view bytes, size_t place) {
    text_.append(bytes.data(), bytes.size());
    if (!pieces_.origin.empty()) {
      origin_.resize(text_.size(), pieces_.origin[place]);
    }
  }

  size_t size() const { return text_.size(); }

  void Finish() {
    pieces_.text = std::move(text_);
    if (pieces_.origin.empty()) return;
    origin_.push_back(pieces_.origin.back());
    pieces_.origin = std::move(origin_);
  }

 private:
  Pieces& pieces_;
  std::string text_;
  std::vector<size_t> origin_;
};

// Puts the pieces, each rewritten by `rewrite(piece, out)`, into a new buffer.
template <typename Rewrite>
void RewritePieces(Pieces* pieces, Rewrite rewrite) {
  PieceWriter writer(pieces);
  for (Piece& piece : pieces->pieces) {
    const size_t begin = writer.size();
    rewrite(piece, &writer);
    piece.begin = begin;
    piece.end = writer.size();
  }
  writer.Finish();
}

class ByteLevelPreTokenizer : public PreTokenizer {
 public:
  ByteLevelPreTokenizer(bool add_prefix_space, std::optional<Pattern> pattern)
      : add_prefix_space_(add_prefix_space), pattern_(std::move(pattern)) {}

  absl::Status Apply(Pieces* pieces) const override {
    if (add_prefix_space_) {
      RewritePieces(pieces, [&](const Piece& piece, PieceWriter* out) {
        const absl::string_view text = pieces->Text(piece);
        if (!absl::StartsWith(text, " ")) out->Append(" ", piece.begin);
        for (size_t i = 0; i < text.size(); ++i) {
          out->Append(text.substr(i, 1), piece.begin + i);
        }
      });
    }
    if (pattern_.has_value()) {
      LANEWISE_RETURN_IF_ERROR(SplitByPattern(
          *pattern_, SplitBehavior::kIsolated, /*invert=*/false, pieces));
    }
    RewritePieces(pieces, [&](const Piece& piece, PieceWriter* out) {
      const absl::string_view text = pieces->Text(piece);
      std::string character;
      for (size_t i = 0; i < text.size(); ++i) {
        character.clear();
        AppendByteLevel(text.substr(i, 1), &character);
        out->Append(character, piece.begin + i);
      }
    });
    return absl::OkStatus();
  }

 private:
  bool add_prefix_space_;
  std::optional<Pattern> pattern_;
};

class MetaspacePreTokenizer : public PreTokenizer {
 public:
  MetaspacePreTokenizer(std::string replacement, PrependScheme scheme,
                        bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  absl::Status Apply(Pieces* pieces) const override {
    RewritePieces(pieces, [&](const Piece& piece, PieceWriter* out) {
      const absl::string_view text = pieces->Text(piece);
      const bool prepend = scheme_ == PrependScheme::kAlways ||
                           (scheme_ == PrependScheme::kFirst && piece.first);
      if (prepend && !absl::StartsWith(text, " ") &&
          !absl::StartsWith(text, replacement_)) {
        out->Append(replacement_, piece.begin);
      }
      for (size_t i = 0; i < text.size(); ++i) {
        out->Append(text[i] == ' ' ? replacement_ : text.substr(i, 1),
                    piece.begin + i);
      }
    });
    if (!split_) return absl::OkStatus();
    return SplitByPattern(replacement_, SplitBehavior::kMergedWithNext,
                          /*invert=*/false, pieces);
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
  bool split_;
};

class SplitPreTokenizer : public PreTokenizer {
 public:
  SplitPreTokenizer(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  absl::Status Apply(Pieces* pieces) const override {
    return SplitByPattern(pattern_, behavior_, invert_, pieces);
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

// Cuts at the characters of a class.
class CharacterPreTokenizer : public PreTokenizer {
 public:
  CharacterPreTokenizer(bool (*matches)(char32_t), SplitBehavior behavior)
      : matches_(matches), behavior_(behavior) {}

  absl::Status Apply(Pieces* pieces) const override {
    SplitByCharacter(matches_, behavior_, pieces);
    return absl::OkStatus();
  }

 private:
  bool (*matches_)(char32_t);
  SplitBehavior behavior_;
};

class DelimiterPreTokenizer : public PreTokenizer {
 public:
  explicit DelimiterPreTokenizer(char32_t delimiter) : delimiter_(delimiter) {}

  absl::Status Apply(Pieces* pieces) const override {
    SplitByCharacter([this](char32_t c) { return c == delimiter_; },
                     SplitBehavior::kRemoved, pieces);
    return absl::OkStatus();
  }

 private:
  char32_t delimiter_;
};

// Runs of word characters and runs of other characters but spaces.
class WhitespacePreTokenizer : public PreTokenizer {
 public:
  absl::Status Apply(Pieces* pieces) const override {
    enum Kind { kNone, kWord, kOther };
    std::vector<Piece> out;
    for (const Piece& piece : pieces->pieces) {
      const absl::string_view text = pieces->Text(piece);
      Kind previous = kNone;
      for (size_t pos = 0; pos < text.size();) {
        const size_t begin = pos;
        const char32_t c = NextCodePoint(text, &pos);
        const Kind kind = IsWordCharacter(c) ? kWord
                          : IsWhitespace(c)  ? kNone
                                             : kOther;
        if (kind != kNone && kind == previous) {
          out.back().end = piece.begin + pos;
        } else if (kind != kNone) {
          out.push_back({piece.begin + begin, piece.begin + pos,
                         piece.first && begin == 0});
        }
        previous = kind;
      }
    }
    pieces->pieces = std::move(out);
    return absl::OkStatus();
  }
};

class FixedLengthPreTokenizer : public PreTokenizer {
 public:
  explicit FixedLengthPreTokenizer(size_t characters)
      : characters_(characters) {}

  absl::Status Apply(Pieces* pieces) const override {
    std::vector<Piece> out;
    for (const Piece& piece : pieces->pieces) {
      const absl::string_view text = pieces->Text(piece);
      size_t pos = 0;
      while (pos < text.size()) {
        const size_t begin = pos;
        for (size_t i = 0; i < characters_ && pos < text.size(); ++i) {
          pos += Utf8Length(static_cast<unsigned char>(text[pos]));
        }
        out.push_back({piece.begin + begin, piece.begin + pos,
                       piece.first && begin == 0});
      }
    }
    pieces->pieces = std::move(out);
    return absl::OkStatus();
  }

 private:
  size_t characters_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<PreTokenizerPtr> stages)
      : stages_(std::move(stages)) {}

  absl::Status Apply(Pieces* pieces) const override {
    const size_t limit = std::max(pieces->text.size(), kMaxNormalizedBytes);
    for (const PreTokenizerPtr& stage : stages_) {
      LANEWISE_RETURN_IF_ERROR(stage->Apply(pieces));
      if (pieces->text.size() > limit) return TooLong();
    }
    return absl::OkStatus();
  }

 private:
  std::vector<PreTokenizerPtr> stages_;
};

bool IsBertPunctuation(char32_t c) {
  return IsAsciiPunctuation(c) || IsPunctuation(c);
}

}  // namespace

absl::StatusOr<PreTokenizerPtr> MakeByteLevelPreTokenizer(bool add_prefix_space,
                                                          bool use_regex) {
  std::optional<Pattern> pattern;
  if (use_regex) {
    LANEWISE_ASSIGN_OR_RETURN(pattern, Regex::Compile(kByteLevelPattern));
  }
  return std::make_unique<ByteLevelPreTokenizer>(add_prefix_space,
                                                 std::move(pattern));
}

PreTokenizerPtr MakeMetaspacePreTokenizer(std::string replacement,
                                          PrependScheme scheme, bool split) {
  return std::make_unique<MetaspacePreTokenizer>(std::move(replacement), scheme,
                                                 split);
}

PreTokenizerPtr MakeSplitPreTokenizer(Pattern pattern, SplitBehavior behavior,
                                      bool invert) {
  return std::make_unique<SplitPreTokenizer>(std::move(pattern), behavior,
                                             invert);
}

PreTokenizerPtr MakeBertPreTokenizer() {
  std::vector<PreTokenizerPtr> stages;
  stages.push_back(MakeWhitespaceSplitPreTokenizer());
  stages.push_back(MakePunctuationPreTokenizer(SplitBehavior::kIsolated));
  return MakePreTokenizerSequence(std::move(stages));
}

PreTokenizerPtr MakeWhitespacePreTokenizer() {
  return std::make_unique<WhitespacePreTokenizer>();
}

PreTokenizerPtr MakeWhitespaceSplitPreTokenizer() {
  return std::make_unique<CharacterPreTokenizer>(&IsWhitespace,
                                                 SplitBehavior::kRemoved);
}

PreTokenizerPtr MakePunctuationPreTokenizer(SplitBehavior behavior) {
  return std::make_unique<CharacterPreTokenizer>(&IsBertPunctuation, behavior);
}

PreTokenizerPtr MakeDigitsPreTokenizer(bool individual) {
  return std::make_unique<CharacterPreTokenizer>(
      &IsNumeric,
      individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizerPtr MakeDelimiterPreTokenizer(char32_t delimiter) {
  return std::make_unique<DelimiterPreTokenizer>(delimiter);
}

PreTokenizerPtr MakeFixedLengthPreTokenizer(size_t characters) {
  return std::make_unique<FixedLengthPreTokenizer>(characters);
}

PreTokenizerPtr MakePreTokenizerSequence(std::vector<PreTokenizerPtr> stages) {
  return std::make_unique<PreTokenizerSequence>(std::move(stages));
}

}  // namespace lanewise
