#include "tests/conformance/tokenizer_runner.h"

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/format/checkpoint.h"
#include "model/format/json.h"
#include "model/format/text_file.h"
#include "nlohmann/json.hpp"
#include "simd/status_macros.h"
#include "tests/conformance/text_lines.h"

namespace lanewise {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<int32_t>;

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

// Whether the line has texts and ids under these names; adds what it lacks.
bool Has(const Json& line, std::initializer_list<const char*> texts,
         std::initializer_list<const char*> ids, LineCheck* check) {
  const size_t before = check->differences().size();
  for (const char* key : texts) {
    if (!line.contains(key) || !line[key].is_string())
      check->Add(key, "no text");
  }
  for (const char* key : ids) {
    if (!line.contains(key) || !line[key].is_array()) check->Add(key, "no ids");
  }
  return check->differences().size() == before;
}

void CheckEncode(const Tokenizer& tokenizer, bool decoded_is_plain,
                 const Json& line, LineCheck* check) {
  if (!Has(line, {"text"}, {"ids"}, check)) return;
  const Options options;
  const std::string text = LineText(line, "text");
  const Ids ids = LineIds(line, "ids");
  check->Compare("ids", tokenizer.Encode(text, options.with), ids);
  const Ids ids_plain = LineIds(line, "ids_plain");
  if (line.contains("ids_plain")) {
    check->Compare("ids_plain", tokenizer.Encode(text, options.plain),
                   ids_plain);
  }
  if (line.contains("decoded")) {
    check->Compare("decoded",
                   tokenizer.Decode(decoded_is_plain ? ids_plain : ids, {}),
                   LineText(line, "decoded"));
  }
  if (line.contains("decoded_skip")) {
    check->Compare("decoded_skip", tokenizer.Decode(ids, options.skip),
                   LineText(line, "decoded_skip"));
  }
  if (line.contains("decoded_plain")) {
    check->Compare("decoded_plain", tokenizer.Decode(ids_plain, {}),
                   LineText(line, "decoded_plain"));
  }
}

void CheckPair(const Tokenizer& tokenizer, const Json& line, LineCheck* check) {
  if (!Has(line, {"text", "pair"}, {"ids", "type_ids"}, check)) return;
  const Options options;
  const std::string first = LineText(line, "text");
  const std::string second = LineText(line, "pair");
  Ids type_ids;
  check->Compare("ids",
                 tokenizer.EncodePair(first, second, options.with, &type_ids),
                 LineIds(line, "ids"));
  check->Compare("type_ids", type_ids, LineIds(line, "type_ids"));
  if (!line.contains("ids_plain")) return;
  check->Compare("ids_plain",
                 tokenizer.EncodePair(first, second, options.plain, &type_ids),
                 LineIds(line, "ids_plain"));
  if (line.contains("type_ids_plain")) {
    check->Compare("type_ids_plain", type_ids, LineIds(line, "type_ids_plain"));
  }
}

void CheckDecode(const Tokenizer& tokenizer, const Json& line,
                 LineCheck* check) {
  if (!Has(line, {"decoded", "decoded_skip"}, {"ids"}, check)) return;
  const Ids ids = LineIds(line, "ids");
  check->Compare("decoded", tokenizer.Decode(ids, {}),
                 LineText(line, "decoded"));
  check->Compare("decoded_skip", tokenizer.Decode(ids, Options().skip),
                 LineText(line, "decoded_skip"));
}

void CheckBytes(const Tokenizer& tokenizer, const Json& line,
                LineCheck* check) {
  if (!Has(line, {"decoded_plain"}, {"ids_plain"}, check)) return;
  std::string bytes;
  if (!absl::HexStringToBytes(LineText(line, "bytes_hex"), &bytes)) {
    check->Add("bytes_hex", "not hexadecimal");
    return;
  }
  const Ids ids = LineIds(line, "ids_plain");
  check->Compare("ids_plain", tokenizer.Encode(bytes, Options().plain), ids);
  check->Compare("decoded_plain", tokenizer.Decode(ids, {}),
                 LineText(line, "decoded_plain"));
}

}  // namespace

