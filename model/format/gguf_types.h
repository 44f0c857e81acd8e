// Storage type ids of GGUF.
#ifndef LANEWISE_MODEL_FORMAT_GGUF_TYPES_H_
#define LANEWISE_MODEL_FORMAT_GGUF_TYPES_H_

#include <cstdint>
#include <optional>

#include "simd/types.h"

namespace lanewise {

struct GgufType {
  uint32_t id;
  const char* name;
  uint32_t block_size;        // elements; 0 where the type was removed from the
  uint32_t block_bytes;       // format
  std::optional<DType> type;  // unset where there is no decoder
};

// Null for an id that is not known.
const GgufType* FindGgufType(uint32_t id);
// Null for a type that GGUF does not have.
const GgufType* FindGgufType(DType type);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_GGUF_TYPES_H_
