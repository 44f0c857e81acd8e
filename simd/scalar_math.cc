#include "simd/scalar_math.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace lanewise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 = kLn2High + kLn2Low; the high part has 21 trailing zero bits, so that
// its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// An unevaluated sum with |low| <= ulp(high) / 2 (Dekker, "A floating-point
// technique for extending the available precision", 1971).
struct DoubleDouble {
  double high;
  double low;
};

// a + b exactly, for |a| >= |b| or a = 0.
DoubleDouble FastTwoSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// a + b exactly (Knuth).
DoubleDouble TwoSum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// Upper 26 bits and the rest, for |a| < 2^995.
DoubleDouble Split(double a) {
  const double scaled = a * 134217729.0;  // 2^27 + 1
  const double high = scaled - (scaled - a);
  return {high, a - high};
}

// a · b exactly, without fused multiply-add.
DoubleDouble TwoProduct(double a, double b) {
  const double product = a * b;
  const DoubleDouble x = Split(a);
  const DoubleDouble y = Split(b);
  const double low =
      ((x.high * y.high - product) + x.high * y.low + x.low * y.high) +
      x.low * y.low;
  return {product, low};
}

DoubleDouble Multiply(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble p = TwoProduct(a.high, b.high);
  return FastTwoSum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

DoubleDouble Add(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble s = TwoSum(a.high, b.high);
  return FastTwoSum(s.high, s.low + (a.low + b.low));
}

// coefficients[0] + coefficients[1] x + …
template <int kCount>
double Polynomial(double x, const double (&coefficients)[kCount]) {
  double result = coefficients[kCount - 1];
  for (int i = kCount - 2; i >= 0; --i) result = result * x + coefficients[i];
  return result;
}

// 2^n for -1022 <= n <= 1023.
double PowerOfTwo(int n) {
  const uint64_t bits = static_cast<uint64_t>(n + 1023) << 52;
  double result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// m · 2^exponent = x with m in [√½, √2), for finite x > 0.
double SplitExponent(double x, int* exponent) {
  int shift = 0;
  if (x < std::numeric_limits<double>::min()) {  // denormal
    x *= 0x1p54;
    shift = -54;
  }
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  *exponent = static_cast<int>(bits >> 52) - 1023 + shift;
  bits = (bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1023} << 52);
  double m;
  std::memcpy(&m, &bits, sizeof(m));
  if (m >= 1.4142135623730951) {
    m *= 0.5;
    ++*exponent;
  }
  return m;
}

// log(x) to about 2^-64 relative, for finite x > 0: with f = m − 1 and
// s = f / (2 + f), log m = 2 (s + s³/3 + s⁵/5 + …); the first two terms are
// carried in double-double.
DoubleDouble LogDoubleDouble(double x) {
  int exponent;
  const double f = SplitExponent(x, &exponent) - 1.0;
  const DoubleDouble divisor = FastTwoSum(2.0, f);
  DoubleDouble s;
  s.high = f / divisor.high;
  const DoubleDouble back = TwoProduct(s.high, divisor.high);
  s.low = ((f - back.high) - back.low - s.high * divisor.low) / divisor.high;
  const DoubleDouble z = Multiply(s, s);
  const DoubleDouble third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
  constexpr double kRest[] = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11,
                              1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
                              1.0 / 21, 1.0 / 23, 1.0 / 25};
  const double rest = z.high * z.high * Polynomial(z.high, kRest);
  // 1 + z/3 + rest
  DoubleDouble sum = Multiply(z, third);
  sum = Add(sum, {rest, 0.0});
  sum = Add({1.0, 0.0}, sum);
  DoubleDouble result = Multiply(s, sum);
  result = {2.0 * result.high, 2.0 * result.low};
  const DoubleDouble powers = {exponent * kLn2High, 0.0};
  const DoubleDouble low_powers = TwoProduct(exponent, kLn2Low);
  return Add(powers, Add(low_powers, result));
}

// sin, cos of high + low, |high| <= π/4: Taylor's series.
double SinKernel(DoubleDouble r) {
  constexpr double kTerms[] = {-1.0 / 6,
                               1.0 / 120,
                               -1.0 / 5040,
                               1.0 / 362880,
                               -1.0 / 39916800,
                               1.0 / 6227020800.0,
                               -1.0 / 1307674368000.0,
                               1.0 / 355687428096000.0};
  const double z = r.high * r.high;
  const double cubic = r.high * z * Polynomial(z, kTerms);
  return r.high + (cubic + r.low * (1.0 - 0.5 * z));
}

