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
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            EncodeText(text, options, options.plain_ranges));
  LANEWISE_ASSIGN_OR_RETURN(Encoded encoded,
                            Finish(std::move(ids), nullptr, options));
  return std::move(encoded.ids);
}

absl::StatusOr<std::vector<int32_t>> Pipeline::EncodePair(
    absl::string_view first, absl::string_view second,
    const EncodeOptions& options, std::vector<int32_t>* type_ids) const {
  if (!options.plain_ranges.empty()) {
    return absl::InvalidArgumentError(
        "EncodePair: expected no plain_ranges (they are of one text)");
  }
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> a,
                            EncodeText(first, options, {}));
  LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> b,
                            EncodeText(second, options, {}));
  LANEWISE_ASSIGN_OR_RETURN(Encoded encoded, Finish(std::move(a), &b, options));
  if (type_ids != nullptr) *type_ids = std::move(encoded.type_ids);
  return std::move(encoded.ids);
}

absl::StatusOr<std::vector<int32_t>> Pipeline::EncodeText(
    absl::string_view text, const EncodeOptions& options,
    absl::Span<const std::pair<size_t, size_t>> plain_ranges) const {
  std::string replaced;
  Ranges ranges;
  for (const auto& [begin, end] : plain_ranges) {
    if (begin > end || end > text.size() ||
        (!ranges.empty() && begin < ranges.back().second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("plain_ranges: expected ascending ranges within ",
                       text.size(), " bytes, found [", begin, ", ", end, ")"));
    }
    if (begin < end) ranges.emplace_back(begin, end);
  }
  if (ValidUtf8Prefix(text) != text.size()) {
    std::vector<size_t> offsets;
    replaced = ReplaceInvalidUtf8(text, ranges.empty() ? nullptr : &offsets);
    text = replaced;
    const auto place = [&](size_t old) {
      return static_cast<size_t>(
          std::lower_bound(offsets.begin(), offsets.end(), old) -
          offsets.begin());
    };
    for (auto& range : ranges) {
      range = {place(range.first), place(range.second)};
    }
  }
  const Context context = {options.parse_special_tokens, ranges};
  std::vector<int32_t> ids;
  const auto allow = [&](size_t begin, size_t end) {
    return context.Allows(begin, end);
  };
  for (const Segment& segment :
       added_.Split(text, /*normalized=*/false, allow)) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
    } else {
      LANEWISE_RETURN_IF_ERROR(
          EncodeSegment(text.substr(segment.begin, segment.end - segment.begin),
                        segment.begin, context, &ids));
    }
  }
  return ids;
}

absl::Status Pipeline::EncodeSegment(absl::string_view text, size_t base,
                                     const Context& context,
                                     std::vector<int32_t>* ids) const {
  const bool keep_origin =
      !context.plain_ranges.empty() && added_.has_special_normalized();
  AlignedText aligned = AlignedText::From(text, keep_origin, base);
  if (stages_.normalizer != nullptr) {
    LANEWISE_RETURN_IF_ERROR(stages_.normalizer->Apply(&aligned));
  }
  const absl::string_view normalized = aligned.text;
  const auto allow = [&](size_t begin, size_t end) {
    if (!keep_origin) return context.allow_special();
    // Up to where the next character came from.
    size_t last = end;
    while (last + 1 < aligned.origin.size() &&
           aligned.origin[last] <= aligned.origin[end - 1]) {
      ++last;
    }
    return context.Allows(
        aligned.origin[begin],
        std::max(aligned.origin[last], aligned.origin[begin] + 1));
  };
  for (const Segment& segment :
       added_.Split(normalized, /*normalized=*/true, allow)) {
    if (segment.id >= 0) {
      ids->push_back(segment.id);
    } else {
      LANEWISE_RETURN_IF_ERROR(EncodePiece(
          normalized.substr(segment.begin, segment.end - segment.begin),
          base == 0 && segment.begin == 0 && !aligned.moved, context, ids));
    }
  }
  return absl::OkStatus();
}

absl::Status Pipeline::EncodePiece(absl::string_view text, bool first,
                                   const Context& context,
                                   std::vector<int32_t>* ids) const {
  Pieces pieces;
  pieces.text = std::string(text);
  pieces.pieces = {{0, text.size(), first}};
  if (stages_.pre_tokenizer != nullptr) {
    LANEWISE_RETURN_IF_ERROR(stages_.pre_tokenizer->Apply(&pieces));
  }
  return stages_.model->Tokenize(pieces, context.allow_special(), ids);
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
