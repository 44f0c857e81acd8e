// The stage from tokens back to text: each decoder rewrites the list of token
// texts; the result is what they give when joined.
#ifndef LANEWISE_MODEL_TOKENIZER_DECODER_H_
#define LANEWISE_MODEL_TOKENIZER_DECODER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/splitter.h"

namespace lanewise {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Thread-safe.
  virtual void Apply(std::vector<std::string>* tokens) const = 0;
};

using DecoderPtr = std::unique_ptr<const Decoder>;

// Bytes from characters (byte_level.h), then text: invalid UTF-8 → U+FFFD.
DecoderPtr MakeByteLevelDecoder();
// "##" glues to the word before; `cleanup` takes spaces before punctuation
// and English contractions away.
DecoderPtr MakeWordPieceDecoder(std::string prefix, bool cleanup);
// "▁" becomes a space; the first one of the text nothing, unless kNever.
DecoderPtr MakeMetaspaceDecoder(std::string replacement, PrependScheme scheme);
// "</w>" becomes a space, at the end nothing.
DecoderPtr MakeBpeDecoder(std::string suffix);
// Repeated tokens once, `pad` never, `delimiter` is a space (CTC).
DecoderPtr MakeCtcDecoder(std::string pad, std::string delimiter, bool cleanup);
DecoderPtr MakeReplaceDecoder(Pattern pattern, std::string content);
// Runs of <0x00> … <0xFF> become text, or one U+FFFD a byte.
DecoderPtr MakeByteFallbackDecoder();
DecoderPtr MakeFuseDecoder();  // joins all tokens
// Up to `start` characters `content` from the left of each token, and up to
// `stop` from the right.
DecoderPtr MakeStripDecoder(std::string content, size_t start, size_t stop);
DecoderPtr MakeDecoderSequence(std::vector<DecoderPtr> stages);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_DECODER_H_
