// The program `generate`: text from a prompt, a file, a pipe or a chat.
#ifndef LANEWISE_TOOLS_GENERATE_H_
#define LANEWISE_TOOLS_GENERATE_H_

#include "tools/cli.h"

namespace lanewise {

// Returns the exit code. Flags: generate_options.cc.
int Generate(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_GENERATE_H_
