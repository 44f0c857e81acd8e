// The tokens of a model by text and by id.
#ifndef LANEWISE_MODEL_TOKENIZER_VOCABULARY_H_
#define LANEWISE_MODEL_TOKENIZER_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise {

// No id of any known vocabulary comes near; above it a file is refused.
constexpr int64_t kMaxTokenId = (int64_t{1} << 24) - 1;

class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  // Ids may leave gaps, but not so many that memory is no longer in proportion
  // to the file. `where` begins messages ("file: model.vocab"). Errors: an id
  // out of range or used twice.
  static absl::StatusOr<Vocabulary> Create(
      std::vector<std::pair<std::string, int64_t>> entries,
      absl::string_view where);

  // Ids are positions. Of equal texts the last one is found by text.
  static absl::StatusOr<Vocabulary> FromList(std::vector<std::string> tokens,
                                             absl::string_view where);

  std::optional<int32_t> Find(absl::string_view text) const;
  // "" where there is none.
  absl::string_view Text(int32_t id) const;
  bool Has(int32_t id) const;
  // 1 + the largest id.
  size_t size() const { return tokens_.size(); }

 private:
  std::vector<std::string> tokens_;
  std::vector<bool> present_;
  absl::flat_hash_map<absl::string_view, int32_t> ids_;  // views of tokens_
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_VOCABULARY_H_
