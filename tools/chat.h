// Interactive conversation: one message a line, over one session.
#ifndef LANEWISE_TOOLS_CHAT_H_
#define LANEWISE_TOOLS_CHAT_H_

#include "lanewise/engine.h"
#include "tools/cli.h"
#include "tools/generate_options.h"

namespace lanewise {

// Until /exit, the end of the input or Ctrl-C at the prompt. Ctrl-C during an
// answer ends the answer only. Returns the exit code.
int Chat(const Invocation& call, const GenerateOptions& options, Engine* engine,
         Session* session);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_CHAT_H_
