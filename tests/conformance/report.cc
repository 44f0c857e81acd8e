#include "tests/conformance/report.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "simd/context.h"
#include "simd/status_macros.h"
#include "simd/target.h"
#include "tests/conformance/report_table.h"
#include "tests/conformance/suite.h"
#include "tools/escaped.h"
#include "tools/flags.h"
#include "tools/output.h"
#include "tools/output_file.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kIntroduction =
    R"(Runs a conformance suite and reports every case: models, GGUF files,
tokenizers, vocabularies, chat templates and single operations against the
recorded outputs of a reference implementation, with f32 activations and cache.

  report
  report --suite ~/golden --markdown report.md --json report.json
  report --filter models/decoder --target AVX2
  report --filter real --models ~/models

Each line: the case, its architecture, how its weights are stored, how many
outputs were compared, the largest error of a logit or hidden value (in standard
deviations of the reference's values; 1e-3 is allowed), and PASS or FAIL with
the first reason. Token ids and texts are equal or fail.

Exit codes: 0 all cases pass, 1 not all do, 2 wrong usage.
)";

struct Options {
  std::string suite;
  std::string filter;
  std::string target;
  std::string models;
  std::string json;
  std::string markdown;
  size_t threads = 0;
};

absl::Status ParseFlags(const Invocation& call, FlagSet* flags,
                        Options* options) {
  flags->Section("Flags");
  flags->Add({"suite", "DIR", "the suite (default: the part in the tree)"},
             &options->suite);
  flags->Add({"filter", "TEXT", "only cases whose name holds TEXT"},
             &options->filter);
  flags->Add(
      {"models", "DIR",
       "weights of the real models, by the names of their cases (default: "
       "$LANEWISE_MODELS); a case without weights is not run and not "
       "counted"},
      &options->models);
  flags->Add({"target", "NAME",
              "instruction set, e.g. AVX2 (default: the best of this machine)"},
             &options->target);
  flags->Add({"threads", "N", "threads; 0: as many as this process may use"},
             &options->threads, 0, Context::kMaxThreads);
  flags->Add({"json", "FILE", "write all comparisons to FILE"}, &options->json);
  flags->Add({"markdown", "FILE", "write the table to FILE"},
             &options->markdown);
  std::vector<std::string> positional;
  LANEWISE_RETURN_IF_ERROR(flags->Parse(call.arguments, &positional));
  if (flags->help_requested() || positional.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected only flags, found \"", Escaped(positional[0]),
                   "\": name a suite with --suite"));
}

absl::StatusOr<std::string> Folder(absl::string_view flag,
                                   const std::string& value) {
  std::string folder = ResolvePath(value);
  std::error_code error;
  if (fs::is_directory(folder, error)) return folder;
  return absl::NotFoundError(
      absl::StrCat("--", flag, ": ", folder, ": no such folder"));
}

// A file that the program carries, found as a default model is.
absl::StatusOr<std::string> Carried(const Invocation& call,
                                    const std::string& runfile) {
  Invocation found = call;
  found.default_model = runfile;
  return ModelPath(found, "");
}

absl::StatusOr<SuiteOptions> ReadOptions(const Invocation& call,
                                         const ReportData& data,
                                         const Options& options) {
  SuiteOptions out;
  out.filter = options.filter;
  if (!options.models.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(out.models, Folder("models", options.models));
  }
  for (const auto& [name, runfile] : data.models) {
    const auto file = Carried(call, runfile);
    if (!file.ok()) continue;
    const fs::path path = *file;
    out.weights[name] =
        path.filename() == "config.json" ? path.parent_path().string() : *file;
  }
  if (!options.suite.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(out.root, Folder("suite", options.suite));
    return out;
  }
  const auto file = Carried(call, data.suite_file);
  if (!file.ok()) {
    return absl::NotFoundError(
        "the suite of the tree is not beside this program: name one with "
        "--suite DIR");
  }
  out.root = fs::path(*file).parent_path().parent_path().string();
  return out;
}

absl::StatusOr<std::unique_ptr<Context>> MakeContext(const Options& options) {
  Context::Options out;
  out.threads = options.threads;
  if (!options.target.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(out.target, Target::FromName(options.target));
  }
  return Context::Create(out);
}

