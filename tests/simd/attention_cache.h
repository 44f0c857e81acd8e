// A paged cache to feed attention from, and a call with scratch memory.
#ifndef LANEWISE_TESTS_SIMD_ATTENTION_CACHE_H_
#define LANEWISE_TESTS_SIMD_ATTENTION_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "simd/attention.h"
#include "simd/context.h"

namespace lanewise {

// Pages of a cache, 64-byte aligned, with 0xFF bytes (NaN in every type) where
// nothing was stored. Nothing lies behind the layer, so that the address
// sanitizer sees a read beyond it.
class TestCache {
 public:
  TestCache(const KvShape& shape, size_t keys, size_t offset = 64)
      : offset_(offset) {
    const size_t bytes = offset + shape.page_bytes();
    for (size_t i = 0; i * kKeysPerPage < keys; ++i) {
      memory_.emplace_back(
          static_cast<uint8_t*>(::operator new (bytes, std::align_val_t{64})));
      std::memset(memory_.back().get(), 0xFF, bytes);
      pages_.push_back(memory_.back().get());
    }
  }
  KvPages view() const { return {pages_, offset_}; }
  uint8_t* layer(size_t page) const { return pages_[page] + offset_; }

 private:
  struct Free {
    void operator()(uint8_t* page) const {
      ::operator delete (page, std::align_val_t{64});
    }
  };
  size_t offset_;
  std::vector<std::unique_ptr<uint8_t[], Free>> memory_;
  std::vector<uint8_t*> pages_;
};

inline void RunSequences(const Context& context, const AttentionParams& params,
                         const std::vector<AttentionSequence>& sequences) {
  const size_t floats = AttentionScratchFloats(context, params, sequences);
  std::vector<float> memory(floats + 16,
                            std::numeric_limits<float>::quiet_NaN());
  const uintptr_t address = reinterpret_cast<uintptr_t>(memory.data());
  Attention(context, params, sequences,
            memory.data() + (64 - address % 64) % 64 / sizeof(float));
}

}  // namespace lanewise

#endif  // LANEWISE_TESTS_SIMD_ATTENTION_CACHE_H_
