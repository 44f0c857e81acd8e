#ifndef LANEWISE_MODEL_FAMILIES_LLAMA_H_
#define LANEWISE_MODEL_FAMILIES_LLAMA_H_

#include "model/families/family.h"

namespace lanewise {

const Family& LlamaFamily();

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_LLAMA_H_
