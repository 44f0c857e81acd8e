// Elementary functions in double by fixed sequences of IEEE operations: the
// same bits with every compiler and libm. For tables built at load (RoPE,
// sinusoids) and for samplers; not for inner loops. Errors are below 4 units in
// the last place of double over the stated ranges.
#ifndef LANEWISE_SIMD_SCALAR_MATH_H_
#define LANEWISE_SIMD_SCALAR_MATH_H_

namespace lanewise {

double Exp(double x);               // +inf above 709.78, +0 below -708
double Log(double x);               // x > 0; -inf at 0, NaN below
double Pow(double base, double y);  // base >= 0, else NaN
double Sin(double x);               // |x| <= 2^30, else NaN
double Cos(double x);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_SCALAR_MATH_H_
