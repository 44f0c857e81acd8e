#include "simd/attention_block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/attention_block.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// after foreach_target.h
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "simd/attention-inl.h"
#include "simd/dispatch.h"
#include "simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lanewise {
namespace HWY_NAMESPACE {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Exp of math-inl.h for x <= 0 and NaN, the same bits in two thirds of the
// operations: n is at least −126, so 2^n is one factor, and NaN comes through.
HWY_INLINE VF ExpNotPositive(VF x) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF lowest = hn::Set(d, -87.33654475f);
  const auto is_low = hn::Lt(x, lowest);
  const VF safe = hn::IfThenElse(is_low, lowest, x);
  const VF n = hn::Round(hn::Mul(safe, hn::Set(d, 1.44269504088896341f)));
  VF r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), safe);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  VF p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(hn::Mul(r, r), p, r);
  p = hn::Add(p, hn::Set(d, 1.0f));
  const auto exponent =
      hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127)));
  p = hn::Mul(p, hn::BitCast(d, exponent));
  return hn::IfThenZeroElse(is_low, p);
}

// e^x by the vector polynomial, so that scalars and vectors agree.
HWY_INLINE float ExpOne(float x) {
  const hn::CappedTag<float, 1> d;
  return hn::GetLane(Exp(d, hn::Set(d, x)));
}

HWY_INLINE void ExpAll(float* HWY_RESTRICT x) {
  const DF d;
  for (size_t c = 0; c < kAttentionLanes; c += Lanes()) {
    hn::StoreU(Exp(d, hn::LoadU(d, x + c)), d, x + c);
  }
}

HWY_INLINE float TreeSum(const float* HWY_RESTRICT lanes) {
  float sums[8];
  for (size_t i = 0; i < 8; ++i) sums[i] = lanes[i] + lanes[i + 8];
  for (size_t width = 4; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
  }
  return sums[0];
}

// The part of a tile of 64 keys that one row sees.
struct TileRow {
  size_t begin;  // keys within the tile; begin >= end: none
  size_t end;
  size_t head;
  size_t row;  // within the sequence
};

// The tile that a group of rows works on.
struct Tile {
  size_t first_key;
  size_t panel_begin;  // panels with a key that some row of the group sees
  size_t panel_end;
};

// The rows first … first + R of the block.
template <size_t R>
HWY_INLINE void RowsOfTile(const AttentionBlock& block, size_t first,
                           size_t first_key, TileRow* HWY_RESTRICT rows) {
  const size_t group = block.group();
  size_t row = block.first_row + first / group;
  size_t in_group = first % group;
  for (size_t r = 0; r < R; ++r) {
    size_t begin, end;
    block.VisibleKeys(block.sequence->position + row, &begin, &end);
    rows[r].head = block.kv_head * group + in_group;
    rows[r].row = row;
    rows[r].begin = begin > first_key ? begin - first_key : 0;
    rows[r].end =
        end > first_key ? HWY_MIN(end - first_key, kKeysPerPage) : size_t{0};
    if (++in_group == group) {
      in_group = 0;
      ++row;
    }
  }
}

// Soft-cap, slope and bias of the scores of one row, in place.
HWY_NOINLINE void AdjustRow(const AttentionBlock& block, const Tile& tile,
                            const TileRow& row, float* HWY_RESTRICT s) {
  const AttentionParams& params = *block.params;
  const DF d;
  HWY_ALIGN float bias[kKeysPerPage] = {};
  if (params.bias != nullptr) {
    params.bias->Fill(block.sequence_index, row.head, row.row, tile.first_key,
                      bias);
  }
  const size_t stop = tile.panel_end * kAttentionLanes;
  for (size_t j = tile.panel_begin * kAttentionLanes; j < stop; j += Lanes()) {
    VF score = hn::LoadU(d, s + j);
    if (params.softcap > 0.0f) {
      const VF cap = hn::Set(d, params.softcap);
      score = hn::Mul(cap, Tanh(d, hn::Div(score, cap)));
    }
    if (params.alibi_slopes != nullptr) {
      const VF key = hn::Iota(d, static_cast<float>(tile.first_key + j));
      score = hn::Add(score,
                      hn::Mul(hn::Set(d, params.alibi_slopes[row.head]), key));
    }
    if (params.bias != nullptr) {
      score = hn::Add(score, hn::LoadU(d, bias + j));
    }
    hn::StoreU(score, d, s + j);
  }
}

