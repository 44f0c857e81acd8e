// Text under normalization, and where each of its bytes came from.
#ifndef LANEWISE_MODEL_TOKENIZER_ALIGNED_TEXT_H_
#define LANEWISE_MODEL_TOKENIZER_ALIGNED_TEXT_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/pieces.h"

namespace lanewise {

// `origin` is empty (not kept) or has text.size() + 1 places: of each byte and
// of the end, in the text that normalization began with.
struct AlignedText {
  std::string text;
  std::vector<size_t> origin;
  // Whether the first character came from behind the beginning. As the
  // reference counts: what replaces several characters comes from the last one.
  bool moved = false;

  // `keep`: origins begin at `base`.
  static AlignedText From(absl::string_view text, bool keep, size_t base) {
    AlignedText aligned;
    aligned.text = std::string(text);
    if (keep) {
      aligned.origin.resize(text.size() + 1);
      for (size_t i = 0; i <= text.size(); ++i) aligned.origin[i] = base + i;
    }
    return aligned;
  }
};

// Writes a new version of an AlignedText from parts of the old one.
class AlignedWriter {
 public:
  explicit AlignedWriter(AlignedText* text)
      : target_(text), old_(std::move(*text)) {
    target_->text.clear();
    target_->origin.clear();
    target_->text.reserve(old_.text.size());
  }

  // Moves the new text into the AlignedText.
  ~AlignedWriter() {
    if (!old_.origin.empty()) target_->origin.push_back(old_.origin.back());
  }
  AlignedWriter(const AlignedWriter&) = delete;
  AlignedWriter& operator=(const AlignedWriter&) = delete;

  absl::string_view old() const { return old_.text; }
  bool keeps_origin() const { return !old_.origin.empty(); }

  // Bytes [begin, end) of the old text as they are.
  void Copy(size_t begin, size_t end) {
    if (begin < end) Begin(begin);
    target_->text.append(old_.text, begin, end - begin);
    if (!old_.origin.empty()) {
      target_->origin.insert(target_->origin.end(), old_.origin.begin() + begin,
                             old_.origin.begin() + end);
    }
  }

  // New bytes for old ones that begin at `begin`, the last character of which
  // begins at `last`. Left out where the new text would become too long:
  // status() tells.
  void Insert(absl::string_view bytes, size_t begin, size_t last) {
    if (bytes.size() > kMaxNormalizedBytes ||
        target_->text.size() > kMaxNormalizedBytes - bytes.size()) {
      status_ = TooLong();
      return;
    }
    target_->text.append(bytes.data(), bytes.size());
    if (!bytes.empty()) Begin(last);
    Align(begin);
  }

  // The first character of the new text counts as coming from where the old
  // one did, whatever was removed before it.
  void StayAtBeginning() { Begin(0); }

  const absl::Status& status() const { return status_; }

  // To append to directly; Align follows.
  std::string* text() { return &target_->text; }
  void Align(size_t begin) {
    if (!target_->text.empty()) Begin(begin);
    if (old_.origin.empty()) return;
    target_->origin.resize(target_->text.size(), old_.origin[begin]);
  }

 private:
  // The first character of the new text comes from `begin`.
  void Begin(size_t begin) {
    if (begun_) return;
    begun_ = true;
    target_->moved = old_.moved || begin > 0;
  }

  AlignedText* target_;
  AlignedText old_;
  absl::Status status_;
  bool begun_ = false;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_ALIGNED_TEXT_H_
