// Tokenizers and files of tests/data/tokenizer.
#ifndef LANEWISE_TESTS_MODEL_TOKENIZER_GOLDEN_H_
#define LANEWISE_TESTS_MODEL_TOKENIZER_GOLDEN_H_

#include <memory>
#include <string>

#include "model/tokenizer/tokenizer.h"
#include "tests/conformance/tokenizer_runner.h"

namespace lanewise {

// All cases of all files equal the reference; a difference is a test failure
// that shows it.
void ExpectEqual(const GoldenCounts& counts);

// Contents of a file; a test failure and "" when it cannot be read.
std::string ReadTestFile(const std::string& path);

// `tests/data/tokenizer/…` of this repository.
std::string TestDataPath(const std::string& path);

// The tokenizer of a folder there; a test failure and null when it does not
// load.
std::unique_ptr<Tokenizer> LoadTestTokenizer(const std::string& name);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_MODEL_TOKENIZER_GOLDEN_H_