// Makes masked scores −inf, in place. Returns the largest score.
HWY_INLINE float MaskRow(const Tile& tile, const TileRow& row,
                         float* HWY_RESTRICT s) {
  const DF d;
  const size_t n = Lanes();
  const VF nothing = hn::Set(d, kNothing);
  VF largest = nothing;
  const size_t start = tile.panel_begin * kAttentionLanes;
  const size_t stop = tile.panel_end * kAttentionLanes;
  if (row.begin <= start && row.end >= stop) {
    for (size_t j = start; j < stop; j += n) {
      largest = hn::Max(largest, hn::LoadU(d, s + j));
    }
    return hn::ReduceMax(d, largest);
  }
  const VF begin = hn::Set(d, static_cast<float>(row.begin));
  const VF end = hn::Set(d, static_cast<float>(row.end));
  for (size_t j = start; j < stop; j += n) {
    const VF index = hn::Iota(d, static_cast<float>(j));
    const auto seen = hn::And(hn::Ge(index, begin), hn::Lt(index, end));
    const VF score = hn::IfThenElse(seen, hn::LoadU(d, s + j), nothing);
    largest = hn::Max(largest, score);
    hn::StoreU(score, d, s + j);
  }
  return hn::ReduceMax(d, largest);
}

// s becomes exp(s − m), and l = l · factor + those, by lane.
HWY_INLINE void WeighRow(const Tile& tile, float m, float factor,
                         float* HWY_RESTRICT s, float* HWY_RESTRICT l) {
  const DF d;
  const size_t n = Lanes();
  const VF vm = hn::Set(d, m);
  const VF vfactor = hn::Set(d, factor);
  for (size_t c = 0; c < kAttentionLanes; c += n) {
    VF sum = hn::Mul(hn::LoadU(d, l + c), vfactor);
    for (size_t panel = tile.panel_begin; panel < tile.panel_end; ++panel) {
      float* HWY_RESTRICT at = s + panel * kAttentionLanes + c;
      const VF weight = ExpNotPositive(hn::Sub(hn::LoadU(d, at), vm));
      hn::StoreU(weight, d, at);
      sum = hn::Add(sum, weight);
    }
    hn::StoreU(sum, d, l + c);
  }
}

