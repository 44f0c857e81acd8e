// The program `embed`: vectors of texts, and how alike texts are.
#ifndef LANEWISE_TOOLS_EMBED_H_
#define LANEWISE_TOOLS_EMBED_H_

#include "tools/cli.h"

namespace lanewise {

// Returns the exit code. Flags: embed_options.cc.
int EmbedTexts(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_EMBED_H_
