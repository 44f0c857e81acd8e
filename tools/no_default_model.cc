#include "tools/default_model.h"

namespace lanewise {

const char* DefaultModel() { return ""; }

}  // namespace lanewise
