// A page that shows attention weights as heat maps: one HTML file without
// references to others, for light and dark screens.
#ifndef LANEWISE_TOOLS_ATTENTION_PAGE_H_
#define LANEWISE_TOOLS_ATTENTION_PAGE_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/attention_map.h"

namespace lanewise {

struct AttentionPage {
  std::string title;
  std::vector<std::string> tokens;  // of rows and keys
  absl::Span<const AttentionMap> maps;
};

// `tokens` and `title` may be any bytes: they are shown, never run.
std::string AttentionHtml(const AttentionPage& page);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_ATTENTION_PAGE_H_
