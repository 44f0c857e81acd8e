// Tokens that are found in the text before any other stage sees it: control
// tokens, and those a user added.
#ifndef LANEWISE_MODEL_TOKENIZER_ADDED_TOKENS_H_
#define LANEWISE_MODEL_TOKENIZER_ADDED_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/trie.h"

namespace lanewise {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // swallows white space on its left
  bool rstrip = false;       // … on its right
  bool normalized = false;   // found in the normalized text
  bool special = false;      // a control token
  // What decoding writes: the content, normalized where the token is. Set by
  // AddedTokens::Create.
  std::string decoded = {};
};

// A token found in the text, or (id -1) the text between.
struct Segment {
  size_t begin;
  size_t end;
  int32_t id;
};

class AddedTokens {
 public:
  // The longest content; each place of a text may look that far ahead.
  static constexpr size_t kMaxContent = 1024;

  // `normalizer` (may be null) is applied to the contents of normalized
  // tokens. Of two tokens with one content or id the last one counts. Errors
  // (beginning with `where`): a content that is too long.
  static absl::StatusOr<AddedTokens> Create(std::vector<AddedToken> tokens,
                                            const Normalizer* normalizer,
                                            absl::string_view where);

  // Whether a control token may stand in [begin, end) of the text.
  using Allow = absl::FunctionRef<bool(size_t begin, size_t end)>;

  // Cuts `text` at the tokens of one kind: leftmost first, the longest of
  // them. Segments cover the text; none that is text is empty.
  std::vector<Segment> Split(absl::string_view text, bool normalized,
                             Allow allow_special) const;

  bool empty(bool normalized) const { return set(normalized).empty; }
  bool has_special_normalized() const { return has_special_normalized_; }

  const AddedToken* Find(int32_t id) const;  // null when absent
  const AddedToken* Find(absl::string_view content) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  struct Set {
    ByteTrie trie;  // values: places in tokens_
    bool empty = true;
    bool starts[256] = {};  // first bytes of keys
  };
  struct Found {
    const AddedToken* token = nullptr;
    size_t end = 0;
  };

  const Set& set(bool normalized) const {
    return normalized ? normalized_ : raw_;
  }
  Found FindAt(const Set& set, absl::string_view text, size_t pos,
               Allow allow_special) const;

  std::vector<AddedToken> tokens_;
  absl::flat_hash_map<int32_t, size_t> by_id_;
  absl::flat_hash_map<std::string, size_t> by_content_;
  Set raw_;
  Set normalized_;
  bool has_special_normalized_ = false;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_ADDED_TOKENS_H_
