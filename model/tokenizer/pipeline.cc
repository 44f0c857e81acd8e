#include "model/tokenizer/pipeline.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/tokenizer/unicode.h"
#include "simd/status_macros.h"

namespace lanewise {

// What one text's stages share.
struct Pipeline::Context {
  bool parse_special;
  absl::Span<const std::pair<size_t, size_t>> plain_ranges;

  // Whether [begin, end) of the text is outside all plain ranges.
  bool Allows(size_t begin, size_t end) const {
    if (!parse_special) return false;
    const auto range = std::upper_bound(
        plain_ranges.begin(), plain_ranges.end(), begin,
        [](size_t place, const auto& r) { return place < r.second; });
    return range == plain_ranges.end() || range->first >= end;
  }
  // Whether the model may give control tokens, as the reference's does.
  bool allow_special() const { return parse_special && plain_ranges.empty(); }
};

struct Pipeline::Tokens {
  std::vector<int32_t> ids;
  Ranges* ranges;  // one an id, of places in the text; or null
  absl::string_view text;

  void Add(int32_t id, size_t begin, size_t end) {
    ids.push_back(id);
    if (ranges != nullptr) ranges->emplace_back(begin, end);
  }
};

Pipeline::Pipeline(PipelineStages stages, AddedTokens added)
    : stages_(std::move(stages)), added_(std::move(added)) {}

absl::StatusOr<std::unique_ptr<Tokenizer>> Pipeline::Create(
    PipelineStages stages, absl::string_view where) {
  LANEWISE_ASSIGN_OR_RETURN(
      AddedTokens added, AddedTokens::Create(std::move(stages.added_tokens),
                                             stages.normalizer.get(), where));
  std::vector<int32_t> special;
  size_t size = stages.model->vocabulary().size();
  for (const AddedToken& token : added.tokens()) {
    if (token.special) special.push_back(token.id);
    size = std::max(size, static_cast<size_t>(token.id) + 1);
  }
  stages.model->BlockSpecial(special);
  std::unique_ptr<Pipeline> pipeline(
      new Pipeline(std::move(stages), std::move(added)));
  pipeline->vocab_size_ = size;
  return pipeline;
}

absl::StatusOr<std::vector<int32_t>> Pipeline::Encode(
    absl::string_view text, const EncodeOptions& options) const {
  LANEWISE_ASSIGN_OR_RETURN(
      std::vector<int32_t> ids,
      EncodeText(text, options, options.plain_ranges, nullptr));
  LANEWISE_ASSIGN_OR_RETURN(Encoded encoded,
                            Finish(std::move(ids), nullptr, options));
  return std::move(encoded.ids);
}

absl::StatusOr<std::vector<int32_t>> Pipeline::EncodeWithRanges(
    absl::string_view text, bool parse_special_tokens, Ranges* ranges) const {
  EncodeOptions options;
  options.parse_special_tokens = parse_special_tokens;
  ranges->clear();
  return EncodeText(text, options, {}, ranges);
}

absl::StatusOr<std::vector<int32_t>> Pipeline::EncodePair(
    absl::string_view first, absl::string_view second,
    const EncodeOptions& options, std::vector<int32_t>* type_ids) const {
  if (!options.plain_ranges.empty()) {
    return absl::InvalidArgumentError(
        "EncodePair: expected no plain_ranges (they are of one text)");
  }
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> a,
                            EncodeText(first, options, {}, nullptr));
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> b,
                            EncodeText(second, options, {}, nullptr));
  LANEWISE_ASSIGN_OR_RETURN(Encoded encoded, Finish(std::move(a), &b, options));
  if (type_ids != nullptr) *type_ids = std::move(encoded.type_ids);
  return std::move(encoded.ids);
}

