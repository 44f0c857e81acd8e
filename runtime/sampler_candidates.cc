#include "runtime/sampler_candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "simd/scalar_math.h"

namespace lanewise {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

constexpr double kLowest = std::numeric_limits<float>::lowest();

// How many TopK finds at first; beyond, partial sorting is faster.
constexpr size_t kFirstLeast = 64;
constexpr size_t kFirstMost = 512;

// A total order, so that any correct sorting gives the same result.
bool Before(const IndexedValue& a, const IndexedValue& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

}  // namespace

SortedCandidates::SortedCandidates(size_t vocab_size)
    : order_(vocab_size), weights_(vocab_size), scaled_(vocab_size) {}

void SortedCandidates::Reset(const Target& target,
                             absl::Span<const float> logits, double temperature,
                             size_t expected) {
  target_ = target;
  logits_ = logits;
  temperature_ = temperature;
  weighed_ = 0;
  cut_ = false;
  mass_ = 0.0;
  const size_t first = std::min(std::max(expected, kFirstLeast), kFirstMost);
  sorted_ = TopK(target, logits.data(), logits.size(), first, order_.data());
  const size_t found = sorted_;
  while (sorted_ > 0 && order_[sorted_ - 1].value == kForbidden) --sorted_;
  collected_ = sorted_ < found || found == logits.size();
  live_ = sorted_;
  largest_ = sorted_ > 0 ? order_[0].value : 0.0;
}

// Collects the tokens of at least `least` beside the sorted ones, which come
// first again.
void SortedCandidates::Collect(float least) {
  live_ = 0;
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (!(logits_[i] >= least) || logits_[i] == kForbidden) continue;
    order_[live_++] = {logits_[i], static_cast<int32_t>(i)};
  }
  sorted_ = 0;
  collected_ = least == kForbidden;
}

void SortedCandidates::Sort(size_t needed, size_t wanted) {
  if (needed <= sorted_) return;
  // Most tokens are too improbable to be ever looked at: they are left out for
  // as long as the others suffice.
  for (const double depth : {8.0, 16.0}) {
    if (collected_ || needed <= live_) break;
    Collect(
        static_cast<float>(std::max(largest_ - depth * temperature_, kLowest)));
  }
  if (!collected_ && needed > live_) Collect(kForbidden);
  const size_t end = std::min(live_, wanted);
  const auto from = order_.begin() + static_cast<ptrdiff_t>(sorted_);
  const auto to = order_.begin() + static_cast<ptrdiff_t>(end);
  const auto last = order_.begin() + static_cast<ptrdiff_t>(live_);
  if (to != last) std::nth_element(from, to, last, Before);
  std::sort(from, to, Before);
  sorted_ = end;
}

bool SortedCandidates::Has(size_t i) {
  if (cut_ && i >= limit_) return false;
  if (i >= sorted_ && (i < live_ || !collected_)) Sort(i + 1, 4 * (i + 1));
  return i < sorted_;
}

// (logit - largest) / temperature
double SortedCandidates::Exponent(size_t i) const {
  return (order_[i].value - largest_) / temperature_;
}

double SortedCandidates::Weight(size_t i) {
  for (; weighed_ <= i; ++weighed_)
    weights_[weighed_] = Exp(Exponent(weighed_));
  return weights_[i];
}

// (logit - largest) / temperature of all tokens, in float.
void SortedCandidates::Scale() {
  constexpr double kSmallest = std::numeric_limits<float>::min();
  const float largest = static_cast<float>(largest_);  // exact
  const float factor = static_cast<float>(
      std::min(std::max(1.0 / temperature_, kSmallest), -kLowest));
  for (size_t i = 0; i < logits_.size(); ++i) {
    scaled_[i] = (logits_[i] - largest) * factor;
  }
}

double SortedCandidates::WholeMass() {
  if (temperature_ == 1.0) {
    return Exp(LogSumExp(*target_, logits_.data(), logits_.size()) - largest_);
  }
  Scale();
  return Exp(LogSumExp(*target_, scaled_.data(), logits_.size()));
}

