// What `inspect` prints, as data.
#ifndef LANEWISE_TOOLS_MODEL_SUMMARY_H_
#define LANEWISE_TOOLS_MODEL_SUMMARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/format/checkpoint.h"
#include "nlohmann/json.hpp"

namespace lanewise {

struct TypeTotal {
  std::string type;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

struct ModelSummary {
  std::string kind;          // "GGUF", "safetensors"
  std::string architecture;  // as the file says; "" when it says none
  // Key and value in the order of the file; for a folder those of config.json.
  // Arrays of more than kMaxArray values are cut, with their length.
  std::vector<std::pair<std::string, nlohmann::ordered_json>> metadata;
  std::vector<std::string> files;  // folder: JSON files that are there
  std::vector<TypeTotal> totals;   // by type, most bytes first
  uint64_t parameters = 0;
  uint64_t bytes = 0;
  absl::Status supported;  // why this library cannot run it
  std::string spec;        // SpecToString; "" when there is none
};

// Values of an array in the metadata that are kept.
inline constexpr size_t kMaxArray = 8;

ModelSummary Summarize(const Checkpoint& checkpoint);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_MODEL_SUMMARY_H_
