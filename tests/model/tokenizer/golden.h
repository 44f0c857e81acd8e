// Recorded encodings: JSON lines as the conformance suite has them, one case a
// line, compared with a tokenizer.
#ifndef LANEWISE_TESTS_MODEL_TOKENIZER_GOLDEN_H_
#define LANEWISE_TESTS_MODEL_TOKENIZER_GOLDEN_H_

#include <cstddef>
#include <memory>
#include <string>

#include "model/tokenizer/tokenizer.h"

namespace lanewise {

struct GoldenCount {
  size_t cases = 0;
  size_t equal = 0;
};

struct GoldenCounts {
  GoldenCount encode;  // ids, ids without special tokens, decoded
  GoldenCount pairs;
  GoldenCount decode;
  GoldenCount bytes;  // invalid UTF-8
};

// All files that a folder has; the first few differences are printed.
GoldenCounts CompareGoldens(const Tokenizer& tokenizer,
                            const std::string& folder);

// One encode.jsonl. `decoded` is the text of `ids`, or of `ids_plain`.
GoldenCount CompareEncodeFile(const Tokenizer& tokenizer,
                              const std::string& path,
                              bool decoded_is_plain = false);

// Contents of a file; a test failure and "" when it cannot be read.
std::string ReadTestFile(const std::string& path);

// `tests/data/tokenizer/…` of this repository.
std::string TestDataPath(const std::string& path);

// The tokenizer of a folder there; a test failure and null when it does not
// load.
std::unique_ptr<Tokenizer> LoadTestTokenizer(const std::string& name);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_MODEL_TOKENIZER_GOLDEN_H_
