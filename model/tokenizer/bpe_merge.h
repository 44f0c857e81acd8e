// The merge loop of byte-pair encoding, shared by merges by rank (bpe.h) and
// by score (sentencepiece.h): a heap of candidate pairs over a linked list of
// symbols, O(n log n) for n symbols, no recursion.
#ifndef LANEWISE_MODEL_TOKENIZER_BPE_MERGE_H_
#define LANEWISE_MODEL_TOKENIZER_BPE_MERGE_H_

#include <cstdint>
#include <queue>
#include <vector>

namespace lanewise {

struct BpeSymbol {
  int32_t id;      // -1: not in the vocabulary
  uint32_t begin;  // bytes of the word
  uint32_t size;   // 0 once it was merged into its left neighbour
  int32_t previous = -1;
  int32_t next = -1;
};

struct BpeMerge {
  int32_t rank;  // the lowest merges first, of equals the leftmost; not < 0
  int32_t id;    // of the merged symbol
};

// Merges until no pair is left. `find(left, right, &merge)` tells whether two
// neighbours may merge. Dead symbols keep size 0.
template <typename Find>
void MergeSymbols(std::vector<BpeSymbol>* symbols, Find find) {
  struct Candidate {
    uint64_t key;   // rank, then place of the left symbol
    int32_t id;     // of the merged symbol
    uint32_t size;  // of both: tells a candidate that is out of date
    bool operator<(const Candidate& other) const {  // for a heap of the lowest
      return key > other.key;
    }
  };
  std::vector<BpeSymbol>& list = *symbols;
  std::vector<Candidate> initial;
  const auto candidate = [&](int32_t left, int32_t right, Candidate* out) {
    BpeMerge merge;
    if (left < 0 || right < 0 || !find(list[left], list[right], &merge)) {
      return false;
    }
    *out = {
        static_cast<uint64_t>(merge.rank) << 32 | static_cast<uint32_t>(left),
        merge.id, list[left].size + list[right].size};
    return true;
  };
  Candidate made;
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].previous = static_cast<int32_t>(i) - 1;
    list[i].next = i + 1 < list.size() ? static_cast<int32_t>(i) + 1 : -1;
    if (list[i].next >= 0 &&
        candidate(static_cast<int32_t>(i), list[i].next, &made)) {
      initial.push_back(made);
    }
  }
  std::priority_queue<Candidate> heap(std::less<Candidate>(),
                                      std::move(initial));
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    const auto index = static_cast<int32_t>(top.key & 0xFFFFFFFF);
    BpeSymbol& left = list[index];
    if (left.size == 0 || left.next < 0) continue;
    BpeSymbol& right = list[left.next];
    if (left.size + right.size != top.size) continue;
    left.id = top.id;
    left.size = top.size;
    left.next = right.next;
    right.size = 0;
    if (left.next >= 0) list[left.next].previous = index;
    if (candidate(left.previous, index, &made)) heap.push(made);
    if (candidate(index, left.next, &made)) heap.push(made);
  }
}

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_BPE_MERGE_H_
