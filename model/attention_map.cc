#include "model/attention_map.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "hwy/aligned_allocator.h"
#include "simd/status_macros.h"
#include "simd/types.h"

namespace lanewise {
namespace {

constexpr size_t kAlignment = 64;

void StoreOne(CacheType type, uint8_t* at) {
  if (type == CacheType::kF32) {
    const float one = 1.0f;
    std::memcpy(at, &one, sizeof(one));
    return;
  }
  const uint16_t one =
      type == CacheType::kF16 ? F16FromF32(1.0f) : BF16FromF32(1.0f);
  std::memcpy(at, &one, sizeof(one));
}

// Pages with the keys of a sequence and unit vectors as its values.
class UnitValues {
 public:
  // `shape`: of the sequence's own pages.
  absl::Status Fill(const KvShape& shape, const AttentionSequence& sequence) {
    shape_ = shape;
    shape_.v_dim = sequence.keys;
    const size_t pages = (sequence.keys + kKeysPerPage - 1) / kKeysPerPage;
    const size_t page_bytes =
        (shape_.page_bytes() + kAlignment - 1) / kAlignment * kAlignment;
    memory_ = hwy::AllocateAligned<uint8_t>(pages * page_bytes);
    if (memory_ == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("attention map: no memory for ", pages * page_bytes,
                       " bytes; use a shorter text"));
    }
    std::memset(memory_.get(), 0, pages * page_bytes);
    for (size_t page = 0; page < pages; ++page) {
      pages_.push_back(memory_.get() + page * page_bytes);
      // A window may have left pages behind: their keys are masked.
      const uint8_t* source = sequence.kv.pages[page];
      if (source != nullptr) {
        FillPage(shape, source + sequence.kv.offset, page);
      }
    }
    return absl::OkStatus();
  }

  const KvShape& shape() const { return shape_; }
  KvPages pages() const { return {absl::MakeConstSpan(pages_), 0}; }

 private:
  void FillPage(const KvShape& from, const uint8_t* source, size_t page) {
    const size_t element = BytesOf(from.type);
    const size_t key_bytes = kKeysPerPage * from.qk_dim * element;
    const size_t from_head = key_bytes + kKeysPerPage * from.v_dim * element;
    const size_t to_head = key_bytes + kKeysPerPage * shape_.v_dim * element;
    for (size_t head = 0; head < from.kv_heads; ++head) {
      uint8_t* out = pages_[page] + head * to_head;
      std::memcpy(out, source + head * from_head, key_bytes);
      for (size_t i = 0; i < kKeysPerPage; ++i) {
        const size_t key = page * kKeysPerPage + i;
        if (key >= shape_.v_dim) break;
        StoreOne(from.type,
                 out + key_bytes + (i * shape_.v_dim + key) * element);
      }
    }
  }

  KvShape shape_;
  hwy::AlignedFreeUniquePtr<uint8_t[]> memory_;
  std::vector<uint8_t*> pages_;
};

bool IsChosen(const std::vector<size_t>& chosen, size_t index) {
  return chosen.empty() ||
         std::find(chosen.begin(), chosen.end(), index) != chosen.end();
}

}  // namespace

absl::StatusOr<std::vector<float>> AttentionWeights(
    const Context& context, const AttentionParams& params,
    const AttentionSequence& sequence) {
  if (sequence.keys > kMaxMappedKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("attention map: expected at most ", kMaxMappedKeys,
                     " keys, found ", sequence.keys));
  }
  UnitValues values;
  LANEWISE_RETURN_IF_ERROR(values.Fill(params.kv, sequence));
  AttentionParams pass = params;
  pass.kv = values.shape();
  // [rows, heads, keys], as attention gives them.
  const size_t stride = params.heads * sequence.keys;
  std::vector<float> out(sequence.rows * stride);
  AttentionSequence mapped = sequence;
  mapped.kv = values.pages();
  mapped.out = out.data();
  mapped.out_stride = stride;
  const size_t floats = AttentionScratchFloats(context, pass, {&mapped, 1});
  auto scratch = hwy::AllocateAligned<float>(std::max<size_t>(floats, 1));
  if (scratch == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("attention map: no memory for ", floats,
                     " values; use a shorter text"));
  }
  Attention(context, pass, {&mapped, 1}, scratch.get());
  std::vector<float> weights(out.size());
  for (size_t row = 0; row < sequence.rows; ++row) {
    for (size_t head = 0; head < params.heads; ++head) {
      std::copy_n(
          out.data() + row * stride + head * sequence.keys, sequence.keys,
          weights.data() + (head * sequence.rows + row) * sequence.keys);
    }
  }
  return weights;
}

std::function<void(const Executor::AttentionCall& call)>
AttentionMapRecorder::observer() {
  return [this](const Executor::AttentionCall& call) { Record(call); };
}

void AttentionMapRecorder::Record(const Executor::AttentionCall& call) {
  if (!status_.ok() || call.sequences.empty() ||
      !IsChosen(choice_.layers, call.layer)) {
    return;
  }
  const AttentionSequence& sequence = call.sequences.front();
  absl::StatusOr<std::vector<float>> weights =
      AttentionWeights(context_, *call.params, sequence);
  if (!weights.ok()) {
    status_ = weights.status();
    return;
  }
  AttentionMap map;
  map.layer = call.layer;
  map.cross = call.cross;
  map.rows = sequence.rows;
  map.keys = sequence.keys;
  const size_t floats = map.rows * map.keys;
  for (size_t head = 0; head < call.params->heads; ++head) {
    if (!IsChosen(choice_.heads, head)) continue;
    map.heads.push_back(head);
    map.weights.insert(map.weights.end(), weights->begin() + head * floats,
                       weights->begin() + (head + 1) * floats);
  }
  maps_.push_back(std::move(map));
}

}  // namespace lanewise
