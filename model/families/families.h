// All families, one file each.
#ifndef LANEWISE_MODEL_FAMILIES_FAMILIES_H_
#define LANEWISE_MODEL_FAMILIES_FAMILIES_H_

#include "model/families/family.h"

namespace lanewise {

const Family& AlbertFamily();
const Family& BartFamily();
const Family& BertFamily();
const Family& BloomFamily();
const Family& CohereFamily();
const Family& DebertaV2Family();
const Family& DistilBertFamily();
const Family& FalconFamily();
const Family& Gemma2Family();
const Family& Gemma3Family();
const Family& GemmaFamily();
const Family& Glm4Family();
const Family& GlmFamily();
const Family& Gpt2Family();
const Family& GptBigCodeFamily();
const Family& GptJFamily();
const Family& GptNeoFamily();
const Family& GptNeoXFamily();
const Family& GptOssFamily();
const Family& LlamaFamily();
const Family& M2M100Family();
const Family& MBartFamily();
const Family& MarianFamily();
const Family& MistralFamily();
const Family& MixtralFamily();
const Family& ModernBertFamily();
const Family& MpnetFamily();
const Family& NomicBertFamily();
const Family& OlmoFamily();
const Family& OptFamily();
const Family& PegasusFamily();
const Family& Phi3Family();
const Family& PhiFamily();
const Family& Qwen2Family();
const Family& Qwen2MoeFamily();
const Family& Qwen3Family();
const Family& Qwen3MoeFamily();
const Family& RobertaFamily();
const Family& SmolLm3Family();
const Family& StarCoder2Family();
const Family& T5Family();
const Family& VanillaFamily();
const Family& VitFamily();
const Family& WhisperFamily();

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_FAMILIES_H_
