// A named tensor in a file.
#ifndef LANEWISE_MODEL_FORMAT_TENSOR_H_
#define LANEWISE_MODEL_FORMAT_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "simd/types.h"

namespace lanewise {

struct Tensor {
  std::string name;
  std::string file;  // for messages
  DType type;
  // Slowest axis first (GGUF's order reversed); may hold zeros; [] is a scalar.
  std::vector<uint64_t> shape;
  // Exactly the bytes of shape and type, little-endian, row by row; may be
  // unaligned. A view of the mapped file: when another process cuts the file
  // short, touching it kills this one (SIGBUS). Loading a model therefore goes
  // through Checkpoint::Read, which returns a status instead.
  absl::Span<const uint8_t> data;

  // Cannot overflow: readers refuse more than kMaxElements.
  uint64_t elements() const {
    uint64_t product = 1;
    for (uint64_t dim : shape) product *= dim;
    return product;
  }
};

// A tensor whose storage type the file format knows and this library does not.
struct UnsupportedTensor {
  std::string name;
  std::string file;
  std::string type;  // "IQ2_XS", "F8_E5M2"
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_TENSOR_H_
