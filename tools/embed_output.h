// How `embed` writes vectors and cosines.
#ifndef LANEWISE_TOOLS_EMBED_OUTPUT_H_
#define LANEWISE_TOOLS_EMBED_OUTPUT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/embed_options.h"

namespace lanewise {

struct EmbedRow {
  absl::string_view text;
  size_t tokens = 0;
  absl::Span<const float> values;  // a vector, or with --similarity cosines
};

// One row in the format that was asked for.
std::string RowText(const EmbedOptions& options, const EmbedRow& row);

// Cosines of vector `index` with all of `vectors` [texts, width]; 0 where one
// of the two is zero.
std::vector<float> Cosines(absl::Span<const float> vectors, size_t width,
                           size_t index);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_EMBED_OUTPUT_H_
