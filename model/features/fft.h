// Power spectra by a mixed-radix Fourier transform in double, without libm: the
// same bits everywhere (docs/design.md, section 2).
//
//   RealFft fft(400);
//   std::vector<double> power(201), scratch(fft.scratch_size());
//   fft.Power(frame, power.data(), scratch.data());
#ifndef LANEWISE_MODEL_FEATURES_FFT_H_
#define LANEWISE_MODEL_FEATURES_FFT_H_

#include <cstddef>
#include <vector>

namespace lanewise {

// Transforms of n real numbers. Cooley & Tukey (1965) with the outputs put in
// order as it goes (Stockham); n reals are n / 2 complex numbers.
class RealFft {
 public:
  static constexpr size_t kMaxSize = size_t{1} << 16;

  // Even products of 2, 3 and 5 up to kMaxSize.
  static bool Supports(size_t n);

  // Supports(n) holds.
  explicit RealFft(size_t n);

  size_t size() const { return 2 * half_; }
  size_t bins() const { return half_ + 1; }
  size_t scratch_size() const { return 4 * half_; }

  // power[k] = |x[0] + x[1] e^(−2πik/n) + … + x[n − 1] e^(−2πi(n − 1)k/n)|²,
  // power [bins()], x [size()], scratch [scratch_size()].
  void Power(const double* x, double* power, double* scratch) const;

 private:
  // One factor of n / 2: see fft.cc.
  struct Stage {
    size_t radix, groups, stride;
  };
  struct Rows {
    double* re;
    double* im;
  };

  template <int kRadix>
  void Run(const Stage& stage, const Rows& x, const Rows& y) const;

  size_t half_;
  std::vector<Stage> stages_;
  std::vector<double> cos_, sin_;  // of 2πk/n, [n]
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FEATURES_FFT_H_