// Adds one tile to the states of rows first … first + R of the block.
// q: [qk_dim][R]; k, v: of the page and kv head.
template <size_t R, class T>
HWY_NOINLINE void AttendTile(const AttentionBlock& block, size_t first,
                             size_t first_key, const float* HWY_RESTRICT q,
                             const T* HWY_RESTRICT k, const T* HWY_RESTRICT v,
                             const AttentionState& state) {
  const AttentionParams& params = *block.params;
  const size_t v_dim = params.kv.v_dim;
  TileRow rows[R];
  size_t any_begin = kKeysPerPage, any_end = 0;  // keys that some row sees
  size_t all_begin = 0, all_end = kKeysPerPage;  // keys that all rows see
  RowsOfTile<R>(block, first, first_key, rows);
  for (size_t r = 0; r < R; ++r) {
    if (rows[r].begin < rows[r].end) {
      any_begin = HWY_MIN(any_begin, rows[r].begin);
      any_end = HWY_MAX(any_end, rows[r].end);
    }
    all_begin = HWY_MAX(all_begin, rows[r].begin);
    all_end = HWY_MIN(all_end, rows[r].end);
  }
  if (any_begin >= any_end) return;
  const Tile tile = {first_key, any_begin / kAttentionLanes,
                     (any_end + kAttentionLanes - 1) / kAttentionLanes};

  HWY_ALIGN float s[R * kKeysPerPage];
  ScorePage<R>(q, k, params.kv.qk_dim, params.scale, tile.panel_begin,
               tile.panel_end, s);
  HWY_ALIGN float factor[kAttentionLanes] = {};
  float* HWY_RESTRICT m = state.m + first;
  const bool adjust = params.softcap > 0.0f || params.alibi_slopes != nullptr ||
                      params.bias != nullptr;
  for (size_t r = 0; r < R; ++r) {
    float* HWY_RESTRICT scores = s + r * kKeysPerPage;
    if (adjust) AdjustRow(block, tile, rows[r], scores);
    const float largest = MaskRow(tile, rows[r], scores);
    if (largest == kNothing) rows[r].end = rows[r].begin = 0;  // nothing seen
    const float updated = largest > m[r] ? largest : m[r];
    factor[r] = updated == m[r] ? 0.0f : m[r] - updated;
    m[r] = updated;
  }
  ExpAll(factor);
  for (size_t r = 0; r < R; ++r) {
    if (rows[r].begin >= rows[r].end) {
      all_begin = kKeysPerPage;
      continue;
    }
    WeighRow(tile, m[r], factor[r], s + r * kKeysPerPage,
             state.l + (first + r) * kAttentionLanes);
  }

  float* HWY_RESTRICT o = state.o + first * state.stride;
  all_end = HWY_MAX(all_begin, all_end);
  for (size_t r = 0; r < R; ++r) {  // keys before those that all rows see
    const size_t end = HWY_MIN(rows[r].end, all_begin);
    if (rows[r].begin >= end) continue;
    ValuePage<1>(s + r * kKeysPerPage, factor + r, v, v_dim, rows[r].begin, end,
                 o + r * state.stride, state.stride);
    factor[r] = 1.0f;
  }
  if (all_begin < all_end) {
    ValuePage<R>(s, factor, v, v_dim, all_begin, all_end, o, state.stride);
    for (size_t r = 0; r < R; ++r) factor[r] = 1.0f;
  }
  for (size_t r = 0; r < R; ++r) {  // keys behind them
    const size_t begin = HWY_MAX(rows[r].begin, all_end);
    if (begin >= rows[r].end) continue;
    ValuePage<1>(s + r * kKeysPerPage, factor + r, v, v_dim, begin, rows[r].end,
                 o + r * state.stride, state.stride);
  }
}

template <class T>
void AttendTileOf(size_t group_rows, const AttentionBlock& block, size_t first,
                  size_t first_key, const float* q, const T* k, const T* v,
                  const AttentionState& state) {
  switch (group_rows) {
    case 1:
      return AttendTile<1>(block, first, first_key, q, k, v, state);
    case 2:
      return AttendTile<HWY_MIN(kMaxTileRows, size_t{2})>(
          block, first, first_key, q, k, v, state);
    case 3:
      return AttendTile<HWY_MIN(kMaxTileRows, size_t{3})>(
          block, first, first_key, q, k, v, state);
    case 4:
      return AttendTile<HWY_MIN(kMaxTileRows, size_t{4})>(
          block, first, first_key, q, k, v, state);
    case 5:
      return AttendTile<HWY_MIN(kMaxTileRows, size_t{5})>(
          block, first, first_key, q, k, v, state);
    default:
      return AttendTile<kMaxTileRows>(block, first, first_key, q, k, v, state);
  }
}

// The rows of a block in groups of at most kMaxTileRows, as even as possible.
struct Groups {
  explicit Groups(size_t rows)
      : count((rows + kMaxTileRows - 1) / kMaxTileRows),
        small(rows / count),
        large(rows % count) {}
  size_t Rows(size_t group) const { return small + (group < large ? 1 : 0); }

  size_t count;
  size_t small;
  size_t large;  // groups with one row more
};