LineCount CompareEncodeFile(const Tokenizer& tokenizer, const std::string& path,
                            bool decoded_is_plain) {
  return CompareLines(path, [&](const Json& line, LineCheck* check) {
    CheckEncode(tokenizer, decoded_is_plain, line, check);
  });
}

GoldenCounts CompareGoldens(const Tokenizer& tokenizer,
                            const std::string& folder) {
  const auto compare = [&](const char* file, auto check_line) {
    return CompareLines(absl::StrCat(folder, "/", file),
                        [&](const Json& line, LineCheck* check) {
                          check_line(tokenizer, line, check);
                        });
  };
  GoldenCounts counts;
  counts.encode =
      CompareEncodeFile(tokenizer, absl::StrCat(folder, "/encode.jsonl"));
  counts.pairs = compare("pairs.jsonl", CheckPair);
  counts.decode = compare("decode.jsonl", CheckDecode);
  counts.bytes = compare("bytes.jsonl", CheckBytes);
  return counts;
}

absl::StatusOr<LineCount> CompareVocabulary(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(path));
  LANEWISE_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(*checkpoint));
  LANEWISE_ASSIGN_OR_RETURN(const std::string in, ReadTextFile(path + ".inp"));
  LANEWISE_ASSIGN_OR_RETURN(std::string out, ReadTextFile(path + ".out"));
  const std::vector<std::string> texts =
      absl::StrSplit(in, "\n__ggml_vocab_test__\n");
  std::vector<std::string> lines = absl::StrSplit(out, '\n');
  // The last text ends the file or is empty.
  if (lines.size() > texts.size()) lines.resize(texts.size());
  EncodeOptions options;
  options.add_special_tokens = false;
  LineCount count;
  for (size_t i = 0; i < lines.size(); ++i) {
    Ids expected;
    for (const auto word : absl::StrSplit(lines[i], ' ', absl::SkipEmpty())) {
      int32_t id = -1;
      if (!absl::SimpleAtoi(word, &id)) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ".out: line ", i + 1, ": not ids"));
      }
      expected.push_back(id);
    }
    LineCheck check;
    check.Compare("ids", tokenizer->Encode(texts[i], options), expected);
    ++count.cases;
    count.equal += check.differences().empty();
    absl::StrAppend(&count.differences, check.differences());
  }
  return count;
}

void AddGoldens(const GoldenCounts& counts, CaseReport* report) {
  const auto add = [&](const char* file, const LineCount& count) {
    if (count.cases > 0) AddLines({"tokenizer", file}, count, report);
  };
  AddLines({"tokenizer", "encode"}, counts.encode, report);
  add("pairs", counts.pairs);
  add("decode", counts.decode);
  add("bytes", counts.bytes);
}

absl::StatusOr<CaseReport> RunTokenizerCase(const std::string& folder) {
  const std::string file = folder + "/tokenizer.json";
  LANEWISE_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(file));
  LANEWISE_ASSIGN_OR_RETURN(const auto tokenizer,
                            Tokenizer::FromJson(json, file));
  CaseReport report;
  report.name = std::filesystem::path(folder).filename().string();
  LANEWISE_ASSIGN_OR_RETURN(const auto parsed, ParseJson(json, file));
  LANEWISE_ASSIGN_OR_RETURN(const auto* model,
                            GetObject(parsed, file, "model"));
  LANEWISE_ASSIGN_OR_RETURN(report.architecture,
                            GetStringOr(*model, file, "type", "BPE"));
  AddGoldens(CompareGoldens(*tokenizer, folder), &report);
  return report;
}

absl::StatusOr<CaseReport> RunVocabularyCase(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const LineCount count, CompareVocabulary(path));
  CaseReport report;
  report.name = std::filesystem::path(path).filename().string();
  AddLines({"tokenizer", "ids"}, count, &report);
  return report;
}

}  // namespace lanewise
