// Token ids to text as they come. Decoding ids one at a time is not the
// decoding of all of them: SentencePiece drops the space before the first
// token, WordPiece joins pieces, a character may be spread over several ids.
//
//   TextStream stream(
//       [&](absl::Span<const int32_t> ids) { return tokenizer.Decode(ids, {});
//       }, &stops);
//   while (...) {
//     Show(stream.Push(next_id));
//     if (stream.stopped()) break;
//   }
//   Show(stream.Finish());
//
// What is shown, put together, is the text that decoding all ids at the end and
// cutting it would give, and every piece is valid UTF-8.
#ifndef LANEWISE_RUNTIME_TEXT_STREAM_H_
#define LANEWISE_RUNTIME_TEXT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "runtime/stop_strings.h"
#include "runtime/utf8.h"

namespace lanewise {

// The text of a sequence of ids, as Tokenizer::Decode gives it. Bytes that are
// not UTF-8 become U+FFFD.
using DecodeFunction = std::function<std::string(absl::Span<const int32_t>)>;

// Decodes a window: the ids of the last text that was given out, for context,
// and those whose text waits for more. Each id costs a bounded number of
// decodings of a bounded number of ids.
//
// Equal to decoding all ids at once where text, once complete, does not change
// by what follows. Decoders that rewrite it (clean-up that joins `' x`, byte
// fallback that spoils a whole run of byte tokens for one bad byte) cannot undo
// text already given out; what follows is then decoded on its own.
class IncrementalDecoder {
 public:
  // Ids after the context that the window holds at most.
  static constexpr size_t kMaxWaiting = 16;

  explicit IncrementalDecoder(DecodeFunction decode)
      : decode_(std::move(decode)) {}

  // The new text; "" while a character is incomplete. To `ends`, where not
  // null, goes for each id whose text is now known, in order, where in the
  // returned text it ends; an id within a character ends with the character.
  std::string Push(int32_t id, std::vector<size_t>* ends = nullptr);

  // What waits, incomplete characters as U+FFFD.
  std::string Finish(std::vector<size_t>* ends = nullptr);

  // How many of the last ids wait for the rest of a character.
  size_t waiting() const { return ids_.size() - known_; }

 private:
  std::string Decode(size_t begin, size_t end) const;
  std::string Commit(size_t end, const std::string& text,
                     std::vector<size_t>* ends);
  std::string CommitAllButTail(const std::string& text,
                               std::vector<size_t>* ends);
  void NoText(std::vector<size_t>* ends);
  void FindEnds(size_t end, const std::string& text, size_t out_bytes,
                std::vector<size_t>* ends) const;

  DecodeFunction decode_;
  std::vector<int32_t> ids_;  // the window: context, then the others
  size_t context_ = 0;
  std::string context_text_;  // of the context
  size_t known_ = 0;          // ids whose ends were reported
};

// Decoder and stop strings in one.
class TextStream {
 public:
  // `stops` outlives the stream; null: none.
  TextStream(DecodeFunction decode, const StopStrings* stops)
      : decoder_(std::move(decode)), filter_(stops) {}

  // The text that has become certain. Ids after a stop are ignored.
  std::string Push(int32_t id);

  // The end of the sequence: the rest. Nothing after a stop.
  std::string Finish();

  bool stopped() const { return filter_.stopped(); }
  int stop_index() const { return filter_.stop_index(); }

  // For output as ids: how many of the pushed ids belong to the text shown.
  // After a stop, those whose text ends at or before the cut (an id with the
  // cut inside it would show part of the stop string); otherwise, after Finish,
  // all.
  size_t ids_shown() const { return ids_shown_; }

 private:
  std::string Show(const std::string& text, const std::vector<size_t>& ends);

  IncrementalDecoder decoder_;
  StopFilter filter_;
  size_t pushed_ = 0;
  // Where in the text the ids end that are decoded and not shown yet.
  std::deque<size_t> ends_;
  size_t decoded_bytes_ = 0;
  size_t shown_bytes_ = 0;
  size_t ids_shown_ = 0;
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_TEXT_STREAM_H_
