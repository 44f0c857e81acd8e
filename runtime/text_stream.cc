#include "runtime/text_stream.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "runtime/utf8.h"

namespace lanewise {

std::string IncrementalDecoder::Decode(size_t begin, size_t end) const {
  const std::string bytes =
      decode_(absl::MakeConstSpan(ids_).subspan(begin, end - begin));
  Utf8Stream stream;
  std::string text = stream.Append(bytes);
  return text + stream.Finish();
}

std::string IncrementalDecoder::Push(int32_t id, std::vector<size_t>* ends) {
  ids_.push_back(id);
  const std::string text = Decode(0, ids_.size());
  if (text == context_text_) {
    NoText(ends);
    // Perhaps an influence on the next text: the first id of all may decide
    // about a space. Beyond a bound, the id goes.
    if (ids_.size() - context_ > kMaxWaiting) ids_.pop_back();
    known_ = ids_.size();
    return "";
  }
  if (!absl::EndsWith(text, kReplacementCharacter)) {
    return Commit(ids_.size(), text, ends);
  }
  if (ids_.size() - context_ < kMaxWaiting) return "";
  return CommitAllButTail(text, ends);
}

std::string IncrementalDecoder::Finish(std::vector<size_t>* ends) {
  if (ids_.size() == context_) return "";
  const std::string text = Decode(0, ids_.size());
  if (text != context_text_) return Commit(ids_.size(), text, ends);
  NoText(ends);
  known_ = ids_.size();
  return "";
}

void IncrementalDecoder::NoText(std::vector<size_t>* ends) {
  if (ends != nullptr) ends->resize(ends->size() + waiting(), 0);
}

// Gives out the text of the window's first `end` ids, which is `text`. Those
// after the context become the next one.
std::string IncrementalDecoder::Commit(size_t end, const std::string& text,
                                       std::vector<size_t>* ends) {
  std::string out = absl::StartsWith(text, context_text_)
                        ? text.substr(context_text_.size())
                        : Decode(context_, end);
  if (ends != nullptr) FindEnds(end, text, out.size(), ends);
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(context_));
  context_ = end - context_;
  known_ = context_;
  context_text_ = Decode(0, context_);
  return out;
}

// An incomplete character at the end has at most 3 bytes, so at most 3 ids. The
// cut that leaves as many or more, and is not within an earlier character,
// shows itself: the text before it is how the whole text begins.
std::string IncrementalDecoder::CommitAllButTail(const std::string& text,
                                                 std::vector<size_t>* ends) {
  for (size_t tail = 3; tail > 0; --tail) {
    const size_t end = ids_.size() - tail;
    const std::string head = Decode(0, end);
    if (absl::StartsWith(text, head) && absl::StartsWith(head, context_text_) &&
        head.size() > context_text_.size()) {
      return Commit(end, head, ends);
    }
  }
  return Commit(ids_.size(), text, ends);
}

void IncrementalDecoder::FindEnds(size_t end, const std::string& text,
                                  size_t out_bytes,
                                  std::vector<size_t>* ends) const {
  if (known_ >= end) return;
  const size_t first = ends->size();
  ends->resize(first + end - known_, out_bytes);
  // From the back: an id within a character ends where the next one does.
  for (size_t i = end - 1; i-- > known_;) {
    const std::string head = Decode(0, i + 1);
    size_t& id_end = (*ends)[first + i - known_];
    id_end = (*ends)[first + i + 1 - known_];
    if (absl::StartsWith(text, head) && absl::StartsWith(head, context_text_)) {
      id_end = std::min(id_end, head.size() - context_text_.size());
    }
  }
}

std::string TextStream::Push(int32_t id) {
  if (stopped()) return "";
  ++pushed_;
  std::vector<size_t> ends;
  const std::string text = decoder_.Push(id, &ends);
  return Show(text, ends);
}

std::string TextStream::Finish() {
  if (stopped()) return "";
  std::vector<size_t> ends;
  const std::string text = decoder_.Finish(&ends);
  std::string out = Show(text, ends);
  if (stopped()) return out;
  out += filter_.Finish();
  shown_bytes_ = decoded_bytes_;
  ids_shown_ = pushed_;
  ends_.clear();
  return out;
}

std::string TextStream::Show(const std::string& text,
                             const std::vector<size_t>& ends) {
  for (const size_t end : ends) ends_.push_back(decoded_bytes_ + end);
  decoded_bytes_ += text.size();
  std::string out = filter_.Append(text);
  shown_bytes_ += out.size();
  while (!ends_.empty() && ends_.front() <= shown_bytes_) {
    ends_.pop_front();
    ++ids_shown_;
  }
  return out;
}

}  // namespace lanewise
