// A set of byte strings to walk down byte by byte: for the longest match, or
// all matches, at a place in a text.
//
//   ByteTrie::Node node = ByteTrie::kRoot;
//   while (pos < text.size() && trie.Walk(text[pos++], &node)) {
//     if (trie.value(node) >= 0) …  // a key ends here
//   }
#ifndef LANEWISE_MODEL_TOKENIZER_TRIE_H_
#define LANEWISE_MODEL_TOKENIZER_TRIE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace lanewise {

class ByteTrie {
 public:
  using Node = uint32_t;
  static constexpr Node kRoot = 0;

  // Values are not negative. Of equal keys the last one counts. The views are
  // needed only during the call.
  static ByteTrie Build(
      std::vector<std::pair<absl::string_view, int32_t>> entries);

  // To the child for `byte`; false, and *node as it was, when there is none.
  bool Walk(char byte, Node* node) const;

  // Of the key that ends at the node, or -1.
  int32_t value(Node node) const { return nodes_[node].value; }

 private:
  struct Entry {
    uint32_t first_child = 0;  // children are neighbours, labels ascend
    uint16_t children = 0;
    uint8_t label = 0;
    int32_t value = -1;
  };
  std::vector<Entry> nodes_ = {Entry{}};
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_TRIE_H_
