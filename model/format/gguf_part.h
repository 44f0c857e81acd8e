// One file of a GGUF model: what its header says, checked. Internal to gguf.cc.
#ifndef LANEWISE_MODEL_FORMAT_GGUF_PART_H_
#define LANEWISE_MODEL_FORMAT_GGUF_PART_H_

#include "absl/status/statusor.h"
#include "model/format/mapped_file.h"
#include "model/format/metadata.h"
#include "model/format/tensor_store.h"

namespace lanewise {

struct GgufPart {
  Metadata metadata;
  TensorStore store;
};

absl::StatusOr<GgufPart> ReadGgufPart(MappedFile file);

// The key-value pairs of the header. Internal to gguf_part.cc.
class ByteReader;
absl::Status ReadGgufMetadata(ByteReader& reader, uint64_t count,
                              Metadata& metadata, uint64_t& alignment);

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FORMAT_GGUF_PART_H_
