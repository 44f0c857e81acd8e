#include "tests/conformance/model_cases.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "golden_root.h"
#include "tests/conformance/case_folder.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

// The folder of the whole suite; empty when there is none.
std::string GoldenRoot() {
  const char* named = std::getenv("LANEWISE_GOLDEN");
  return named != nullptr ? named : kGoldenRoot;
}

// Folders in `root` with expected values, of models of the family.
std::vector<std::string> CasesIn(const std::string& root,
                                 const std::string& family) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    if (!fs::exists(entry.path() / "golden.safetensors") ||
        entry.path().filename() == "types") {
      continue;
    }
    const auto folder = CaseFolder::Open(entry.path().string());
    if (folder.ok() && folder->json().value("family", "") == family) {
      folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

std::vector<std::string> ModelCases(const std::string& family) {
  const std::string golden = GoldenRoot();
  return CasesIn(
      golden.empty() ? "tests/data/models" : golden + "/models/" + family,
      family);
}

std::vector<std::string> GgufCases() {
  const std::string golden = GoldenRoot();
  return CasesIn(golden.empty() ? "tests/data/gguf" : golden + "/gguf", "gguf");
}

std::string CaseTestName(const testing::TestParamInfo<std::string>& param) {
  const fs::path path = param.param;
  std::string name =
      path.parent_path().filename().string() + "_" + path.filename().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

void ExpectReferenceOnEveryTarget(
    absl::FunctionRef<absl::StatusOr<CaseReport>(const Context& context)> run) {
  for (const Target& target : Target::Available()) {
    SCOPED_TRACE(std::string(target.name()));
    Context::Options options;
    options.target = target;
    const auto context = Context::Create(options);
    ASSERT_TRUE(context.ok()) << context.status();
    const absl::StatusOr<CaseReport> report = run(**context);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_FALSE(report->comparisons.empty());
    EXPECT_TRUE(report->passed()) << report->Failures();
    std::printf(
        "%s on %s: %zu comparisons, largest error %.2g, %zu runs "
        "skipped\n",
        report->name.c_str(), std::string(target.name()).c_str(),
        report->comparisons.size(), report->LargestError(),
        report->skipped.size());
  }
}

}  // namespace lanewise
