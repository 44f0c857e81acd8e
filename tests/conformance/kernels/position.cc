// RoPE, ALiBi, sinusoids, buckets of relative positions.
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "model/families/common.h"
#include "model/families/rope_config.h"
#include "model/position_tables.h"
#include "model/rope_table.h"
#include "simd/rope.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

constexpr size_t kHeads = 3;  // x: [batch, heads, positions, head_dim]

// The frequencies of RopeTable and the kernel together, as the executor uses
// them.
void CheckRotation(const KernelCase& c, const Context& context,
                   CaseReport* report) {
  RopeSpec spec;
  spec.theta = c.number("theta");
  spec.rotary_dim = c.count("rotary_dim");
  spec.pairing = c.Is("rope_interleaved_") ? RopePairing::kInterleaved
                                           : RopePairing::kHalves;
  const KernelArray& x = c.input("x");
  const KernelArray& positions = c.input("positions");
  if (x.rows() != positions.values.size() * kHeads) {
    return AddExact({c.name(), "y"}, "rows without a position", report);
  }
  const RopeTable table(spec);
  std::vector<float> scratch(table.half()), cos(table.half()),
      sin(table.half());
  std::vector<float> found = x.values;
  for (size_t row = 0; row < x.rows(); ++row) {
    const size_t batch = row / (kHeads * positions.width);
    const float position = positions.row(batch)[row % positions.width];
    table.Fill(table.Frequencies(1, scratch.data()),
               static_cast<size_t>(position), cos.data(), sin.data());
    ApplyRope(context.target(), found.data() + row * x.width, 1, x.width,
              spec.rotary_dim, spec.pairing, cos.data(), sin.data());
  }
  CompareToLargest({c.name(), "y"}, found, c.output("y").values, 1e-5, report);
}

// The frequencies of a configuration, at a length where they depend on it.
void CheckFrequencies(const KernelCase& c, CaseReport* report) {
  nlohmann::json params = c.params();
  if (c.Is("rope_freqs_longrope_")) params["rope_type"] = "longrope";
  const auto rope =
      ReadRope({{"rope_parameters", params}}, "params", c.count("head_dim"),
               c.count("max_position_embeddings", 64));
  if (!rope.ok()) {
    return AddExact({c.name(), "inv_freq"}, rope.status().ToString(), report);
  }
  const RopeTable table(*rope);
  std::vector<float> scratch(table.half());
  const auto found = table.Frequencies(c.count("seq_len", 1), scratch.data());
  // The reference blends frequencies in float: a few units in the last place.
  const std::vector<float>& expected = c.output("inv_freq").values;
  CompareElements(
      {c.name(), "inv_freq"}, found, expected,
      [&](size_t i) { return 1e-6 * expected[i]; }, report);
  const std::vector<double> factor = {rope->attention_factor};
  CompareElements(
      {c.name(), "attention_factor"}, absl::MakeConstSpan(factor),
      c.output("attention_factor").values, [](size_t) { return 1e-6; }, report);
}

void CheckSinusoids(const KernelCase& c, CaseReport* report) {
  SinusoidSpec spec;
  spec.width = c.count("dim");
  if (c.Is("sinusoidal_paper_")) spec.layout = SinusoidLayout::kInterleaved;
  // The recorded tables are computed in double. kClosed rounds frequency and
  // angle, each to 2^-24 of itself.
  double rounding = 0.0;
  if (c.Is("sinusoidal_m2m_")) {
    spec.spacing = SinusoidSpacing::kClosed;
    rounding = 2 * 0x1p-24;
  }
  const SinusoidTable table(spec);
  const KernelArray& expected = c.output("table");
  std::vector<float> found(expected.rows() * spec.width);
  for (size_t position = 0; position < expected.rows(); ++position) {
    table.Fill(position, found.data() + position * spec.width);
  }
  CompareElements(
      {c.name(), "table"}, found, expected.values,
      [&](size_t i) {
        return 0x1p-24 + rounding * static_cast<double>(i / spec.width);
      },
      report);
}

void CheckBuckets(const KernelCase& c, CaseReport* report) {
  std::vector<float> found;
  for (const float value : c.input("relative_position").values) {
    const int64_t distance = static_cast<int64_t>(value);
    const auto number = [&](const char* param, size_t absent = 0) {
      return static_cast<int64_t>(c.count(param, absent));
    };
    const int64_t bucket =
        c.Is("deberta_")
            ? LogBucket(distance, number("bucket_size"), number("max_position"))
            : RelativeBucket(
                  distance, {number("num_buckets"), number("max_distance", 128),
                             c.flag("bidirectional", true)});
    found.push_back(static_cast<float>(bucket));
  }
  CompareElements(
      {c.name(), "bucket"}, found, c.output("bucket").values,
      [](size_t) { return 0.0; }, report);
}

}  // namespace

bool CheckPosition(const KernelCase& c, const Context& context,
                   CaseReport* report) {
  if (c.Is("rope_half_") || c.Is("rope_interleaved_")) {
    CheckRotation(c, context, report);
    return true;
  }
  if (c.Is("rope_freqs_")) {
    CheckFrequencies(c, report);
    return true;
  }
  if (c.Is("sinusoidal_")) {
    CheckSinusoids(c, report);
    return true;
  }
  if (absl::StrContains(c.name(), "_buckets")) {
    CheckBuckets(c, report);
    return true;
  }
  if (c.Is("alibi_slopes_")) {
    const std::vector<float>& slopes = c.output("slopes").values;
    CompareElements(
        {c.name(), "slopes"}, AlibiSlopes(c.count("heads"), 1.0), slopes,
        [&](size_t i) { return 2e-6 * slopes[i]; }, report);
    return true;
  }
  return false;
}

}  // namespace lanewise
