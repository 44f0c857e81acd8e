#include "model/tokenizer/trie.h"

#include <algorithm>

namespace lanewise {

ByteTrie ByteTrie::Build(
    std::vector<std::pair<absl::string_view, int32_t>> entries) {
  std::stable_sort(
      entries.begin(), entries.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  // Breadth first: node i holds the entries [begin, end), equal in their first
  // `depth` bytes.
  struct Range {
    size_t begin;
    size_t end;
    size_t depth;
  };
  ByteTrie trie;
  std::vector<Range> ranges = {{0, entries.size(), 0}};
  for (size_t i = 0; i < ranges.size(); ++i) {
    auto [begin, end, depth] = ranges[i];
    while (begin < end && entries[begin].first.size() == depth) {
      trie.nodes_[i].value = entries[begin++].second;
    }
    trie.nodes_[i].first_child = static_cast<uint32_t>(trie.nodes_.size());
    while (begin < end) {
      const char label = entries[begin].first[depth];
      const size_t child = begin;
      while (begin < end && entries[begin].first[depth] == label) ++begin;
      ranges.push_back({child, begin, depth + 1});
      trie.nodes_.emplace_back();
      trie.nodes_.back().label = static_cast<uint8_t>(label);
      ++trie.nodes_[i].children;
    }
  }
  return trie;
}

bool ByteTrie::Walk(char byte, Node* node) const {
  const Entry& entry = nodes_[*node];
  const auto label = static_cast<uint8_t>(byte);
  uint32_t low = entry.first_child;
  uint32_t high = low + entry.children;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (nodes_[middle].label < label) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == entry.first_child + entry.children || nodes_[low].label != label) {
    return false;
  }
  *node = low;
  return true;
}

}  // namespace lanewise
