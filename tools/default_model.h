// The model that a program uses when none is named.
#ifndef LANEWISE_TOOLS_DEFAULT_MODEL_H_
#define LANEWISE_TOOLS_DEFAULT_MODEL_H_

namespace lanewise {

// Its path within the runfiles; "" in programs built without one. Each program
// links one of two definitions (BUILD).
const char* DefaultModel();

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_DEFAULT_MODEL_H_