// Messages name files; in a row of the case that goes without saying.
void ShortenPaths(const std::string& root, CaseRow* row) {
  row->reason = absl::StrReplaceAll(
      row->reason, {{absl::StrCat(root, "/", row->name, ": "), ""},
                    {absl::StrCat(root, "/", row->name, "/"), ""},
                    {absl::StrCat(root, "/"), ""}});
}

CaseRow RunCase(const SuiteCase& one, const Context& context) {
  if (!one.not_run.empty()) return NotRunRow(one);
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<CaseReport> report = one.run(context);
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  return MakeRow(one, std::move(report), taken.count());
}

std::vector<CaseRow> RunAll(const Invocation& call, const Context& context,
                            const std::string& root,
                            const std::vector<SuiteCase>& cases, Output* out) {
  const ReportTable table(cases);
  out->Write(table.Heading());
  ProgressLine progress(call.io.err, "case");
  std::vector<CaseRow> rows;
  for (const SuiteCase& one : cases) {
    progress.Update(rows.size(), cases.size());
    rows.push_back(RunCase(one, context));
    ShortenPaths(root, &rows.back());
    progress.Clear();
    out->Write(table.Line(rows.back()));
  }
  return rows;
}

// Null where none is asked for. Made before the work is done, so that what
// cannot be written is known then.
struct Files {
  std::unique_ptr<OutputFile> json, markdown;
};

absl::Status OpenFiles(const Options& options, Files* files) {
  if (!options.json.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(files->json,
                              OutputFile::Create(ResolvePath(options.json)));
  }
  if (!options.markdown.empty()) {
    LANEWISE_ASSIGN_OR_RETURN(
        files->markdown, OutputFile::Create(ResolvePath(options.markdown)));
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& text, OutputFile* file) {
  if (file == nullptr) return absl::OkStatus();
  LANEWISE_RETURN_IF_ERROR(file->Write(text));
  return file->Finish();
}

absl::Status WriteFiles(const ReportHeader& header,
                        const std::vector<CaseRow>& rows, Files* files) {
  LANEWISE_RETURN_IF_ERROR(
      WriteFile(JsonReport(header, rows), files->json.get()));
  return WriteFile(MarkdownReport(header, rows), files->markdown.get());
}

}  // namespace

int Report(const Invocation& call, const ReportData& data) {
  Options options;
  const char* models = std::getenv("LANEWISE_MODELS");
  if (models != nullptr) options.models = models;
  FlagSet flags;
  const absl::Status parsed = ParseFlags(call, &flags, &options);
  if (flags.help_requested()) return PrintHelp(call, kIntroduction, flags);
  if (!parsed.ok()) return FailUsage(call, parsed);
  const auto suite = ReadOptions(call, data, options);
  if (!suite.ok()) return FailUsage(call, suite.status());
  const auto context = MakeContext(options);
  if (!context.ok()) return FailUsage(call, context.status());
  const std::vector<SuiteCase> cases = ListCases(*suite);
  if (cases.empty()) {
    return FailUsage(call, absl::NotFoundError(absl::StrCat(
                               suite->root, ": no case",
                               options.filter.empty() ? "" : " of that name",
                               " is in this suite")));
  }
  Files files;
  const absl::Status opened = OpenFiles(options, &files);
  if (!opened.ok()) return Fail(call, opened);

  Output out(call.io.out);
  const std::vector<CaseRow> rows =
      RunAll(call, **context, suite->root, cases, &out);
  const CaseTotals totals = Total(rows);
  const ReportHeader header{suite->root,
                            std::string((*context)->target().name()),
                            (*context)->threads()};
  const absl::Status written = WriteFiles(header, rows, &files);
  if (!written.ok()) Fail(call, written);
  out.Write(absl::StrCat(TotalLine(totals), "\n"));
  if (!out.status().ok()) return Fail(call, out.status());
  return written.ok() && totals.passed == totals.run && totals.run > 0
             ? kExitOk
             : kExitError;
}

}  // namespace lanewise
