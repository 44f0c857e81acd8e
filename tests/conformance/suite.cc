#include "tests/conformance/suite.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/format/json.h"
#include "model/format/text_file.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/gguf_runner.h"
#include "tests/conformance/kernels/kernel_checks.h"
#include "tests/conformance/model_runner.h"
#include "tests/conformance/real_runner.h"
#include "tests/conformance/template_runner.h"
#include "tests/conformance/tokenizer_runner.h"

namespace lanewise {
namespace {

using Runner = absl::StatusOr<CaseReport> (*)(const std::string& path,
                                              const Context& context);

absl::StatusOr<CaseReport> RunTokenizer(const std::string& folder,
                                        const Context&) {
  return RunTokenizerCase(folder);
}
absl::StatusOr<CaseReport> RunVocabulary(const std::string& path,
                                         const Context&) {
  return RunVocabularyCase(path);
}
absl::StatusOr<CaseReport> RunTemplate(const std::string& path,
                                       const Context&) {
  return RunTemplateCase(path);
}

absl::StatusOr<CaseReport> RunKernels(const std::string& json,
                                      const Context& context) {
  const std::filesystem::path path = json;
  return RunKernelTopic(path.parent_path().string(), path.stem().string(),
                        context);
}

// What case.json names, for the report's columns; nothing is checked here.
std::string Architecture(const std::string& folder) {
  const auto text = ReadTextFile(folder + "/case.json");
  if (!text.ok()) return "";
  const auto json = ParseJson(*text, "case.json");
  if (!json.ok()) return "";
  const auto name = GetStringOr(*json, "case.json", "architecture", "");
  return name.ok() ? *name : "";
}

class Lister {
 public:
  explicit Lister(const SuiteOptions& options) : options_(options) {}

  // Folders in `parent` that hold `file`, at most `depth` levels below it.
  void AddFolders(const std::string& parent, absl::string_view file, int depth,
                  Runner run) {
    for (const std::string& name : Names(parent)) {
      const std::string path = absl::StrCat(parent, "/", name);
      if (FileExists(absl::StrCat(options_.root, "/", path, "/", file))) {
        Add(path, path, run);
      } else if (depth > 1) {
        AddFolders(path, file, depth - 1, run);
      }
    }
  }

  // Files in `parent` whose name ends so; the case is named without it.
  void AddFiles(const std::string& parent, absl::string_view suffix,
                Runner run) {
    for (const std::string& name : Names(parent)) {
      if (!absl::EndsWith(name, suffix)) continue;
      const std::string path = absl::StrCat(parent, "/", name);
      Add(path.substr(0, path.size() - suffix.size()), path, run);
    }
  }

  // Real models: folders with case.json. Those without weights are not run.
  void AddReal(const std::string& parent) {
    for (const std::string& name : Names(parent)) {
      const std::string path = absl::StrCat(parent, "/", name);
      const std::string full = absl::StrCat(options_.root, "/", path);
      if (!FileExists(full + "/case.json")) continue;
      const size_t before = cases_.size();
      Add(path, path, nullptr);
      if (cases_.size() == before) continue;  // filtered
      SuiteCase& one = cases_.back();
      std::string weights = FindRealWeights(full, options_.models);
      const auto carried = options_.weights.find(path);
      if (weights.empty() && carried != options_.weights.end()) {
        weights = carried->second;
      }
      if (weights.empty()) one.not_run = "no weights";
      one.run = [full, weights](const Context& context) {
        return RunRealCase(full, weights, context);
      };
    }
  }

  std::vector<SuiteCase> Take() { return std::move(cases_); }

 private:
  std::vector<std::string> Names(const std::string& folder) const {
    auto names = ListFolder(absl::StrCat(options_.root, "/", folder));
    return names.ok() ? *std::move(names) : std::vector<std::string>();
  }

  void Add(const std::string& name, const std::string& path, Runner run) {
    if (!absl::StrContains(name, options_.filter)) return;
    SuiteCase one;
    one.name = name;
    const std::string full = absl::StrCat(options_.root, "/", path);
    one.architecture = Architecture(full);
    one.run = [full, run](const Context& context) {
      return run(full, context);
    };
    cases_.push_back(std::move(one));
  }

  const SuiteOptions& options_;
  std::vector<SuiteCase> cases_;
};

}  // namespace

std::vector<SuiteCase> ListCases(const SuiteOptions& options) {
  Lister lister(options);
  lister.AddFolders("models", "case.json", 2, RunModelCase);
  lister.AddFolders("gguf", "case.json", 1, RunGgufCase);
  for (const char* folder : {"tokenizers", "tokenizer"}) {
    lister.AddFolders(folder, "tokenizer.json", 1, RunTokenizer);
  }
  lister.AddFiles("vocab", ".gguf", RunVocabulary);
  lister.AddFiles("templates", ".jinja", RunTemplate);
  lister.AddFiles("kernels", ".json", RunKernels);
  lister.AddReal("real");
  return lister.Take();
}

}  // namespace lanewise