absl::StatusOr<std::vector<int32_t>> Pipeline::EncodeText(
    absl::string_view text, const EncodeOptions& options,
    absl::Span<const ByteRange> plain_ranges, Ranges* ranges) const {
  std::string replaced;
  std::vector<size_t> offsets;  // of each byte of `replaced`, in the text
  Ranges plain;
  for (const auto& [begin, end] : plain_ranges) {
    if (begin > end || end > text.size() ||
        (!plain.empty() && begin < plain.back().second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("plain_ranges: expected ascending ranges within ",
                       text.size(), " bytes, found [", begin, ", ", end, ")"));
    }
    if (begin < end) plain.emplace_back(begin, end);
  }
  if (ValidUtf8Prefix(text) != text.size()) {
    const bool keep = !plain.empty() || ranges != nullptr;
    replaced = ReplaceInvalidUtf8(text, keep ? &offsets : nullptr);
    text = replaced;
    const auto place = [&](size_t old) {
      return static_cast<size_t>(
          std::lower_bound(offsets.begin(), offsets.end(), old) -
          offsets.begin());
    };
    for (auto& range : plain) {
      range = {place(range.first), place(range.second)};
    }
  }
  const Context context = {options.parse_special_tokens, plain};
  Tokens tokens = {{}, ranges, text};
  const auto allow = [&](size_t begin, size_t end) {
    return context.Allows(begin, end);
  };
  for (const Segment& segment :
       added_.Split(text, /*normalized=*/false, allow)) {
    if (segment.id >= 0) {
      tokens.Add(segment.id, segment.begin, segment.end);
    } else {
      LANEWISE_RETURN_IF_ERROR(
          EncodeSegment(text.substr(segment.begin, segment.end - segment.begin),
                        segment.begin, context, &tokens));
    }
  }
  if (ranges != nullptr && !offsets.empty()) {
    for (auto& [begin, end] : *ranges) {
      begin = offsets[begin];
      end = offsets[end];
    }
  }
  return std::move(tokens.ids);
}

absl::Status Pipeline::EncodeSegment(absl::string_view text, size_t base,
                                     const Context& context,
                                     Tokens* tokens) const {
  const bool keep_origin =
      tokens->ranges != nullptr ||
      (!context.plain_ranges.empty() && added_.has_special_normalized());
  AlignedText aligned = AlignedText::From(text, keep_origin, base);
  if (stages_.normalizer != nullptr) {
    LANEWISE_RETURN_IF_ERROR(stages_.normalizer->Apply(&aligned));
  }
  // Up to where the next character came from.
  const auto origin_end = [&aligned](size_t end) {
    size_t last = end;
    while (last + 1 < aligned.origin.size() &&
           aligned.origin[last] <= aligned.origin[end - 1]) {
      ++last;
    }
    return aligned.origin[last];
  };
  const auto allow = [&](size_t begin, size_t end) {
    if (!keep_origin || context.plain_ranges.empty()) {
      return context.allow_special();
    }
    return context.Allows(aligned.origin[begin],
                          std::max(origin_end(end), aligned.origin[begin] + 1));
  };
  for (const Segment& segment :
       added_.Split(aligned.text, /*normalized=*/true, allow)) {
    if (segment.id >= 0) {
      const bool wanted = tokens->ranges != nullptr;
      tokens->Add(segment.id, wanted ? aligned.origin[segment.begin] : 0,
                  wanted ? origin_end(segment.end) : 0);
    } else {
      LANEWISE_RETURN_IF_ERROR(EncodePiece(
          aligned, {segment.begin, segment.end},
          base == 0 && segment.begin == 0 && !aligned.moved, context, tokens));
    }
  }
  return absl::OkStatus();
}

