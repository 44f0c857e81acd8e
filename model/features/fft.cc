#include "model/features/fft.h"

#include <utility>

#include "simd/scalar_math.h"

namespace lanewise {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

struct Complex {
  double re, im;
};

// b[k] = a[0] + a[1] w^k + … with w = e^(−2πi/R); roots[j] = (cos, sin) of
// 2πj/R.
template <int R>
inline void SmallDft(const Complex (&roots)[R], const Complex (&a)[R],
                     Complex (&b)[R]) {
  if constexpr (R == 2) {
    b[0] = {a[0].re + a[1].re, a[0].im + a[1].im};
    b[1] = {a[0].re - a[1].re, a[0].im - a[1].im};
  } else if constexpr (R == 4) {
    const Complex s02 = {a[0].re + a[2].re, a[0].im + a[2].im};
    const Complex d02 = {a[0].re - a[2].re, a[0].im - a[2].im};
    const Complex s13 = {a[1].re + a[3].re, a[1].im + a[3].im};
    const Complex d13 = {a[1].re - a[3].re, a[1].im - a[3].im};
    b[0] = {s02.re + s13.re, s02.im + s13.im};
    b[1] = {d02.re + d13.im, d02.im - d13.re};
    b[2] = {s02.re - s13.re, s02.im - s13.im};
    b[3] = {d02.re - d13.im, d02.im + d13.re};
  } else {
    // Odd: terms j and R − j share cosines and have opposite sines.
    b[0] = a[0];
    for (int j = 1; j < R; ++j) {
      b[0] = {b[0].re + a[j].re, b[0].im + a[j].im};
    }
    for (int k = 1; 2 * k < R; ++k) {
      Complex even = a[0], odd = {0.0, 0.0};
      for (int j = 1; 2 * j < R; ++j) {
        const Complex root = roots[j * k % R];
        even.re += (a[j].re + a[R - j].re) * root.re;
        even.im += (a[j].im + a[R - j].im) * root.re;
        odd.re += (a[j].re - a[R - j].re) * root.im;
        odd.im += (a[j].im - a[R - j].im) * root.im;
      }
      b[k] = {even.re + odd.im, even.im - odd.re};
      b[R - k] = {even.re - odd.im, even.im + odd.re};
    }
  }
}

}  // namespace

bool RealFft::Supports(size_t n) {
  if (n == 0 || n % 2 != 0 || n > kMaxSize) return false;
  for (const size_t factor : {2, 3, 5}) {
    while (n % factor == 0) n /= factor;
  }
  return n == 1;
}

RealFft::RealFft(size_t n) : half_(n / 2), cos_(n), sin_(n) {
  for (size_t k = 0; k < n; ++k) {
    const double angle =
        kTwoPi * static_cast<double>(k) / static_cast<double>(n);
    cos_[k] = Cos(angle);
    sin_[k] = Sin(angle);
  }
  size_t groups = half_, stride = 1;
  for (const size_t radix : {4, 2, 3, 5}) {
    while (groups % radix == 0) {
      groups /= radix;
      stages_.push_back({radix, groups, stride});
      stride *= radix;
    }
  }
}

// Turns `stride` interleaved sequences of radix · groups elements into radix ·
// stride sequences of `groups`: element p of sequence k is that of the small
// transforms times the twiddle factor e^(−2πipk / (radix · groups)).
template <int kRadix>
void RealFft::Run(const Stage& stage, const Rows& x, const Rows& y) const {
  Complex roots[kRadix];
  for (int j = 0; j < kRadix; ++j) {
    const size_t k = 2 * half_ / kRadix * static_cast<size_t>(j);
    roots[j] = {cos_[k], sin_[k]};
  }
  const size_t stride = stage.stride;
  for (size_t p = 0; p < stage.groups; ++p) {
    Complex twiddles[kRadix];
    for (size_t k = 0; k < kRadix; ++k) {
      twiddles[k] = {cos_[2 * p * k * stride], sin_[2 * p * k * stride]};
    }
    for (size_t q = 0; q < stride; ++q) {
      Complex a[kRadix], b[kRadix];
      for (size_t j = 0; j < kRadix; ++j) {
        const size_t from = q + stride * (p + stage.groups * j);
        a[j] = {x.re[from], x.im[from]};
      }
      SmallDft(roots, a, b);
      for (size_t k = 0; k < kRadix; ++k) {
        const size_t to = q + stride * (kRadix * p + k);
        y.re[to] = b[k].re * twiddles[k].re + b[k].im * twiddles[k].im;
        y.im[to] = b[k].im * twiddles[k].re - b[k].re * twiddles[k].im;
      }
    }
  }
}

void RealFft::Power(const double* x, double* power, double* scratch) const {
  Rows z = {scratch, scratch + half_};
  Rows other = {scratch + 2 * half_, scratch + 3 * half_};
  for (size_t j = 0; j < half_; ++j) {
    z.re[j] = x[2 * j];
    z.im[j] = x[2 * j + 1];
  }
  for (const Stage& stage : stages_) {
    if (stage.radix == 2) Run<2>(stage, z, other);
    if (stage.radix == 3) Run<3>(stage, z, other);
    if (stage.radix == 4) Run<4>(stage, z, other);
    if (stage.radix == 5) Run<5>(stage, z, other);
    std::swap(z, other);
  }
  // The transforms of the even and of the odd elements, apart by symmetry, and
  // then put together.
  for (size_t k = 0; k <= half_; ++k) {
    const size_t i = k % half_, mirror = (half_ - k) % half_;
    const Complex even = {(z.re[i] + z.re[mirror]) / 2,
                          (z.im[i] - z.im[mirror]) / 2};
    const Complex odd = {(z.im[i] + z.im[mirror]) / 2,
                         (z.re[mirror] - z.re[i]) / 2};
    const double re = even.re + (odd.re * cos_[k] + odd.im * sin_[k]);
    const double im = even.im + (odd.im * cos_[k] - odd.re * sin_[k]);
    power[k] = re * re + im * im;
  }
}

}  // namespace lanewise
