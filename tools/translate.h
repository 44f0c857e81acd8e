// The program `translate`: texts out of texts with an encoder-decoder.
#ifndef LANEWISE_TOOLS_TRANSLATE_H_
#define LANEWISE_TOOLS_TRANSLATE_H_

#include "tools/cli.h"

namespace lanewise {

// Runs it; returns the exit code.
int TranslateTexts(const Invocation& call);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_TRANSLATE_H_
