// How `classify` writes what it found in a text.
#ifndef LANEWISE_TOOLS_CLASSIFY_OUTPUT_H_
#define LANEWISE_TOOLS_CLASSIFY_OUTPUT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "lanewise/engine.h"

namespace lanewise {

// A line for each finding; `behind` ends each of them.
std::string FindingLines(const Classification& output, const std::string& text,
                         absl::string_view behind);

// One object in one line.
std::string FindingsJson(ClassifyTask task, const Classification& output,
                         const std::string& text);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_CLASSIFY_OUTPUT_H_
