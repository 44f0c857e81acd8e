// The program `tokenize`: text to token ids and back.
#ifndef LANEWISE_TOOLS_TOKENIZE_H_
#define LANEWISE_TOOLS_TOKENIZE_H_

#include "tools/cli.h"

namespace lanewise {

// Returns the exit code.
int Tokenize(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_TOKENIZE_H_
