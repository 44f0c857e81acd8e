// Converts one tensor after another into a GGUF file.
#ifndef LANEWISE_TOOLS_QUANTIZE_CONVERT_H_
#define LANEWISE_TOOLS_QUANTIZE_CONVERT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/format/gguf_writer.h"
#include "simd/context.h"
#include "simd/quantize.h"
#include "simd/types.h"
#include "tools/quantize_source.h"

namespace lanewise {

struct ConvertedTensor {
  uint64_t bytes;        // in the new file
  RoundTripError error;  // of what the new file says
  uint64_t cut;          // values beyond the largest of F16, stored as that
};

struct ConvertOptions {
  // Called now and then with the elements of the tensor that are done; an
  // error ends the work.
  std::function<absl::Status(uint64_t elements)> progress;
};

// Appends tensors()[index] of `source` in `type`. A tensor that has this type
// already keeps its bytes. INVALID_ARGUMENT names the tensor and the row where
// a value is not finite (fault N10).
absl::StatusOr<ConvertedTensor> ConvertTensor(const QuantizeSource& source,
                                              size_t index, DType type,
                                              const Context& context,
                                              const ConvertOptions& options,
                                              GgufWriter* writer);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_QUANTIZE_CONVERT_H_
