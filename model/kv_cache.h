// Keys and values of one sequence, in pages of 64 positions that hold all
// layers. Position arithmetic of caches is here and nowhere else.
//
//   auto pool = KvPagePool::Create(spec, CacheType::kF16, max_bytes);
//   KvCache cache(pool);
//   LANEWISE_RETURN_IF_ERROR(cache.Reserve(prompt + new_tokens));
//   …                       // the executor stores keys and advances length()
//   cache.Truncate(prompt);  // rollback
//   KvCache branch = cache.Fork();  // both go on from here, each its own way
//   LANEWISE_RETURN_IF_ERROR(branch.Reserve(prompt + 1));
//
// Caches share pages by reference count, so a prompt that many sequences begin
// with is held once. What they share is never written: Reserve gives a cache
// its own copy of the page that its next position falls into.
#ifndef LANEWISE_MODEL_KV_CACHE_H_
#define LANEWISE_MODEL_KV_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "hwy/aligned_allocator.h"
#include "model/spec.h"
#include "simd/attention.h"

namespace lanewise {

// Allocates pages of one size, counts who refers to them, and keeps freed ones
// for reuse. Thread-safe.
class KvPagePool {
 public:
  // Pages for the layers of `spec`. At most max_bytes in use at a time.
  static std::shared_ptr<KvPagePool> Create(const ModelSpec& spec,
                                            CacheType type, size_t max_bytes);

  // Pages for what the cross-attention of `spec`'s layers reads.
  static std::shared_ptr<KvPagePool> CreateForMemory(const ModelSpec& spec,
                                                     CacheType type,
                                                     size_t max_bytes);

  // Pages that hold one layer at a time: all layers are at offset 0.
  static std::shared_ptr<KvPagePool> CreateForOneLayer(const ModelSpec& spec,
                                                       CacheType type,
                                                       size_t max_bytes);

  CacheType type() const { return type_; }
  size_t page_bytes() const { return page_bytes_; }
  size_t max_pages() const { return max_pages_; }
  size_t layer_offset(size_t layer) const { return layer_offsets_[layer]; }
  const KvShape& layer_shape(size_t layer) const { return shapes_[layer]; }

  // A page with one reference, its contents undefined. RESOURCE_EXHAUSTED
  // beyond max_bytes or when memory is not to be had.
  absl::StatusOr<uint8_t*> Allocate() ABSL_LOCKS_EXCLUDED(mutex_);

  // One reference more or less; with the last one the page is free. Whoever
  // finds one reference on a page it holds is alone with it and may write.
  void AddReference(uint8_t* page);
  void Release(uint8_t* page) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t references(const uint8_t* page) const;

  // However many refer to a page, it counts once.
  size_t pages_in_use() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using ReferenceCount = std::atomic<size_t>;

  KvPagePool() = default;
  // `shared`: all layers at offset 0.
  static std::shared_ptr<KvPagePool> CreateFor(std::vector<KvShape> shapes,
                                               CacheType type, bool shared,
                                               size_t max_bytes);

  // Lies behind the page's layers.
  ReferenceCount& CountOf(uint8_t* page) const {
    return *std::launder(reinterpret_cast<ReferenceCount*>(page + page_bytes_));
  }

  CacheType type_ = CacheType::kF16;
  size_t page_bytes_ = 0;
  size_t max_pages_ = 0;
  std::vector<size_t> layer_offsets_;
  std::vector<KvShape> shapes_;

  mutable absl::Mutex mutex_;
  std::vector<hwy::AlignedFreeUniquePtr<uint8_t[]>> owned_
      ABSL_GUARDED_BY(mutex_);
  std::vector<uint8_t*> free_ ABSL_GUARDED_BY(mutex_);
};

class KvCache {
 public:
  explicit KvCache(std::shared_ptr<KvPagePool> pool);
  ~KvCache();
  KvCache(KvCache&& other) noexcept;
  KvCache& operator=(KvCache&& other) noexcept;

  // Makes room for `positions` positions in all, and those from length() on
  // writable: shared pages among them are replaced by copies. Only Reserve and
  // Fork allocate. On error what was there stays as it was.
  absl::Status Reserve(size_t positions);

  // A cache that holds the same positions in the same pages, without room for
  // more. Afterwards both need Reserve before they store: where length() is not
  // a multiple of 64, the first to do so copies the last page.
  KvCache Fork();

  // Positions that may be filled without another Reserve: length() while the
  // page it falls into may be shared.
  size_t capacity() const;

  size_t length() const { return length_; }  // positions that are filled

  // After keys and values of `count` more positions were stored.
  void Advance(size_t count) { length_ += count; }

  // Forgets the positions from `length` on, in this cache alone; pages beyond
  // go back to the pool. Reserve before storing again.
  void Truncate(size_t length);

  // Pages that another cache refers to too.
  size_t shared_pages() const;

  KvPages layer(size_t index) const {
    return {absl::MakeConstSpan(pages_), pool_->layer_offset(index)};
  }
  const KvPagePool& pool() const { return *pool_; }

 private:
  std::shared_ptr<KvPagePool> pool_;
  std::vector<uint8_t*> pages_;
  size_t length_ = 0;
  size_t maybe_shared_ = 0;  // all pages from this one on are ours alone
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_KV_CACHE_H_
