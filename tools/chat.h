// Interactive conversation: one message a line, over one session.
#ifndef LANEWISE_TOOLS_CHAT_H_
#define LANEWISE_TOOLS_CHAT_H_

#include <string>

#include "lanewise/engine.h"
#include "tools/cli.h"
#include "tools/generate_options.h"
#include "tools/interrupt.h"

namespace lanewise {

// Lines of a descriptor, without their newline.
class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  // False at the end of the input, on an error, and after a Ctrl-C.
  bool Next(const InterruptScope& interrupt, std::string* line);

 private:
  int fd_;
  std::string held_;  // read, not yet returned
};

// Until /exit, the end of the input or Ctrl-C at the prompt. Ctrl-C during an
// answer ends the answer only. Returns the exit code.
int Chat(const Invocation& call, const GenerateOptions& options, Engine* engine,
         Session* session);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_CHAT_H_
