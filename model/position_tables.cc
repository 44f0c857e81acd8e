#include "model/position_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simd/scalar_math.h"

namespace lanewise {
namespace {

constexpr double kBase = 10000.0;

// Correctly rounded but for rare cases next to a tie, as good float libraries.
float LogFloat(float x) { return static_cast<float>(Log(x)); }

int64_t Magnitude(int64_t x) {
  return x < 0 ? -std::max(x, -std::numeric_limits<int64_t>::max()) : x;
}

std::vector<double> Scales(const SinusoidSpec& spec) {
  const bool closed = spec.spacing == SinusoidSpacing::kClosed;
  const size_t pairs = closed ? spec.width / 2 : (spec.width + 1) / 2;
  std::vector<double> scales(pairs);
  // The exponent's step, as the reference rounds it.
  const float step =
      pairs < 2 ? 0.0f
                : static_cast<float>(-Log(kBase) /
                                     (static_cast<double>(pairs) - 1.0));
  for (size_t i = 0; i < pairs; ++i) {
    if (closed) {
      scales[i] = static_cast<float>(Exp(static_cast<float>(i) * step));
    } else {
      scales[i] = Pow(
          kBase, static_cast<double>(2 * i) / static_cast<double>(spec.width));
    }
  }
  return scales;
}

}  // namespace

SinusoidTable::SinusoidTable(const SinusoidSpec& spec)
    : spec_(spec), scales_(Scales(spec)) {}

void SinusoidTable::Fill(size_t position, float* row) const {
  const size_t width = spec_.width;
  if (width == 0) return;
  row[width - 1] = 0.0f;
  const size_t pairs = scales_.size();
  for (size_t i = 0; i < pairs; ++i) {
    const double angle =
        spec_.spacing == SinusoidSpacing::kClosed
            ? static_cast<float>(position) * static_cast<float>(scales_[i])
            : static_cast<double>(position) / scales_[i];
    const bool halves = spec_.layout == SinusoidLayout::kHalves;
    const size_t sine = halves ? i : 2 * i;
    const size_t cosine = halves ? pairs + i : 2 * i + 1;
    row[sine] = static_cast<float>(Sin(angle));
    if (cosine < width) row[cosine] = static_cast<float>(Cos(angle));
  }
}

int64_t RelativeBucket(int64_t distance, const RelativeBuckets& buckets) {
  int64_t count = buckets.num_buckets;
  int64_t first = 0;
  if (buckets.bidirectional) {
    count /= 2;
    if (distance > 0) first = count;
  } else {
    distance = std::min<int64_t>(distance, 0);
  }
  if (count < 1) return 0;
  if (count == 1) return first;
  distance = Magnitude(distance);
  const int64_t exact = count / 2;
  if (distance < exact) return first + distance;
  const float limit = LogFloat(static_cast<float>(
      static_cast<double>(buckets.max_distance) / static_cast<double>(exact)));
  const float log =
      LogFloat(static_cast<float>(distance) / static_cast<float>(exact));
  const float rest = static_cast<float>(count - exact);
  const float place = log / limit * rest;
  // No room between exact and max_distance, or beyond it.
  if (!(limit > 0.0f) || !(place < rest)) return first + count - 1;
  return first + exact + static_cast<int64_t>(place);
}

int64_t LogBucket(int64_t distance, int64_t bucket_size, int64_t max_position) {
  const int64_t mid = bucket_size / 2;
  if (bucket_size < 4 || max_position <= mid + 1) {
    const int64_t last = std::max<int64_t>(bucket_size, 1) - 1;
    return std::clamp(distance, -last, last);
  }
  const int64_t magnitude = Magnitude(distance);
  if (magnitude <= mid) return distance;
  const float limit = LogFloat(static_cast<float>(
      static_cast<double>(max_position - 1) / static_cast<double>(mid)));
  const float log =
      LogFloat(static_cast<float>(magnitude) / static_cast<float>(mid));
  float place = log / limit * static_cast<float>(mid - 1);
  // Where mid is so large that the ratio is 1 in float.
  if (!(place < 0x1p40f)) place = 0x1p40f;
  const int64_t bucket = static_cast<int64_t>(std::ceil(place)) + mid;
  return distance < 0 ? -bucket : bucket;
}

}  // namespace lanewise
