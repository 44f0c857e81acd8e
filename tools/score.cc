#include "tools/score.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lanewise/engine.h"
#include "simd/status_macros.h"
#include "tools/engine_setup.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/score_options.h"
#include "tools/score_output.h"

namespace lanewise {
namespace {

// What is wrong with one text and says nothing about the next.
bool IsOfTheText(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
}

class Program {
 public:
  Program(const Invocation& call, const ScoreOptions& options)
      : call_(call), options_(options), out_(call.io.out) {}

  int Run() {
    absl::Status status = Prepare();
    if (!status.ok()) return Fail(call_, status);
    status = options_.lines ? ScoreLines() : ScoreOne();
    if (status.ok()) status = out_.status();
    if (!status.ok()) return Fail(call_, status);
    if (options_.stats) {
      Output(call_.io.err).Write(StatsText(*engine_, totals_));
    }
    return failed_ ? kExitError : kExitOk;
  }

 private:
  absl::Status Prepare() {
    if (!options_.text.empty()) {
      text_ = options_.text[0];
    } else if (options_.file.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(text_, ReadTextFile(call_, *options_.file));
    } else {
      LANEWISE_ASSIGN_OR_RETURN(text_, ReadStandardInput(call_));
    }
    if (text_.empty() && !options_.lines) {
      return absl::InvalidArgumentError(
          "the text is empty: give one as an argument, with --file FILE or by "
          "a pipe");
    }
    LANEWISE_ASSIGN_OR_RETURN(path_, ModelPath(call_, options_.model));
    LANEWISE_ASSIGN_OR_RETURN(engine_,
                              LoadEngine(call_, path_, options_.engine));
    if (options_.request.stride >= engine_->context_length()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--stride: expected less than the context of ",
                       engine_->context_length(), " tokens, found ",
                       options_.request.stride));
    }
    return absl::OkStatus();
  }

  absl::Status ScoreOne() {
    ProgressLine progress(call_.io.err, "scoring: tokens");
    ScoreCallbacks callbacks;
    callbacks.on_progress = [&progress](size_t done, size_t total) {
      progress.Update(done, total);
    };
    const InterruptScope interrupt;
    LANEWISE_ASSIGN_OR_RETURN(const ScoreResult result,
                              ScoreThe(text_, interrupt, std::move(callbacks)));
    progress.Clear();
    out_.Write(options_.json ? ScoreJson(*engine_, options_, result, path_)
                             : SummaryText(*engine_, options_, result));
    return absl::OkStatus();
  }

  absl::Status ScoreLines() {
    std::vector<absl::string_view> lines;
    if (!text_.empty()) lines = absl::StrSplit(text_, '\n');
    ProgressLine progress(call_.io.err, "scoring: lines");
    const InterruptScope interrupt;
    for (size_t i = 0; i < lines.size() && !out_.reader_gone(); ++i) {
      if (interrupt.requested()) return Interrupted();
      ScoredLine line = {i + 1, absl::StripSuffix(lines[i], "\r"), nullptr, {}};
      ScoreResult result;
      if (!line.text.empty()) {
        absl::StatusOr<ScoreResult> scored =
            ScoreThe(std::string(line.text), interrupt, {});
        if (scored.ok()) {
          result = *std::move(scored);
          line.result = &result;
        } else if (IsOfTheText(scored.status())) {
          line.error = scored.status();
        } else {
          return scored.status();
        }
      }
      progress.Clear();
      if (!line.error.ok()) {
        failed_ = true;
        Note(call_,
             absl::StrCat("line ", line.number, ": ", line.error.message()));
      }
      if (!out_.Write(LineText(*engine_, options_, line))) break;
      progress.Update(i + 1, lines.size());
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ScoreResult> ScoreThe(std::string text,
                                       const InterruptScope& interrupt,
                                       ScoreCallbacks callbacks) {
    ScoreRequest request = options_.request;
    request.text = std::move(text);
    callbacks.should_cancel = [&interrupt] { return interrupt.requested(); };
    absl::StatusOr<ScoreResult> result = engine_->Score(request, callbacks);
    if (absl::IsCancelled(result.status())) return Interrupted();
    if (result.ok()) totals_.Add(*result);
    return result;
  }

  static absl::Status Interrupted() {
    return absl::CancelledError("interrupted");
  }

  const Invocation& call_;
  const ScoreOptions& options_;
  Output out_;
  std::string text_;
  std::string path_;
  std::unique_ptr<Engine> engine_;
  ScoreTotals totals_;
  bool failed_ = false;  // a line
};

}  // namespace

int Score(const Invocation& call) {
  ScoreOptions options;
  FlagSet flags = ScoreFlags(&options);
  absl::Status status = flags.Parse(call.arguments, &options.text);
  if (flags.help_requested()) {
    return PrintHelp(call, ScoreIntroduction(), flags);
  }
  if (status.ok()) status = Check(options, isatty(call.io.in) == 1);
  if (!status.ok()) return FailUsage(call, status);
  return Program(call, options).Run();
}

}  // namespace lanewise
