// Stages from their objects in a tokenizer.json. Internal to this folder.
#ifndef LANEWISE_MODEL_TOKENIZER_TOKENIZER_JSON_STAGES_H_
#define LANEWISE_MODEL_TOKENIZER_TOKENIZER_JSON_STAGES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/json_field.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/post_processor.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/token_model.h"

namespace lanewise {

// Sequences within sequences at most this deep.
constexpr int kMaxStageDepth = 8;

// An absent or null field is no stage: a null pointer, or the default
// post-processor. An unknown type is UNIMPLEMENTED and named.
absl::StatusOr<NormalizerPtr> ReadNormalizer(const JsonField& field,
                                             int depth = 0);
absl::StatusOr<PreTokenizerPtr> ReadPreTokenizer(const JsonField& field,
                                                 int depth = 0);
absl::StatusOr<PostProcessor> ReadPostProcessor(const JsonField& field);
absl::StatusOr<DecoderPtr> ReadDecoder(const JsonField& field, int depth = 0);
absl::StatusOr<std::unique_ptr<TokenModel>> ReadTokenModel(
    const JsonField& field);

// {"String": "…"} or {"Regex": "…"}; older files have a bare string.
absl::StatusOr<Pattern> ReadPattern(const JsonField& field);
absl::StatusOr<PrependScheme> ReadPrependScheme(const JsonField& stage);
// "path: a stage of type … is not supported".
absl::Status UnknownStage(const JsonField& field, absl::string_view type);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_TOKENIZER_JSON_STAGES_H_