// q of the block as [qk_dim][rows] per group, one group after the other.
void PackQueries(const AttentionBlock& block, float* HWY_RESTRICT packed) {
  const size_t dims = block.params->kv.qk_dim;
  const size_t heads = block.group();
  const Groups groups(block.flat_rows());
  size_t flat = 0;
  for (size_t g = 0; g < groups.count; ++g) {
    const size_t rows = groups.Rows(g);
    for (size_t r = 0; r < rows; ++r, ++flat) {
      const float* HWY_RESTRICT q =
          block.sequence->q +
          (block.first_row + flat / heads) * block.sequence->q_stride +
          (block.kv_head * heads + flat % heads) * dims;
      for (size_t i = 0; i < dims; ++i) packed[i * rows + r] = q[i];
    }
    packed += rows * dims;
  }
}

void ResetState(const AttentionBlock& block, const AttentionState& state) {
  const size_t rows = block.flat_rows();
  for (size_t r = 0; r < rows; ++r) state.m[r] = kNothing;
  std::memset(state.l, 0, rows * kAttentionLanes * sizeof(float));
  std::memset(state.o, 0, rows * state.stride * sizeof(float));
}

// Keys [begin, end) of the block that some row sees.
void VisibleKeysOfBlock(const AttentionBlock& block, size_t* begin,
                        size_t* end) {
  const size_t position = block.sequence->position + block.first_row;
  size_t unused;
  block.VisibleKeys(position, begin, &unused);
  block.VisibleKeys(position + block.rows - 1, &unused, end);
}

template <class T>
void AttendSegment(const AttentionBlock& block, size_t segment,
                   const float* HWY_RESTRICT packed,
                   const AttentionState& state) {
  const KvShape& shape = block.params->kv;
  ResetState(block, state);
  size_t begin, end;
  VisibleKeysOfBlock(block, &begin, &end);
  begin =
      HWY_MAX(begin / kKeysPerPage * kKeysPerPage, segment * kKeysPerSegment);
  end = HWY_MIN(end, (segment + 1) * kKeysPerSegment);
  const Groups groups(block.flat_rows());
  for (size_t key = begin; key < end; key += kKeysPerPage) {
    const T* k = reinterpret_cast<const T*>(
                     block.sequence->kv.pages[key / kKeysPerPage] +
                     block.sequence->kv.offset) +
                 block.kv_head * kKeysPerPage * (shape.qk_dim + shape.v_dim);
    const T* v = k + kKeysPerPage * shape.qk_dim;
    size_t first = 0;
    for (size_t g = 0; g < groups.count; ++g) {
      const size_t rows = groups.Rows(g);
      AttendTileOf<T>(rows, block, first, key, packed + first * shape.qk_dim, k,
                      v, state);
      first += rows;
    }
  }
}

// Adds the later keys of `from` to `to`.
void MergeStates(const AttentionBlock& block, const AttentionState& from,
                 const AttentionState& to) {
  const DF d;
  const size_t n = Lanes();
  const size_t rows = block.flat_rows();
  for (size_t r = 0; r < rows; ++r) {
    if (from.m[r] == kNothing) continue;
    const float m = from.m[r] > to.m[r] ? from.m[r] : to.m[r];
    const VF old_factor = hn::Set(d, ExpOne(to.m[r] - m));
    const VF new_factor = hn::Set(d, ExpOne(from.m[r] - m));
    to.m[r] = m;
    const auto merge = [&](float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                           size_t size) HWY_ATTR {
      for (size_t i = 0; i < size; i += n) {
        const VF kept = hn::Mul(hn::LoadU(d, a + i), old_factor);
        hn::StoreU(hn::MulAdd(hn::LoadU(d, b + i), new_factor, kept), d, a + i);
      }
    };
    merge(to.l + r * kAttentionLanes, from.l + r * kAttentionLanes,
          kAttentionLanes);
    merge(to.o + r * to.stride, from.o + r * from.stride, to.stride);
  }
}

