// One JSON object a line, as all programs print them.
#ifndef LANEWISE_TOOLS_JSON_LINE_H_
#define LANEWISE_TOOLS_JSON_LINE_H_

#include <string>

#include "nlohmann/json.hpp"

namespace lanewise {

// The object and a newline; bytes that are no UTF-8 become U+FFFD.
std::string JsonLine(const nlohmann::ordered_json& json);

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_JSON_LINE_H_
