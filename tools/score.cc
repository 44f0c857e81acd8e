#include "tools/score.h"

#include <unistd.h>

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
#include "tools/line_reader.h"
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

  ~Program() {
    if (lines_fd_ >= 0) close(lines_fd_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

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
    if (options_.lines) {
      LANEWISE_RETURN_IF_ERROR(OpenLines());
    } else {
      LANEWISE_RETURN_IF_ERROR(ReadText());
    }
    LANEWISE_ASSIGN_OR_RETURN(path_, ModelPath(call_, options_.model));
    LANEWISE_ASSIGN_OR_RETURN(engine_,
                              LoadEngine(call_, path_, options_.engine));
    LANEWISE_ASSIGN_OR_RETURN(session_, engine_->NewSession());
    if (options_.request.stride >= engine_->context_length()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--stride: expected less than the context of ",
                       engine_->context_length(), " tokens, found ",
                       options_.request.stride));
    }
    return absl::OkStatus();
  }

  absl::Status OpenLines() {
    if (!options_.text.empty()) return absl::OkStatus();
    LANEWISE_ASSIGN_OR_RETURN(lines_fd_,
                              OpenTextFile(call_, options_.file.value_or("-")));
    return absl::OkStatus();
  }

  absl::Status ReadText() {
    if (!options_.text.empty()) {
      text_ = options_.text[0];
    } else if (options_.file.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(text_, ReadTextFile(call_, *options_.file));
    } else {
      LANEWISE_ASSIGN_OR_RETURN(text_, ReadStandardInput(call_));
    }
    if (!text_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the text is empty: give one as an argument, with --file FILE or by a "
        "pipe");
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

  // Each line is answered before the next is waited for.
  absl::Status ScoreLines() {
    ProgressLine progress(call_.io.err, "scoring: lines");
    const InterruptScope interrupt;
    if (lines_fd_ < 0) {
      size_t number = 0;
      for (const absl::string_view line :
           absl::StrSplit(options_.text[0], '\n')) {
        LANEWISE_RETURN_IF_ERROR(ScoreLine(++number, line, interrupt));
      }
      return absl::OkStatus();
    }
    LineReader lines(lines_fd_);
    std::string line;
    for (size_t number = 1; !out_.reader_gone() && lines.Next(interrupt, &line);
         ++number) {
      progress.Clear();
      LANEWISE_RETURN_IF_ERROR(ScoreLine(number, line, interrupt));
      progress.Update(number, 0);
    }
    return interrupt.requested() ? Interrupted() : lines.status();
  }

  absl::Status ScoreLine(size_t number, absl::string_view text,
                         const InterruptScope& interrupt) {
    ScoredLine line = {number, absl::StripSuffix(text, "\r"), nullptr, {}};
    ScoreResult result;
    if (!line.text.empty()) {
      absl::StatusOr<ScoreResult> scored =
          ScoreThe(std::string(line.text), interrupt, {});
      if (scored.ok()) {
        result = *std::move(scored);
        line.result = &result;
      } else if (IsOfTheText(scored.status())) {
        line.error = scored.status();
        failed_ = true;
        Note(call_, absl::StrCat("line ", number, ": ", line.error.message()));
      } else {
        return scored.status();
      }
    }
    out_.Write(LineText(*engine_, options_, line));
    return out_.status();
  }

  absl::StatusOr<ScoreResult> ScoreThe(std::string text,
                                       const InterruptScope& interrupt,
                                       ScoreCallbacks callbacks) {
    ScoreRequest request = options_.request;
    request.text = std::move(text);
    callbacks.should_cancel = [&interrupt] { return interrupt.requested(); };
    absl::StatusOr<ScoreResult> result = session_->Score(request, callbacks);
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
  int lines_fd_ = -1;  // of --lines without a text as argument
  std::string path_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;  // keeps the prompt from line to line
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
