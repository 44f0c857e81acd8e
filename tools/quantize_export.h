// A Hugging Face folder's configuration and tokenizer as GGUF metadata.
#ifndef LANEWISE_TOOLS_QUANTIZE_EXPORT_H_
#define LANEWISE_TOOLS_QUANTIZE_EXPORT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/families/family.h"
#include "model/format/checkpoint.h"
#include "model/format/metadata.h"
#include "model/spec.h"

namespace lanewise {

// general.* and <architecture>.*, out of a folder's spec. Read back by the
// family's own reader: UNIMPLEMENTED when that gives another model, since then
// GGUF has no key for something of this one; the message names it.
struct ExportedModel {
  Metadata metadata;
  ModelSpec spec;  // as read back: what the file's tensors are for
  const Family* family = nullptr;  // whose tensors the file has
};
absl::StatusOr<ExportedModel> ExportModel(const std::string& path,
                                          const Family& family,
                                          const ModelSpec& spec);

// What plain frequencies are divided by under Llama 3's scaling, which GGUF
// keeps as the tensor rope_freqs.weight. [rotary_dim / 2]
std::vector<float> RopeFactors(const RopeSpec& rope);

// Adds tokenizer.*: a vocabulary of `vocab_size` tokens, special tokens, chat
// template. The result is read back and must give the ids of the folder's
// tokenizer on a set of texts; UNIMPLEMENTED when GGUF cannot express it.
// Only texts that begin with a space may differ; then a notice says so.
absl::Status ExportTokenizer(const Checkpoint& folder, size_t vocab_size,
                             Metadata* metadata,
                             std::vector<std::string>* notices);

// What says that a file has no tokenizer.
void ExportNoTokenizer(Metadata* metadata);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_QUANTIZE_EXPORT_H_
