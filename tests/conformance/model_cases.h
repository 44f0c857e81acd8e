// The cases of tests that are instantiated for each model of a kind, and what
// such tests check.
//
//   class EncoderTest : public testing::TestWithParam<std::string> {};
//   TEST_P(EncoderTest, EqualsReference) {
//     ExpectReferenceOnEveryTarget([](const Context& context) {
//       return RunEncoderCase(GetParam(), context);
//     });
//   }
//   INSTANTIATE_TEST_SUITE_P(Models, EncoderTest,
//                            testing::ValuesIn(ModelCases("encoder")),
//                            CaseTestName);
#ifndef LANEWISE_TESTS_CONFORMANCE_MODEL_CASES_H_
#define LANEWISE_TESTS_CONFORMANCE_MODEL_CASES_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "simd/context.h"
#include "tests/conformance/case_report.h"

namespace lanewise {

// Folders with models of a family ("decoder", "encoder", "encoder-decoder") in
// the tree, or where LANEWISE_GOLDEN names the whole suite all of its; sorted.
std::vector<std::string> ModelCases(const std::string& family);

// The same of GGUF files.
std::vector<std::string> GgufCases();

// The last two folders of a case's path, as gtest wants names.
std::string CaseTestName(const testing::TestParamInfo<std::string>& param);

// All comparisons of the case pass on every target here, and there are some.
void ExpectReferenceOnEveryTarget(
    absl::FunctionRef<absl::StatusOr<CaseReport>(const Context& context)> run);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_CONFORMANCE_MODEL_CASES_H_
