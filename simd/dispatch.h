// LANEWISE_DISPATCH: Highway's dynamic dispatch with the target as an argument.
// For the HWY_ONCE part of kernel files:
//
//   HWY_EXPORT(RmsNormImpl);
//   void RmsNorm(const Target& target, ...) { LANEWISE_DISPATCH(target,
//   RmsNormImpl)(...); }
#ifndef LANEWISE_SIMD_DISPATCH_H_
#define LANEWISE_SIMD_DISPATCH_H_

#include "simd/target.h"

#define LANEWISE_DISPATCH(target, func) \
  (*(HWY_DISPATCH_TABLE(func)[(target).dispatch_index()]))

#endif  // LANEWISE_SIMD_DISPATCH_H_