absl::Status Pipeline::EncodePiece(const AlignedText& normalized,
                                   const ByteRange& part, bool first,
                                   const Context& context,
                                   Tokens* tokens) const {
  Ranges* ranges = tokens->ranges;
  Pieces pieces;
  pieces.text = normalized.text.substr(part.first, part.second - part.first);
  pieces.pieces = {{0, pieces.text.size(), first}};
  if (ranges != nullptr) {
    pieces.origin.assign(normalized.origin.begin() + part.first,
                         normalized.origin.begin() + part.second + 1);
  }
  if (stages_.pre_tokenizer != nullptr) {
    LANEWISE_RETURN_IF_ERROR(stages_.pre_tokenizer->Apply(&pieces));
  }
  const size_t before = tokens->ids.size();
  LANEWISE_RETURN_IF_ERROR(stages_.model->Tokenize(
      pieces, context.allow_special(), &tokens->ids, ranges));
  if (ranges == nullptr) return absl::OkStatus();
  // From bytes of pieces.text to whole characters of the text.
  const absl::string_view text = tokens->text;
  const auto character = [text](size_t place) {
    while (place > 0 && place < text.size() &&
           (static_cast<unsigned char>(text[place]) & 0xC0) == 0x80) {
      --place;
    }
    return place;
  };
  for (size_t i = before; i < ranges->size(); ++i) {
    auto& [begin, end] = (*ranges)[i];
    const size_t last = end > begin ? end - 1 : begin;
    begin = character(pieces.origin[begin]);
    end = character(pieces.origin[last]);
    if (end < text.size()) {
      end += Utf8Length(static_cast<unsigned char>(text[end]));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Encoded> Pipeline::Finish(std::vector<int32_t> first,
                                         std::vector<int32_t>* second,
                                         const EncodeOptions& options) const {
  const Template& parts = second == nullptr ? stages_.post_processor.single
                                            : stages_.post_processor.pair;
  if (stages_.truncation.has_value() && options.truncate) {
    LANEWISE_RETURN_IF_ERROR(Truncate(
        *stages_.truncation,
        options.add_special_tokens ? CountTokens(parts) : 0, &first, second));
  }
  Encoded encoded =
      ApplyTemplate(parts, options.add_special_tokens, first,
                    second != nullptr ? *second : std::vector<int32_t>());
  if (stages_.padding.has_value() && options.pad)
    Pad(*stages_.padding, &encoded);
  return encoded;
}

Encoding Pipeline::Assemble(const std::vector<int32_t>& first,
                            const std::vector<int32_t>* second) const {
  const Template& parts = second == nullptr ? stages_.post_processor.single
                                            : stages_.post_processor.pair;
  const std::vector<int32_t> none;
  Encoded encoded = ApplyTemplate(parts, /*add_special=*/true, first,
                                  second != nullptr ? *second : none);
  return {std::move(encoded.ids), std::move(encoded.type_ids),
          std::move(encoded.texts)};
}

std::string Pipeline::Decode(absl::Span<const int32_t> ids,
                             const DecodeOptions& options) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    const AddedToken* added = added_.Find(id);
    if (added != nullptr) {
      if (options.skip_special_tokens && added->special) continue;
      tokens.push_back(added->decoded);
    } else if (stages_.model->vocabulary().Has(id)) {
      tokens.emplace_back(stages_.model->vocabulary().Text(id));
    }
  }
  if (stages_.decoder != nullptr) stages_.decoder->Apply(&tokens);
  std::string text =
      absl::StrJoin(tokens, stages_.decoder == nullptr ? " " : "");
  if (ValidUtf8Prefix(text) == text.size()) return text;
  return ReplaceInvalidUtf8(text);
}

std::optional<int32_t> Pipeline::TokenId(absl::string_view token) const {
  if (const AddedToken* added = added_.Find(token)) return added->id;
  return stages_.model->vocabulary().Find(token);
}

std::string Pipeline::TokenText(int32_t id) const {
  if (const AddedToken* added = added_.Find(id)) return added->content;
  return std::string(stages_.model->vocabulary().Text(id));
}

bool Pipeline::IsSpecial(int32_t id) const {
  const AddedToken* added = added_.Find(id);
  return added != nullptr && added->special;
}

}  // namespace lanewise
