// A distribution over a vocabulary as its tokens in descending order of
// probability, sorted only as far as somebody looks. All filters but the
// typical one keep a first part of that order, and a draw walks along it, so a
// step sorts tens of tokens, rarely more, and the result is as if it had sorted
// all.
//
//   SortedCandidates candidates(vocab_size);
//   candidates.Reset(target, logits, /*temperature=*/0.7, /*expected=*/50);
//   candidates.KeepTopK(50);
//   candidates.KeepTopP(0.9);
//   const int32_t id = candidates.Pick(u);  // u in [0, 1)
//
// Weights are exp((logit - largest) / temperature) in double, by
// simd/scalar_math.h, summed in descending order, the lower id first on ties.
// Only over a whole vocabulary, where nothing has cut it, sum and entropy are
// those of LogSumExp and Softmax in simd/vector_ops.h.
#ifndef LANEWISE_RUNTIME_SAMPLER_CANDIDATES_H_
#define LANEWISE_RUNTIME_SAMPLER_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "simd/target.h"
#include "simd/vector_ops.h"

namespace lanewise {

class SortedCandidates {
 public:
  // Takes all the memory it will need.
  explicit SortedCandidates(size_t vocab_size);

  // Begins with a new distribution. `logits` [<= vocab_size] are finite or
  // -inf (such tokens do not exist) and live until the next Reset; temperature
  // > 0; `expected` is a guess of how many will be looked at.
  void Reset(const Target& target, absl::Span<const float> logits,
             double temperature, size_t expected);

  // No token exists. Then the rest must not be called.
  bool empty() { return !Has(0); }

  // Filters, each of what the one before has left; at least one token stays.
  // Their meaning: generation_options.h.
  void KeepTopK(size_t k);  // k > 0
  void KeepTopP(double p);
  void KeepMinP(double min_p);
  void KeepTypical(double mass);
  void KeepEpsilon(double epsilon);

  // The token at u in [0, 1) of the cumulative distribution.
  int32_t Pick(double u);

  // How many are left, and the i-th of them: for looking at all.
  size_t Count();
  int32_t id(size_t i) const { return order_[i].index; }
  double Probability(size_t i) { return Weight(i) / Mass(); }

 private:
  bool Has(size_t i);       // whether the i-th exists; sorts as far as it
  double Weight(size_t i);  // Has(i)
  double Mass();            // sum of the weights of what is left
  double Exponent(size_t i) const;
  void Scale();
  double WholeMass();
  double Entropy(double log_mass);
  void Collect(float least);
  void Sort(size_t needed, size_t wanted);
  void Limit(size_t count, double mass);

  std::vector<IndexedValue> order_;
  std::vector<double> weights_;
  std::vector<float> scaled_;  // of Scale

  std::optional<Target> target_;
  absl::Span<const float> logits_;
  double temperature_ = 1.0;
  double largest_ = 0.0;    // logit
  size_t live_ = 0;         // tokens in order_, none before any left out
  bool collected_ = false;  // they are all there are
  size_t sorted_ = 0;
  size_t weighed_ = 0;
  bool cut_ = false;  // a filter has set limit_ and mass_
  size_t limit_ = 0;
  double mass_ = 0.0;  // 0: not known yet
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SAMPLER_CANDIDATES_H_