double SortedCandidates::Mass() {
  if (mass_ == 0.0) {
    if (cut_) {
      for (size_t i = 0; Has(i); ++i) mass_ += Weight(i);
    } else {
      mass_ = WholeMass();
    }
  }
  return mass_;
}

void SortedCandidates::Limit(size_t count, double mass) {
  cut_ = true;
  limit_ = count;
  mass_ = mass;
}

void SortedCandidates::KeepTopK(size_t k) {
  if (!Has(k)) return;
  while (Has(k) && order_[k].value == order_[k - 1].value) ++k;
  Limit(k, 0.0);
}

void SortedCandidates::KeepTopP(double p) {
  const double enough = p * Mass();
  double sum = Weight(0);
  size_t count = 1;
  for (; sum < enough && Has(count); ++count) sum += Weight(count);
  Limit(count, sum);
}

void SortedCandidates::KeepMinP(double min_p) {
  double sum = Weight(0);
  size_t count = 1;
  for (; Has(count) && Weight(count) >= min_p; ++count) sum += Weight(count);
  Limit(count, sum);
}

void SortedCandidates::KeepEpsilon(double epsilon) {
  const double least = epsilon * Mass();
  double sum = Weight(0);
  size_t count = 1;
  for (; Has(count) && Weight(count) >= least; ++count) sum += Weight(count);
  Limit(count, sum);
}

// log(sum w) - sum(w x) / sum w, for weights w = exp(x). Over a whole
// vocabulary by the vector softmax, as WholeMass.
double SortedCandidates::Entropy(double log_mass) {
  double weighted = 0.0;
  if (cut_) {
    for (size_t i = 0; Has(i); ++i) {
      if (Weight(i) > 0.0) weighted += Weight(i) * Exponent(i);
    }
    return log_mass - weighted / Mass();
  }
  Scale();
  Softmax(*target_, logits_.size(), scaled_.data());
  for (size_t i = 0; i < logits_.size(); ++i) {
    if (scaled_[i] == 0.0f) continue;
    weighted += scaled_[i] * ((logits_[i] - largest_) / temperature_);
  }
  return log_mass - weighted;
}

// In descending order of probability the tokens nearest the entropy are
// neighbours: the interval grows at whichever end is nearer.
void SortedCandidates::KeepTypical(double mass) {
  const double whole = Mass();
  const double log_mass = Log(whole);
  const double entropy = Entropy(log_mass);
  const auto distance = [&](size_t i) {
    return std::abs(log_mass - Exponent(i) - entropy);
  };
  size_t end = 0;
  while (Has(end) && log_mass - Exponent(end) < entropy) ++end;
  size_t begin = end;
  double farthest = 0.0;
  // The one that crosses the mass stays, and what is as far as it.
  for (double reached = 0.0;;) {
    const bool above = begin > 0;
    const bool below = Has(end);
    if (!above && !below) break;
    const bool up = above && (!below || distance(begin - 1) <= distance(end));
    const size_t next = up ? begin - 1 : end;
    if (reached >= mass && distance(next) > farthest) break;
    farthest = distance(next);
    reached += Weight(next) / whole;
    if (up) {
      --begin;
    } else {
      ++end;
    }
  }
  double sum = 0.0;
  for (size_t i = begin; i < end; ++i) {
    const double weight = Weight(i);
    sum += weight;
    order_[i - begin] = order_[i];
    weights_[i - begin] = weight;
  }
  Limit(end - begin, sum);
}

int32_t SortedCandidates::Pick(double u) {
  // Without a cut the mass is that of LogSumExp, which may be larger than the
  // sum of the weights in its last bits; a walk that falls off the end repeats
  // with the sum.
  for (double mass = Mass();;) {
    double sum = 0.0;
    size_t i = 0;
    for (; Has(i); ++i) {
      sum += Weight(i);
      if (sum > u * mass) return id(i);
    }
    if (sum < mass) {
      mass = sum;
      continue;
    }
    while (i > 1 && Weight(i - 1) == 0.0) --i;
    return id(i - 1);
  }
}

size_t SortedCandidates::Count() {
  if (cut_) return limit_;
  Sort(logits_.size(), logits_.size());
  return live_;
}

}  // namespace lanewise
