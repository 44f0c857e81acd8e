// The part of a GGUF file before the data, as bytes.
#ifndef LANEWISE_MODEL_FORMAT_GGUF_HEADER_H_
#define LANEWISE_MODEL_FORMAT_GGUF_HEADER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/format/gguf_writer.h"
#include "model/format/metadata.h"

namespace lanewise {

// Errors name the key or tensor, not the file.
absl::StatusOr<uint64_t> GgufAlignment(const Metadata& metadata);

// The bytes of each tensor.
absl::StatusOr<std::vector<uint64_t>> GgufDataBytes(
    absl::Span<const GgufTensor> tensors);

// `offsets`: of each tensor's data. Padded to `alignment`.
absl::StatusOr<std::string> GgufHeader(const Metadata& metadata,
                                       absl::Span<const GgufTensor> tensors,
                                       absl::Span<const uint64_t> offsets,
                                       uint64_t alignment);

inline uint64_t RoundedUp(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_GGUF_HEADER_H_
