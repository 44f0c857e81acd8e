// Text to token ids and back: the Hugging Face tokenizers pipeline (normalizer,
// pre-tokenizer, model, post-processor, decoder, added tokens), from a
// tokenizer.json or from the vocabulary in a GGUF file.
//
//   LANEWISE_ASSIGN_OR_RETURN(auto tokenizer, Tokenizer::Load(*checkpoint));
//   LANEWISE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
//   tokenizer->Encode("Hello", {})); std::string text = tokenizer->Decode(ids,
//   {});
//
// Any bytes may come in: each maximal invalid part of UTF-8 becomes U+FFFD
// first (the WHATWG rule). Time is linear in the text, stack use constant.
#ifndef LANEWISE_MODEL_TOKENIZER_TOKENIZER_H_
#define LANEWISE_MODEL_TOKENIZER_TOKENIZER_H_

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
#include "model/format/checkpoint.h"

namespace lanewise {

struct EncodeOptions {
  // Adds what the post-processor (or GGUF's add_bos_token …) adds around a
  // text: <s> … </s>, [CLS] … [SEP].
  bool add_special_tokens = true;

  // Whether text that spells a *special* (control) token becomes that token.
  // Off: it is ordinary text, so user input never turns into control tokens.
  // Added tokens that are not special are matched either way.
  bool parse_special_tokens = false;

  // Byte ranges [begin, end) of the text, ascending, in which special tokens
  // are not recognised although parse_special_tokens is on: the parts of a
  // rendered chat prompt that came from messages. A token is recognised only
  // outside all of them; the text is otherwise encoded as a whole, so ids do
  // not change where nothing spells a control token.
  absl::Span<const std::pair<size_t, size_t>> plain_ranges = {};

  // Whether the truncation and padding that a tokenizer.json may switch on
  // apply. Whoever batches texts turns them off: padding would count as text.
  bool truncate = true;
  bool pad = true;
};

// Ids as a model takes them: one text or two, with what stands around them.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // one an id
  std::vector<int8_t> texts;      // one an id: 0 first text, 1 second, -1 added
};

struct DecodeOptions {
  bool skip_special_tokens = false;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // From tokenizer.json (folder) or tokenizer.ggml.* (GGUF). A stage that is
  // not known is an error that names it.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Load(
      const Checkpoint& checkpoint);

  // From the text of a tokenizer.json; `file` is for messages.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromJson(
      absl::string_view json, absl::string_view file);

  // From GGUF metadata.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromMetadata(
      const Metadata& metadata);

  virtual absl::StatusOr<std::vector<int32_t>> Encode(
      absl::string_view text, const EncodeOptions& options) const = 0;

  // The ids of a text without special tokens, and for each the bytes
  // [begin, end) of the text that it stands for, whole characters of it:
  // neighbours may share one. Truncation and padding do not apply.
  virtual absl::StatusOr<std::vector<int32_t>> EncodeWithRanges(
      absl::string_view text, bool parse_special_tokens,
      std::vector<std::pair<size_t, size_t>>* ranges) const = 0;

  // Two texts (sentence pairs); type_ids, where not null, gets one per id.
  // plain_ranges must be empty: they are of one text.
  virtual absl::StatusOr<std::vector<int32_t>> EncodePair(
      absl::string_view first, absl::string_view second,
      const EncodeOptions& options, std::vector<int32_t>* type_ids) const = 0;

  // What add_special_tokens puts around the ids of one text, or (`second` not
  // null) of two. For callers that cut or slide over ids themselves.
  virtual Encoding Assemble(const std::vector<int32_t>& first,
                            const std::vector<int32_t>* second) const = 0;

  // Text of all ids; incomplete UTF-8 becomes U+FFFD; ids out of range give
  // nothing.
  virtual std::string Decode(absl::Span<const int32_t> ids,
                             const DecodeOptions& options) const = 0;

  virtual size_t vocab_size()
      const = 0;  // with added tokens: 1 + the largest id
  virtual std::optional<int32_t> TokenId(absl::string_view token)
      const = 0;  // of the token as the vocabulary spells it
  virtual std::string TokenText(
      int32_t id) const = 0;  // its spelling; "" out of range
  virtual bool IsSpecial(int32_t id) const = 0;

  // The length that the tokenizer's own truncation cuts to, where its file
  // switches one on.
  virtual std::optional<size_t> max_length() const = 0;

  // What the files say; unset where they say nothing. From a GGUF file:
  // tokenizer.ggml.bos_token_id and so on; from JSON the caller sets nothing
  // here (tokenizer_config.json and generation_config.json are the model's
  // matter).
  virtual std::optional<int32_t> bos_id() const = 0;
  virtual std::optional<int32_t> eos_id() const = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_TOKENIZER_H_
