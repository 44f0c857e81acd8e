// The program `classify`: labels of texts, entities, masked words, answers.
#ifndef LANEWISE_TOOLS_CLASSIFY_H_
#define LANEWISE_TOOLS_CLASSIFY_H_

#include "tools/cli.h"

namespace lanewise {

// Returns the exit code. Flags: classify_options.cc.
int ClassifyTexts(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_CLASSIFY_H_
