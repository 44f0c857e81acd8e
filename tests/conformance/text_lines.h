// JSON lines of the conformance suite, compared one by one.
#ifndef LANEWISE_TESTS_CONFORMANCE_TEXT_LINES_H_
#define LANEWISE_TESTS_CONFORMANCE_TEXT_LINES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Collects the differences of one line.
class LineCheck {
 public:
  void Compare(const char* what, const std::vector<int32_t>& found,
               const std::vector<int32_t>& expected);
  void Compare(const char* what, const std::string& found,
               const std::string& expected);
  // A value that may be an error.
  template <class T>
  void Compare(const char* what, const absl::StatusOr<T>& found,
               const T& expected) {
    if (found.ok()) {
      Compare(what, *found, expected);
    } else {
      Add(what, found.status().ToString());
    }
  }
  void Add(const char* what, const std::string& difference);

  const std::string& differences() const { return differences_; }

 private:
  std::string differences_;
};

// Fields of a line; empty when there is none of that type.
std::string LineText(const nlohmann::ordered_json& line, const char* key);
std::vector<int32_t> LineIds(const nlohmann::ordered_json& line,
                             const char* key);

// Calls check for every line of the file. A file that is not there has none;
// what is not a JSON object counts as a difference. The keys of objects keep
// their order.
LineCount CompareLines(
    const std::string& path,
    const std::function<void(const nlohmann::ordered_json& line,
                             LineCheck* check)>& check);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_TEXT_LINES_H_
