// The program `inspect`: what is in a model's files, without running it.
#ifndef LANEWISE_TOOLS_INSPECT_H_
#define LANEWISE_TOOLS_INSPECT_H_

#include "tools/cli.h"

namespace lanewise {

// Returns the exit code.
int Inspect(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_INSPECT_H_
