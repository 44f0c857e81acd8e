#include "model/tokenizer/splitter.h"

#include <algorithm>
#include <optional>

#include "model/tokenizer/unicode.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Found = absl::FunctionRef<void(size_t, size_t)>;

absl::Status RegexMatches(const Regex& regex, Regex::Scratch& scratch,
                          absl::string_view text, Found found) {
  if (text.empty()) return absl::OkStatus();  // nor does an empty pattern match
  size_t pos = 0;
  size_t last = absl::string_view::npos;  // end of the last match
  while (pos <= text.size()) {
    Regex::Match match;
    LANEWISE_ASSIGN_OR_RETURN(const bool matched,
                              regex.Find(text, pos, scratch, &match));
    if (!matched) break;
    // An empty match right behind another match is none.
    if (match.end > match.begin || match.end != last) {
      found(match.begin, match.end);
      last = match.end;
    }
    pos = match.end;
    if (match.end == match.begin) {
      if (pos >= text.size()) break;
      pos += Utf8Length(static_cast<unsigned char>(text[pos]));
    }
  }
  return absl::OkStatus();
}

void LiteralMatches(absl::string_view literal, absl::string_view text,
                    Found found) {
  if (literal.empty()) return;
  size_t pos = 0;
  while ((pos = text.find(literal, pos)) != absl::string_view::npos) {
    found(pos, pos + literal.size());
    pos += literal.size();
  }
}

// Joins a match to the run before it, where that is no match.
void MergeWithPrevious(std::vector<Run>* runs) {
  std::vector<Run> merged;
  bool previous = false;
  for (const Run& run : *runs) {
    if (run.match && !previous && !merged.empty()) {
      merged.back().end = run.end;
    } else {
      merged.push_back(run);
    }
    previous = run.match;
  }
  *runs = std::move(merged);
}

void MergeWithNext(std::vector<Run>* runs) {
  std::vector<Run> merged;
  bool previous = false;
  for (auto run = runs->rbegin(); run != runs->rend(); ++run) {
    if (run->match && !previous && !merged.empty()) {
      merged.back().begin = run->begin;
    } else {
      merged.push_back(*run);
    }
    previous = run->match;
  }
  std::reverse(merged.begin(), merged.end());
  *runs = std::move(merged);
}

void MergeContiguous(std::vector<Run>* runs) {
  std::vector<Run> merged;
  for (const Run& run : *runs) {
    if (!merged.empty() && merged.back().match == run.match) {
      merged.back().end = run.end;
    } else {
      merged.push_back(run);
    }
  }
  *runs = std::move(merged);
}

}  // namespace

void AppendSplit(SplitBehavior behavior, size_t base, bool first,
                 std::vector<Run>* runs, std::vector<Piece>* out) {
  switch (behavior) {
    case SplitBehavior::kMergedWithPrevious:
      MergeWithPrevious(runs);
      break;
    case SplitBehavior::kMergedWithNext:
      MergeWithNext(runs);
      break;
    case SplitBehavior::kContiguous:
      MergeContiguous(runs);
      break;
    case SplitBehavior::kRemoved:
    case SplitBehavior::kIsolated:
      break;
  }
  for (const Run& run : *runs) {
    if (run.begin == run.end) continue;
    if (run.match && behavior == SplitBehavior::kRemoved) continue;
    out->push_back({base + run.begin, base + run.end, first && run.begin == 0});
  }
  runs->clear();
}

absl::Status SplitByPattern(const Pattern& pattern, SplitBehavior behavior,
                            bool invert, Pieces* pieces) {
  const Regex* regex = std::get_if<Regex>(&pattern);
  std::optional<Regex::Scratch> scratch;
  if (regex != nullptr) scratch.emplace(*regex, pieces->text.size());
  std::vector<Piece> out;
  out.reserve(pieces->pieces.size());
  std::vector<Run> runs;
  for (const Piece& piece : pieces->pieces) {
    const absl::string_view text = pieces->Text(piece);
    size_t end = 0;
    const auto found = [&](size_t match_begin, size_t match_end) {
      if (end != match_begin) runs.push_back({end, match_begin, invert});
      runs.push_back({match_begin, match_end, !invert});
      end = match_end;
    };
    if (regex != nullptr) {
      LANEWISE_RETURN_IF_ERROR(RegexMatches(*regex, *scratch, text, found));
    } else {
      LiteralMatches(std::get<std::string>(pattern), text, found);
    }
    if (end != text.size()) runs.push_back({end, text.size(), invert});
    AppendSplit(behavior, piece.begin, piece.first, &runs, &out);
  }
  pieces->pieces = std::move(out);
  return absl::OkStatus();
}

void SplitByCharacter(absl::FunctionRef<bool(char32_t)> matches,
                      SplitBehavior behavior, Pieces* pieces) {
  std::vector<Piece> out;
  std::vector<Run> runs;
  for (const Piece& piece : pieces->pieces) {
    const absl::string_view text = pieces->Text(piece);
    for (size_t pos = 0; pos < text.size();) {
      const size_t begin = pos;
      const bool match = matches(NextCodePoint(text, &pos));
      if (!match && !runs.empty() && !runs.back().match) {
        runs.back().end = pos;
      } else {
        runs.push_back({begin, pos, match});
      }
    }
    AppendSplit(behavior, piece.begin, piece.first, &runs, &out);
  }
  pieces->pieces = std::move(out);
}

absl::Status ForEachMatch(const Pattern& pattern, absl::string_view text,
                          Found found) {
  if (const Regex* regex = std::get_if<Regex>(&pattern)) {
    Regex::Scratch scratch(*regex, text.size());
    return RegexMatches(*regex, scratch, text, found);
  }
  LiteralMatches(std::get<std::string>(pattern), text, found);
  return absl::OkStatus();
}

}  // namespace lanewise
