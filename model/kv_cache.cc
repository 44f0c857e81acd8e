#include "model/kv_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

std::shared_ptr<KvPagePool> KvPagePool::Create(const ModelSpec& spec,
                                               CacheType type,
                                               size_t max_bytes) {
  std::shared_ptr<KvPagePool> pool(new KvPagePool);
  pool->type_ = type;
  for (const LayerSpec& layer : spec.layers) {
    const KvShape shape{layer.attention.kv_heads, layer.attention.head_dim,
                        layer.attention.value_dim, type};
    pool->layer_offsets_.push_back(pool->page_bytes_);
    pool->shapes_.push_back(shape);
    pool->page_bytes_ +=
        (shape.page_bytes() + kAlignment - 1) / kAlignment * kAlignment;
  }
  pool->max_pages_ = max_bytes / std::max<size_t>(pool->page_bytes_, 1);
  return pool;
}

absl::StatusOr<uint8_t*> KvPagePool::Allocate() {
  const absl::MutexLock lock(&mutex_);
  if (!free_.empty()) {
    uint8_t* page = free_.back();
    free_.pop_back();
    return page;
  }
  if (owned_.size() >= max_pages_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "KV cache: all ", max_pages_, " pages of ", page_bytes_,
        " bytes are in use; allow more cache memory or a shorter context"));
  }
  auto page = hwy::AllocateAligned<uint8_t>(page_bytes_);
  if (page == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("KV cache: no memory for a page of ", page_bytes_,
                     " bytes; use a shorter context or a smaller cache type"));
  }
  free_.reserve(owned_.size() + 1);  // so that Free never allocates
  owned_.push_back(std::move(page));
  return owned_.back().get();
}

void KvPagePool::Free(uint8_t* page) {
  const absl::MutexLock lock(&mutex_);
  free_.push_back(page);
}

size_t KvPagePool::pages_in_use() const {
  const absl::MutexLock lock(&mutex_);
  return owned_.size() - free_.size();
}

KvCache::KvCache(std::shared_ptr<KvPagePool> pool) : pool_(std::move(pool)) {}

KvCache::~KvCache() {
  if (pool_ != nullptr) Truncate(0);
}

KvCache::KvCache(KvCache&& other) noexcept
    : pool_(std::move(other.pool_)),
      pages_(std::move(other.pages_)),
      length_(std::exchange(other.length_, 0)) {
  other.pages_.clear();
}

KvCache& KvCache::operator=(KvCache&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(pages_, other.pages_);
  std::swap(length_, other.length_);
  return *this;
}

absl::Status KvCache::Reserve(size_t positions) {
  const size_t wanted = (positions + kKeysPerPage - 1) / kKeysPerPage;
  const size_t had = pages_.size();
  if (wanted <= had) return absl::OkStatus();
  pages_.reserve(wanted);
  while (pages_.size() < wanted) {
    absl::StatusOr<uint8_t*> page = pool_->Allocate();
    if (!page.ok()) {
      for (; pages_.size() > had; pages_.pop_back()) {
        pool_->Free(pages_.back());
      }
      return page.status();
    }
    pages_.push_back(*page);
  }
  return absl::OkStatus();
}

void KvCache::Truncate(size_t length) {
  length_ = std::min(length, length_);
  const size_t kept = (length_ + kKeysPerPage - 1) / kKeysPerPage;
  for (; pages_.size() > kept; pages_.pop_back()) pool_->Free(pages_.back());
}

}  // namespace lanewise
