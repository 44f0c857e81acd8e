// What a norm is: part of model/spec.h.
#ifndef LANEWISE_MODEL_NORM_SPEC_H_
#define LANEWISE_MODEL_NORM_SPEC_H_

#include <cstdint>

namespace lanewise {

enum class NormKind : uint8_t { kLayerNorm, kRmsNorm };

struct NormSpec {
  NormKind kind = NormKind::kLayerNorm;
  float eps = 1e-5f;
  bool weight = true;
  bool bias = false;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_NORM_SPEC_H_
