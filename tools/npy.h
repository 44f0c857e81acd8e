// Arrays in NumPy's format (numpy.lib.format, version 1.0): little-endian f32
// in C order.
#ifndef LANEWISE_TOOLS_NPY_H_
#define LANEWISE_TOOLS_NPY_H_

#include <cstddef>
#include <string>

#include "absl/types/span.h"

namespace lanewise {

// What stands before the values. shape: slowest axis first.
std::string NpyHeader(absl::Span<const size_t> shape);

// The values behind it.
std::string NpyValues(absl::Span<const float> values);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_NPY_H_
