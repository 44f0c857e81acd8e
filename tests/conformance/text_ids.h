// The texts of a model's case, tokenized.
#ifndef LANEWISE_TESTS_CONFORMANCE_TEXT_IDS_H_
#define LANEWISE_TESTS_CONFORMANCE_TEXT_IDS_H_

#include "model/tokenizer/tokenizer.h"
#include "tests/conformance/case_report.h"
#include "tests/conformance/run_params.h"

namespace lanewise {

// The ids of a text or pair as the reference encodes it, with special tokens
// around it, and their types where the suite has them.
void CompareTextIds(const Tokenizer& tokenizer, const TextRun& text,
                    CaseReport* report);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_TEXT_IDS_H_
