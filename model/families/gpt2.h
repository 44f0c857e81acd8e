#ifndef LANEWISE_MODEL_FAMILIES_GPT2_H_
#define LANEWISE_MODEL_FAMILIES_GPT2_H_

#include "model/families/family.h"

namespace lanewise {

const Family& Gpt2Family();

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_GPT2_H_
