// Upper limits on what a model's files may ask for. A file beyond one of them
// is refused with RESOURCE_EXHAUSTED (or INVALID_ARGUMENT where the format
// itself sets the limit); the message names the limit and the size found. They
// are far above every published model and keep the memory used while opening a
// file below a few gigabytes, whatever the file says.
#ifndef LANEWISE_MODEL_FORMAT_LIMITS_H_
#define LANEWISE_MODEL_FORMAT_LIMITS_H_

#include <cstdint>

namespace lanewise {

// Any format.
inline constexpr uint64_t kMaxTensors = uint64_t{1} << 20;  // per model
inline constexpr uint64_t kMaxTensorNameBytes = 4096;
// Product of all dimensions; a zero counts as one.
inline constexpr uint64_t kMaxElements = uint64_t{1} << 48;
inline constexpr uint64_t kMaxShards = 1000;  // files per model

// GGUF. Four dimensions is the format's own limit, 65535 bytes too.
inline constexpr uint32_t kMaxGgufDims = 4;
inline constexpr uint64_t kMaxGgufKeyBytes = 65535;
inline constexpr uint64_t kMaxGgufKeys = uint64_t{1} << 16;
inline constexpr uint64_t kMaxGgufArrayLength = uint64_t{1} << 24;
// All metadata of a file once in memory: 8 bytes an integer or float, 32 and
// its bytes a string.
inline constexpr uint64_t kMaxGgufMetadataBytes = uint64_t{1} << 30;
inline constexpr uint64_t kMaxGgufAlignment = uint64_t{1} << 20;

// safetensors. The reference implementation has the same limit on the header;
// SafetensorsOptions can raise it.
inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr uint32_t kMaxSafetensorsDims = 8;

// JSON and text files beside the weights.
inline constexpr uint64_t kMaxTextBytes = uint64_t{1} << 27;
inline constexpr uint32_t kMaxJsonDepth = 256;
inline constexpr uint64_t kMaxJsonValues = uint64_t{1} << 23;

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_LIMITS_H_
