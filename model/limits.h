// Bounds on the sizes that a file may state about a model. Larger values are
// errors, so that no product below overflows 64 bits.
#ifndef LANEWISE_MODEL_LIMITS_H_
#define LANEWISE_MODEL_LIMITS_H_

#include <cstdint>

namespace lanewise {

inline constexpr uint64_t kMaxVocab = uint64_t{1} << 24;
inline constexpr uint64_t kMaxWidth = uint64_t{1} << 20;  // also of FFN layers
inline constexpr uint64_t kMaxLayers = 4096;
inline constexpr uint64_t kMaxExperts = 4096;
inline constexpr uint64_t kMaxExpertsPerToken = 64;
inline constexpr uint64_t kMaxHeads = 4096;
inline constexpr uint64_t kMaxHeadDim = 4096;
inline constexpr uint64_t kMaxPositions = uint64_t{1} << 28;
inline constexpr uint64_t kMaxRelativeDistance = uint64_t{1} << 16;
inline constexpr uint64_t kMaxImageSide = uint64_t{1} << 14;    // and channels
inline constexpr uint64_t kMaxPixelValues = uint64_t{1} << 28;  // of an image
inline constexpr uint64_t kMaxRelativeSpan = 4096;  // to either side
inline constexpr uint64_t kMaxKernel = 255;         // rows of a convolution

}  // namespace lanewise

#endif  // LANEWISE_MODEL_LIMITS_H_
