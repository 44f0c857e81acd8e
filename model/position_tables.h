// Fixed encodings of positions: sinusoids that are added to embeddings, and the
// buckets of relative positions that attention biases are looked up by. All
// without libm: the same bits everywhere.
//
//   const SinusoidTable table({512, SinusoidLayout::kHalves,
//                              SinusoidSpacing::kClosed});
//   table.Fill(/*position=*/7, row);  // row [512]
//
//   for (int64_t key = 0; key < keys; ++key) {
//     bias[key] = weights[RelativeBucket(key - query, {32, 128}) * heads + h];
//   }
#ifndef LANEWISE_MODEL_POSITION_TABLES_H_
#define LANEWISE_MODEL_POSITION_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lanewise {

// Where the sine and the cosine of frequency i stand in a row.
enum class SinusoidLayout : uint8_t {
  kHalves,       // sines first, then cosines: Marian, Pegasus, M2M-100, Whisper
  kInterleaved,  // columns 2i and 2i + 1: Vaswani et al., arXiv:1706.03762
};

// The frequencies, from 1 down to about 1 / 10000, and how they are rounded.
enum class SinusoidSpacing : uint8_t {
  // 10000^(-2i / width), never reaching 1 / 10000; angles in double: the paper,
  // Marian, Pegasus.
  kOpen,
  // 10000^(-i / (width / 2 - 1)), the last one 1 / 10000; frequencies and
  // angles rounded to float, as the models' reference does: M2M-100, Whisper.
  kClosed,
};

struct SinusoidSpec {
  size_t width = 0;
  SinusoidLayout layout = SinusoidLayout::kHalves;
  SinusoidSpacing spacing = SinusoidSpacing::kOpen;
};

// Rows of sines and cosines. A row is computed when it is asked for, so that no
// file can make a table of it. An odd width has one cosine less (kOpen), or
// zero in its last column (kClosed). Which position a token has is the caller's
// business: M2M-100 starts at its padding id + 1.
class SinusoidTable {
 public:
  explicit SinusoidTable(const SinusoidSpec& spec);

  size_t width() const { return spec_.width; }

  // row [width] of a position, at most 2^28.
  void Fill(size_t position, float* row) const;

 private:
  SinusoidSpec spec_;
  // Of each pair: a divisor of the position (kOpen) or a factor (kClosed).
  std::vector<double> scales_;
};

// Raffel et al., arXiv:1910.10683: near distances have a bucket each, farther
// ones share buckets of logarithmic width, those from max_distance on the last.
struct RelativeBuckets {
  int64_t num_buckets = 32;
  int64_t max_distance = 128;
  // Half of the buckets for keys after the query (encoders, MPNet). Otherwise
  // all of those have bucket 0 (decoders).
  bool bidirectional = true;
};

// The bucket of distance = key position − query position: in [0, num_buckets)
// whatever max_distance is, and 0 for num_buckets < 1. Edges are those of the
// reference, which computes logarithms in float.
int64_t RelativeBucket(int64_t distance, const RelativeBuckets& buckets);

// DeBERTa-v2 (He et al., arXiv:2006.03654, and the reference's code): distances
// up to bucket_size / 2 stay as they are, farther ones shrink logarithmically
// so that max_position − 1 becomes 2 · (bucket_size / 2) − 1; what is farther
// still goes on growing, and the caller clamps it to its table. Odd: f(−d) =
// −f(d). Edges as in RelativeBucket. For sizes that leave no room (bucket_size
// < 4 or max_position <= bucket_size / 2 + 1) distances are only clamped to
// ±(bucket_size − 1).
int64_t LogBucket(int64_t distance, int64_t bucket_size, int64_t max_position);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_POSITION_TABLES_H_