double CosKernel(DoubleDouble r) {
  constexpr double kTerms[] = {1.0 / 24,
                               -1.0 / 720,
                               1.0 / 40320,
                               -1.0 / 3628800,
                               1.0 / 479001600.0,
                               -1.0 / 87178291200.0,
                               1.0 / 20922789888000.0};
  const double z = r.high * r.high;
  const double half = 0.5 * z;
  const double main = 1.0 - half;
  const double rounding = (1.0 - main) - half;
  return main + (rounding + (z * z * Polynomial(z, kTerms) - r.high * r.low));
}

// x = quadrant · π/2 + result (modulo 2π), |result| <= π/4, for |x| <= 2^30
// (Cody & Waite). Products of the quadrant with the first four parts of π/2, of
// 23 bits each, are exact.
DoubleDouble ReduceAngle(double x, int* quadrant) {
  constexpr double kParts[] = {0x1.921fb4p+0, 0x1.4442dp-24, 0x1.846988p-48,
                               0x1.8cc514p-72};
  constexpr double kLastPart = 0x1.80dc1cd129025p-95;
  const double n = std::rint(x * 0.63661977236758134308);
  DoubleDouble r = {x, 0.0};
  for (const double part : kParts) {
    const DoubleDouble difference = TwoSum(r.high, -(n * part));
    r = FastTwoSum(difference.high, difference.low + r.low);
  }
  r = Add(r, {-(n * kLastPart), 0.0});
  *quadrant = static_cast<int>(n - 4.0 * std::floor(n * 0.25));
  return r;
}

// sin(x + quarters · π/2)
double SinOfQuadrant(double x, int quarters) {
  if (!(x >= -0x1p30 && x <= 0x1p30)) return kNaN;
  int quadrant;
  const DoubleDouble r = ReduceAngle(x, &quadrant);
  quadrant = (quadrant + quarters) & 3;
  const double value = (quadrant & 1) != 0 ? CosKernel(r) : SinKernel(r);
  return (quadrant & 2) != 0 ? -value : value;
}

// e^(x + low), |low| <= 2^-52 |x|.
double ExpSum(double x, double low) {
  if (x != x) return x;
  if (x > 709.782712893384) return kInfinity;
  if (x < -708.0) return 0.0;
  constexpr double kTerms[] = {
      1.0 / 2,       1.0 / 6,        1.0 / 24,          1.0 / 120,
      1.0 / 720,     1.0 / 5040,     1.0 / 40320,       1.0 / 362880,
      1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600.0, 1.0 / 6227020800.0};
  const double n = std::rint(x * 1.44269504088896340736);
  const double high = x - n * kLn2High;  // exact
  const DoubleDouble r = TwoSum(high, low - n * kLn2Low);
  const DoubleDouble sum = FastTwoSum(1.0, r.high);
  const double rest = r.high * r.high * Polynomial(r.high, kTerms);
  const double value = sum.high + (sum.low + (rest + r.low * sum.high));
  const int half = static_cast<int>(n) / 2;  // n reaches 1024
  return value * PowerOfTwo(half) * PowerOfTwo(static_cast<int>(n) - half);
}

}  // namespace

double Exp(double x) { return ExpSum(x, 0.0); }

double Log(double x) {
  if (x == 0.0) return -kInfinity;
  if (!(x > 0.0)) return kNaN;
  if (x == kInfinity) return x;
  const DoubleDouble result = LogDoubleDouble(x);
  return result.high + result.low;
}

double Pow(double base, double y) {
  if (y == 0.0 || base == 1.0) return 1.0;
  if (!(base >= 0.0) || y != y) return kNaN;
  if (base == 0.0) return y > 0.0 ? 0.0 : kInfinity;
  if (base == kInfinity) return y > 0.0 ? kInfinity : 0.0;
  const DoubleDouble log = LogDoubleDouble(base);
  const double estimate = y * log.high;
  if (estimate > 710.0) return kInfinity;
  if (estimate < -708.0) return 0.0;
  const DoubleDouble exact = TwoProduct(y, log.high);
  const double value = Exp(exact.high);
  return value == kInfinity ? value : value + value * (exact.low + y * log.low);
}

double Sin(double x) { return x == 0.0 ? x : SinOfQuadrant(x, 0); }

double Cos(double x) { return SinOfQuadrant(x, 1); }

}  // namespace lanewise