// Merges the sinks and writes out = o / l.
void FinishBlock(const AttentionBlock& block, const AttentionState& state) {
  const DF d;
  const size_t n = Lanes();
  const size_t v_dim = block.params->kv.v_dim;
  const size_t heads = block.group();
  const size_t rows = block.flat_rows();
  for (size_t r = 0; r < rows; ++r) {
    const size_t head = block.kv_head * heads + r % heads;
    float* HWY_RESTRICT out =
        block.sequence->out +
        (block.first_row + r / heads) * block.sequence->out_stride +
        head * v_dim;
    if (state.m[r] == kNothing) {
      std::memset(out, 0, v_dim * sizeof(float));
      continue;
    }
    float* HWY_RESTRICT l = state.l + r * kAttentionLanes;
    float factor = 1.0f;
    if (block.params->sinks != nullptr) {
      const float sink = block.params->sinks[head];
      const float m = sink > state.m[r] ? sink : state.m[r];
      factor = ExpOne(state.m[r] - m);
      for (size_t i = 0; i < kAttentionLanes; ++i) l[i] *= factor;
      l[0] += ExpOne(sink - m);
    }
    const VF sum = hn::Set(d, TreeSum(l));
    const VF vfactor = hn::Set(d, factor);
    const float* HWY_RESTRICT o = state.o + r * state.stride;
    for (size_t c = 0; c < v_dim; c += n) {
      const VF value = hn::Div(hn::Mul(hn::LoadU(d, o + c), vfactor), sum);
      if (v_dim < n) {
        hn::StoreN(value, d, out, v_dim);
      } else {
        hn::StoreU(value, d, out + HWY_MIN(c, v_dim - n));
      }
    }
  }
}

// Scratch of a block: packed queries, then two states.
float* StateMemory(const AttentionBlock& block, size_t index) {
  return block.scratch +
         RoundUpToLanes(block.flat_rows() * block.params->kv.qk_dim) +
         index * block.state_floats();
}

template <class T>
void AttendBlockOf(const AttentionBlock& block) {
  const size_t rows = block.flat_rows();
  const size_t v_dim = block.params->kv.v_dim;
  PackQueries(block, block.scratch);
  const AttentionState total(StateMemory(block, 0), rows, v_dim);
  if (block.segment_begin == block.segment_end) ResetState(block, total);
  for (size_t i = block.segment_begin; i < block.segment_end; ++i) {
    float* memory = block.partial != nullptr
                        ? block.partial + i * block.state_floats()
                        : StateMemory(block, i == block.segment_begin ? 0 : 1);
    const AttentionState state(memory, rows, v_dim);
    AttendSegment<T>(block, i, block.scratch, state);
    if (block.partial == nullptr && i != block.segment_begin) {
      MergeStates(block, state, total);
    }
  }
  if (block.partial == nullptr) FinishBlock(block, total);
}

void AttendBlockImpl(const AttentionBlock& block) {
  switch (block.params->kv.type) {
    case CacheType::kF32:
      return AttendBlockOf<float>(block);
    case CacheType::kF16:
      return AttendBlockOf<hwy::float16_t>(block);
    case CacheType::kBF16:
      return AttendBlockOf<hwy::bfloat16_t>(block);
  }
}

// Merges the states of all segments of a block that several tasks computed.
void MergeBlockImpl(const AttentionBlock& block) {
  const size_t rows = block.flat_rows();
  const size_t v_dim = block.params->kv.v_dim;
  const size_t floats = block.state_floats();
  const AttentionState total(block.partial + block.segment_begin * floats, rows,
                             v_dim);
  for (size_t i = block.segment_begin + 1; i < block.segment_end; ++i) {
    MergeStates(block, AttentionState(block.partial + i * floats, rows, v_dim),
                total);
  }
  FinishBlock(block, total);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lanewise
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lanewise {
HWY_EXPORT(AttendBlockImpl);
HWY_EXPORT(MergeBlockImpl);

void AttendBlock(const Target& target, const AttentionBlock& block) {
  LANEWISE_DISPATCH(target, AttendBlockImpl)(block);
}

void MergeBlock(const Target& target, const AttentionBlock& block) {
  LANEWISE_DISPATCH(target, MergeBlockImpl)(block);
}

}  // namespace lanewise
#endif  // HWY_ONCE
