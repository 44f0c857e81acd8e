#include "model/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kAlignment = 64;

// Pages that hold `positions` positions.
size_t PagesFor(size_t positions) {
  return positions / kKeysPerPage + (positions % kKeysPerPage != 0);
}

KvShape ShapeOf(const AttentionSpec& attention, CacheType type) {
  return {attention.kv_heads, attention.head_dim, attention.value_dim, type};
}

std::vector<KvShape> ShapesOf(const ModelSpec& spec, CacheType type) {
  std::vector<KvShape> shapes;
  for (const LayerSpec& layer : spec.layers) {
    shapes.push_back(ShapeOf(layer.attention, type));
  }
  return shapes;
}

}  // namespace

std::shared_ptr<KvPagePool> KvPagePool::CreateFor(std::vector<KvShape> shapes,
                                                  CacheType type, bool shared,
                                                  size_t max_bytes) {
  std::shared_ptr<KvPagePool> pool(new KvPagePool);
  pool->type_ = type;
  for (const KvShape& shape : shapes) {
    const size_t bytes =
        (shape.page_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    pool->layer_offsets_.push_back(shared ? 0 : pool->page_bytes_);
    pool->page_bytes_ =
        shared ? std::max(pool->page_bytes_, bytes) : pool->page_bytes_ + bytes;
  }
  pool->shapes_ = std::move(shapes);
  pool->max_pages_ = max_bytes / std::max<size_t>(pool->page_bytes_, 1);
  return pool;
}

std::shared_ptr<KvPagePool> KvPagePool::Create(const ModelSpec& spec,
                                               CacheType type,
                                               size_t max_bytes) {
  return CreateFor(ShapesOf(spec, type), type, false, max_bytes);
}

std::shared_ptr<KvPagePool> KvPagePool::CreateForOneLayer(const ModelSpec& spec,
                                                          CacheType type,
                                                          size_t max_bytes) {
  return CreateFor(ShapesOf(spec, type), type, true, max_bytes);
}

std::shared_ptr<KvPagePool> KvPagePool::CreateForMemory(const ModelSpec& spec,
                                                        CacheType type,
                                                        size_t max_bytes) {
  std::vector<KvShape> shapes;
  for (const LayerSpec& layer : spec.layers) {
    shapes.push_back(layer.cross.has_value()
                         ? ShapeOf(layer.cross->attention, type)
                         : KvShape{0, 0, 0, type});
  }
  return CreateFor(std::move(shapes), type, false, max_bytes);
}

absl::StatusOr<uint8_t*> KvPagePool::Allocate() {
  const absl::MutexLock lock(&mutex_);
  if (!free_.empty()) {
    uint8_t* page = free_.back();
    free_.pop_back();
    CountOf(page).store(1, std::memory_order_relaxed);
    return page;
  }
  if (owned_.size() >= max_pages_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "KV cache: all ", max_pages_, " pages of ", page_bytes_,
        " bytes are in use; allow more cache memory or a shorter context"));
  }
  auto page =
      hwy::AllocateAligned<uint8_t>(page_bytes_ + sizeof(ReferenceCount));
  if (page == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("KV cache: no memory for a page of ", page_bytes_,
                     " bytes; use a shorter context or a smaller cache type"));
  }
  new (page.get() + page_bytes_) ReferenceCount(1);
  free_.reserve(owned_.size() + 1);  // so that Release never allocates
  owned_.push_back(std::move(page));
  return owned_.back().get();
}

void KvPagePool::AddReference(uint8_t* page) {
  CountOf(page).fetch_add(1, std::memory_order_relaxed);
}

void KvPagePool::Release(uint8_t* page) {
  if (CountOf(page).fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const absl::MutexLock lock(&mutex_);
  free_.push_back(page);
}

size_t KvPagePool::references(const uint8_t* page) const {
  // Acquire: what others read before they let go happened before we write.
  return CountOf(const_cast<uint8_t*>(page)).load(std::memory_order_acquire);
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
      length_(std::exchange(other.length_, 0)),
      maybe_shared_(std::exchange(other.maybe_shared_, 0)) {
  other.pages_.clear();
}

KvCache& KvCache::operator=(KvCache&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(pages_, other.pages_);
  std::swap(length_, other.length_);
  std::swap(maybe_shared_, other.maybe_shared_);
  return *this;
}

absl::Status KvCache::Reserve(size_t positions) {
  const size_t had = pages_.size();
  const size_t wanted = std::max(PagesFor(positions), had);
  if (wanted > pool_->max_pages()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "KV cache: ", positions, " positions take ", wanted, " pages of ",
        pool_->page_bytes(), " bytes, more than the ", pool_->max_pages(),
        " there are; allow more cache memory or a shorter context"));
  }
  const size_t first = length_ / kKeysPerPage;
  size_t copies = 0;
  for (size_t i = first; i < maybe_shared_; ++i) {
    copies += pool_->references(pages_[i]) > 1;
  }
  // All that can fail comes first: the copies wait behind the other pages.
  pages_.reserve(wanted + copies);
  while (pages_.size() < wanted + copies) {
    absl::StatusOr<uint8_t*> page = pool_->Allocate();
    if (!page.ok()) {
      for (; pages_.size() > had; pages_.pop_back()) {
        pool_->Release(pages_.back());
      }
      return page.status();
    }
    pages_.push_back(*page);
  }
  for (size_t i = first; i < maybe_shared_ && pages_.size() > wanted; ++i) {
    if (pool_->references(pages_[i]) == 1) continue;
    std::memcpy(pages_.back(), pages_[i], pool_->page_bytes());
    pool_->Release(std::exchange(pages_[i], pages_.back()));
    pages_.pop_back();
  }
  maybe_shared_ = std::min(maybe_shared_, first);
  return absl::OkStatus();
}

KvCache KvCache::Fork() {
  KvCache fork(pool_);
  const size_t filled = PagesFor(length_);
  fork.pages_.assign(pages_.begin(), pages_.begin() + filled);
  for (uint8_t* page : fork.pages_) pool_->AddReference(page);
  fork.length_ = length_;
  fork.maybe_shared_ = filled;
  maybe_shared_ = std::max(maybe_shared_, filled);
  return fork;
}

size_t KvCache::capacity() const {
  const bool writable = length_ / kKeysPerPage >= maybe_shared_;
  return writable ? pages_.size() * kKeysPerPage : length_;
}

void KvCache::Truncate(size_t length) {
  length_ = std::min(length, length_);
  const size_t kept = PagesFor(length_);
  for (; pages_.size() > kept; pages_.pop_back()) pool_->Release(pages_.back());
  maybe_shared_ = std::min(maybe_shared_, kept);
}

size_t KvCache::shared_pages() const {
  return std::count_if(
      pages_.begin(), pages_.begin() + maybe_shared_,
      [this](const uint8_t* page) { return pool_->references(page) > 1; });
}

}  // namespace lanewise
