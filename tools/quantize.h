// The program `quantize`: a model's weights in another type, as GGUF.
#ifndef LANEWISE_TOOLS_QUANTIZE_H_
#define LANEWISE_TOOLS_QUANTIZE_H_

#include "tools/cli.h"

namespace lanewise {

// Returns the exit code.
int QuantizeModel(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_QUANTIZE_H_
