// Elementary functions of simd/math-inl.h in scalar code, bit for bit on
// targets with fused multiply-add.
#ifndef LANEWISE_TESTS_SIMD_SCALAR_LANES_H_
#define LANEWISE_TESTS_SIMD_SCALAR_LANES_H_

#include <cmath>
#include <limits>

namespace lanewise {

inline float ScalarExp(float x) {
  if (std::isnan(x)) return x;
  if (x < -87.33654475f) return 0.0f;
  if (x > 88.72283173f) return std::numeric_limits<float>::infinity();
  const float n = std::nearbyint(x * 1.44269504088896341f);
  float r = std::fma(-n, 0.693359375f, x);
  r = std::fma(-n, -2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                        1.6666665459e-1f, 5.0000001201e-1f}) {
    p = std::fma(p, r, c);
  }
  p = std::fma(r * r, p, r) + 1.0f;
  return std::ldexp(p, static_cast<int>(n));
}

inline float ScalarTanh(float x) {
  const float a = std::fabs(x), z = a * a;
  float p = -6.09671418e-3f;
  for (const float c :
       {2.09971797e-2f, -5.38509078e-2f, 0.133327693f, -0.333333284f}) {
    p = std::fma(p, z, c);
  }
  if (a < 0.625f) return std::copysign(std::fma(a * z, p, a), x);
  return std::copysign(1.0f - 2.0f / (ScalarExp(a + a) + 1.0f), x);
}

}  // namespace lanewise

#endif  // LANEWISE_TESTS_SIMD_SCALAR_LANES_H_
