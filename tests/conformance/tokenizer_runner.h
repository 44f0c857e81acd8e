// Checks tokenizers against recorded encodings: JSON lines as the conformance
// suite has them, or the texts and ids beside a vocabulary in GGUF form.
#ifndef LANEWISE_TESTS_CONFORMANCE_TOKENIZER_RUNNER_H_
#define LANEWISE_TESTS_CONFORMANCE_TOKENIZER_RUNNER_H_

#include <string>

#include "absl/status/statusor.h"
#include "model/tokenizer/tokenizer.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

struct GoldenCounts {
  LineCount encode;  // ids, ids without special tokens, decoded
  LineCount pairs;
  LineCount decode;
  LineCount bytes;  // invalid UTF-8
};

// All files that a folder has.
GoldenCounts CompareGoldens(const Tokenizer& tokenizer,
                            const std::string& folder);

// One encode.jsonl. `decoded` is the text of `ids`, or of `ids_plain`.
LineCount CompareEncodeFile(const Tokenizer& tokenizer, const std::string& path,
                            bool decoded_is_plain = false);

// Texts and ids of the vocabulary file at `path`: `.inp` and `.out` beside it.
absl::StatusOr<LineCount> CompareVocabulary(const std::string& path);

// A folder with tokenizer.json and what CompareGoldens reads.
absl::StatusOr<CaseReport> RunTokenizerCase(const std::string& folder);

// Adds the counts of CompareGoldens, each file one comparison of the run
// "tokenizer".
void AddGoldens(const GoldenCounts& counts, CaseReport* report);

absl::StatusOr<CaseReport> RunVocabularyCase(const std::string& path);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_TOKENIZER_RUNNER_H_
