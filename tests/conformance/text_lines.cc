#include "tests/conformance/text_lines.h"

#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lanewise {
namespace {

constexpr int kShown = 3;         // lines with differences
constexpr size_t kLength = 400;   // of a value that is shown
constexpr size_t kExcerpt = 200;  // of a line

// Of two long texts, from shortly before their first difference.
size_t Start(const std::string& a, const std::string& b) {
  size_t i = 0;
  while (i < a.size() && i < b.size() && a[i] == b[i]) ++i;
  return i > 40 ? i - 40 : 0;
}

}  // namespace

void LineCheck::Add(const char* what, const std::string& difference) {
  absl::StrAppend(&differences_, "\n  ", what, ": ", difference);
}

void LineCheck::Compare(const char* what, const std::vector<int32_t>& found,
                        const std::vector<int32_t>& expected) {
  if (found == expected) return;
  Add(what, absl::StrCat("\n    expected ",
                         absl::StrJoin(expected, " ").substr(0, kLength),
                         "\n    found    ",
                         absl::StrJoin(found, " ").substr(0, kLength)));
}

void LineCheck::Compare(const char* what, const std::string& found,
                        const std::string& expected) {
  if (found == expected) return;
  const size_t start = Start(found, expected);
  Add(what, absl::StrCat("\n    expected ",
                         absl::CHexEscape(expected.substr(start, kLength)),
                         "\n    found    ",
                         absl::CHexEscape(found.substr(start, kLength))));
}

std::string LineText(const nlohmann::ordered_json& line, const char* key) {
  const auto field = line.find(key);
  return field != line.end() && field->is_string() ? field->get<std::string>()
                                                   : "";
}

std::vector<int32_t> LineIds(const nlohmann::ordered_json& line,
                             const char* key) {
  std::vector<int32_t> ids;
  const auto field = line.find(key);
  if (field == line.end() || !field->is_array()) return ids;
  for (const nlohmann::ordered_json& id : *field) {
    ids.push_back(id.is_number_integer() ? id.get<int32_t>() : -1);
  }
  return ids;
}

LineCount CompareLines(
    const std::string& path,
    const std::function<void(const nlohmann::ordered_json& line,
                             LineCheck* check)>& check) {
  LineCount count;
  std::ifstream file(path);
  std::string text;
  while (std::getline(file, text)) {
    if (text.empty()) continue;
    ++count.cases;
    LineCheck result;
    const auto line = nlohmann::ordered_json::parse(text, nullptr, false);
    if (line.is_object()) {
      check(line, &result);
    } else {
      result.Add("line", "not a JSON object");
    }
    if (result.differences().empty()) {
      ++count.equal;
    } else if (count.cases - count.equal <= kShown) {
      absl::StrAppend(&count.differences, text.substr(0, kExcerpt),
                      result.differences(), "\n");
    }
  }
  return count;
}

}  // namespace lanewise
