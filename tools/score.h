// The program `score`: how probable a model finds given texts.
#ifndef LANEWISE_TOOLS_SCORE_H_
#define LANEWISE_TOOLS_SCORE_H_

#include "tools/cli.h"

namespace lanewise {

// Returns the exit code. Flags: score_options.cc.
int Score(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_SCORE_H_
