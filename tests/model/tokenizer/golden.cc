#include "tests/model/tokenizer/golden.h"

#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lanewise {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

constexpr int kPrinted = 3;  // differences of each file

Ids GetIds(const json& line, const char* key) {
  return line.value(key, json::array()).get<Ids>();
}

// Collects differences of one case.
class Case {
 public:
  template <typename T>
  void Compare(const char* what, const T& found, const T& expected) {
    if (found == expected) return;
    absl::StrAppend(&differences_, "\n  ", what, "\n    expected ",
                    Show(expected), "\n    found    ", Show(found));
  }
  void CompareEncoded(const char* what, const absl::StatusOr<Ids>& found,
                      const Ids& expected) {
    if (!found.ok()) {
      absl::StrAppend(&differences_, "\n  ", what, ": ",
                      found.status().ToString());
      return;
    }
    Compare(what, *found, expected);
  }
  const std::string& differences() const { return differences_; }

 private:
  static std::string Show(const Ids& ids) {
    return absl::StrJoin(ids, " ").substr(0, 400);
  }
  static std::string Show(const std::string& text) {
    return absl::CHexEscape(text).substr(0, 400);
  }
  std::string differences_;
};

GoldenCount CompareFile(const std::string& path,
                        const std::function<void(const json&, Case*)>& check) {
  GoldenCount count;
  std::ifstream file(path);
  std::string text;
  int printed = 0;
  while (std::getline(file, text)) {
    if (text.empty()) continue;
    const json line = json::parse(text, nullptr, false);
    if (line.is_discarded()) {
      ADD_FAILURE() << path << ": not JSON: " << text.substr(0, 80);
      continue;
    }
    ++count.cases;
    Case result;
    check(line, &result);
    if (result.differences().empty()) {
      ++count.equal;
    } else if (printed++ < kPrinted) {
      std::cout << path << " " << text.substr(0, 200) << result.differences()
                << std::endl;
    }
  }
  return count;
}

struct Options {
  EncodeOptions with;   // as the reference encodes
  EncodeOptions plain;  // the same without special tokens around the text
  DecodeOptions skip;
  Options() {
    with.parse_special_tokens = true;
    plain.parse_special_tokens = true;
    plain.add_special_tokens = false;
    skip.skip_special_tokens = true;
  }
};

}  // namespace

GoldenCount CompareEncodeFile(const Tokenizer& tokenizer,
                              const std::string& path, bool decoded_is_plain) {
  const Options options;
  return CompareFile(path, [&](const json& line, Case* result) {
    const std::string text = line["text"];
    const Ids ids = GetIds(line, "ids");
    result->CompareEncoded("ids", tokenizer.Encode(text, options.with), ids);
    const Ids ids_plain = GetIds(line, "ids_plain");
    if (line.contains("ids_plain")) {
      result->CompareEncoded("ids_plain", tokenizer.Encode(text, options.plain),
                             ids_plain);
    }
    if (line.contains("decoded")) {
      const Ids& decoded = decoded_is_plain ? ids_plain : ids;
      result->Compare("decoded", tokenizer.Decode(decoded, {}),
                      line["decoded"].get<std::string>());
    }
    if (line.contains("decoded_skip")) {
      result->Compare("decoded_skip", tokenizer.Decode(ids, options.skip),
                      line["decoded_skip"].get<std::string>());
    }
    if (line.contains("decoded_plain")) {
      result->Compare("decoded_plain", tokenizer.Decode(ids_plain, {}),
                      line["decoded_plain"].get<std::string>());
    }
  });
}

GoldenCounts CompareGoldens(const Tokenizer& tokenizer,
                            const std::string& folder) {
  const Options options;
  GoldenCounts counts;
  counts.encode =
      CompareEncodeFile(tokenizer, absl::StrCat(folder, "/encode.jsonl"));
  counts.pairs = CompareFile(
      absl::StrCat(folder, "/pairs.jsonl"),
      [&](const json& line, Case* result) {
        const std::string first = line["text"], second = line["pair"];
        Ids type_ids;
        result->CompareEncoded(
            "ids", tokenizer.EncodePair(first, second, options.with, &type_ids),
            GetIds(line, "ids"));
        result->Compare("type_ids", type_ids, GetIds(line, "type_ids"));
        if (!line.contains("ids_plain")) return;
        result->CompareEncoded(
            "ids_plain",
            tokenizer.EncodePair(first, second, options.plain, &type_ids),
            GetIds(line, "ids_plain"));
        if (line.contains("type_ids_plain")) {
          result->Compare("type_ids_plain", type_ids,
                          GetIds(line, "type_ids_plain"));
        }
      });
  counts.decode = CompareFile(
      absl::StrCat(folder, "/decode.jsonl"),
      [&](const json& line, Case* result) {
        const Ids ids = GetIds(line, "ids");
        result->Compare("decoded", tokenizer.Decode(ids, {}),
                        line["decoded"].get<std::string>());
        result->Compare("decoded_skip", tokenizer.Decode(ids, options.skip),
                        line["decoded_skip"].get<std::string>());
      });
  counts.bytes = CompareFile(
      absl::StrCat(folder, "/bytes.jsonl"),
      [&](const json& line, Case* result) {
        std::string bytes;
        ASSERT_TRUE(absl::HexStringToBytes(line["bytes_hex"].get<std::string>(),
                                           &bytes));
        const Ids ids = GetIds(line, "ids_plain");
        result->CompareEncoded("ids_plain",
                               tokenizer.Encode(bytes, options.plain), ids);
        result->Compare("decoded_plain", tokenizer.Decode(ids, {}),
                        line["decoded_plain"].get<std::string>());
      });
  return counts;
}

std::string ReadTestFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    ADD_FAILURE() << "cannot read " << path;
    return "";
  }
  return std::string(std::istreambuf_iterator<char>(file),
                     std::istreambuf_iterator<char>());
}

std::string TestDataPath(const std::string& path) {
  return absl::StrCat("tests/data/tokenizer/", path);
}

std::unique_ptr<Tokenizer> LoadTestTokenizer(const std::string& name) {
  auto tokenizer = Tokenizer::FromJson(
      ReadTestFile(TestDataPath(name + "/tokenizer.json")), "tokenizer.json");
  if (!tokenizer.ok()) {
    ADD_FAILURE() << name << ": " << tokenizer.status();
    return nullptr;
  }
  return *std::move(tokenizer);
}

}  // namespace lanewise
