// The stages together: the one implementation of Tokenizer.
//
//   text → U+FFFD for invalid bytes → added tokens → normalizer → normalized
//   added tokens → pre-tokenizer → model → truncation → template → padding
#ifndef LANEWISE_MODEL_TOKENIZER_PIPELINE_H_
#define LANEWISE_MODEL_TOKENIZER_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/tokenizer/added_tokens.h"
#include "model/tokenizer/aligned_text.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/pieces.h"
#include "model/tokenizer/post_processor.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/token_model.h"
#include "model/tokenizer/tokenizer.h"

namespace lanewise {

// Stages may be null but for the model.
struct PipelineStages {
  NormalizerPtr normalizer;
  PreTokenizerPtr pre_tokenizer;
  std::unique_ptr<TokenModel> model;
  PostProcessor post_processor;
  DecoderPtr decoder;
  std::vector<AddedToken> added_tokens;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  std::optional<int32_t> bos_id;
  std::optional<int32_t> eos_id;
};

class Pipeline : public Tokenizer {
 public:
  // `where` begins messages.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
      PipelineStages stages, absl::string_view where);

  absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const override;
  absl::StatusOr<std::vector<int32_t>> EncodeWithRanges(
      absl::string_view text, bool parse_special_tokens,
      std::vector<std::pair<size_t, size_t>>* ranges) const override;
  absl::StatusOr<std::vector<int32_t>> EncodePair(
      absl::string_view first, absl::string_view second,
      const EncodeOptions& options,
      std::vector<int32_t>* type_ids) const override;
  Encoding Assemble(const std::vector<int32_t>& first,
                    const std::vector<int32_t>* second) const override;
  std::string Decode(absl::Span<const int32_t> ids,
                     const DecodeOptions& options) const override;
  size_t vocab_size() const override { return vocab_size_; }
  std::optional<int32_t> TokenId(absl::string_view token) const override;
  std::string TokenText(int32_t id) const override;
  bool IsSpecial(int32_t id) const override;
  std::optional<size_t> max_length() const override {
    if (!stages_.truncation.has_value()) return std::nullopt;
    return stages_.truncation->max_length;
  }
  std::optional<int32_t> bos_id() const override { return stages_.bos_id; }
  std::optional<int32_t> eos_id() const override { return stages_.eos_id; }

 private:
  Pipeline(PipelineStages stages, AddedTokens added);

  using Ranges = std::vector<ByteRange>;
  struct Context;
  // What comes of a text.
  struct Tokens;

  // `ranges` may be null: not wanted.
  absl::StatusOr<std::vector<int32_t>> EncodeText(
      absl::string_view text, const EncodeOptions& options,
      absl::Span<const ByteRange> plain_ranges, Ranges* ranges) const;
  absl::Status EncodeSegment(absl::string_view text, size_t base,
                             const Context& context, Tokens* tokens) const;
  absl::Status EncodePiece(const AlignedText& normalized, const ByteRange& part,
                           bool first, const Context& context,
                           Tokens* tokens) const;
  absl::StatusOr<Encoded> Finish(std::vector<int32_t> first,
                                 std::vector<int32_t>* second,
                                 const EncodeOptions& options) const;

  PipelineStages stages_;
  AddedTokens added_;
  size_t vocab_size_ = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_PIPELINE_H_
