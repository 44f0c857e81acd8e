#include "tools/translate.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "lanewise/engine.h"
#include "simd/status_macros.h"
#include "tools/engine_setup.h"
#include "tools/interrupt.h"
#include "tools/line_reader.h"
#include "tools/output.h"
#include "tools/translate_options.h"
#include "tools/translate_output.h"

namespace lanewise {
namespace {

absl::Status Interrupted() { return absl::CancelledError("interrupted"); }

// What is wrong with one text and says nothing about the next.
bool IsOfTheText(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
}

class Program {
 public:
  Program(const Invocation& call, TranslateCommand command)
      : call_(call), command_(std::move(command)), out_(call.io.out) {}
  ~Program() {
    if (lines_fd_ >= 0) close(lines_fd_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int Run() {
    absl::Status status = Prepare();
    if (!status.ok()) return Fail(call_, status);
    absl::StatusOr<TranslateOptions> options =
        ApplyFlags(call_.arguments, command_, defaults_);
    if (!options.ok()) return FailUsage(call_, options.status());
    command_.options = *std::move(options);
    command_.request.options = command_.options;
    command_.request.hash_logits = command_.json;
    status = command_.texts.empty() ? TranslateLines() : TranslateArguments();
    if (status.ok()) status = out_.status();
    if (!status.ok()) return Fail(call_, status);
    if (command_.stats) {
      Output(call_.io.err).Write(StatsText(*engine_, totals_));
    }
    return failed_ ? kExitError : kExitOk;
  }

 private:
  absl::Status Prepare() {
    if (command_.texts.empty()) {
      LANEWISE_ASSIGN_OR_RETURN(
          lines_fd_, OpenTextFile(call_, command_.file.value_or("-")));
    }
    LANEWISE_ASSIGN_OR_RETURN(path_, ModelPath(call_, command_.model));
    LANEWISE_ASSIGN_OR_RETURN(engine_,
                              LoadEngine(call_, path_, command_.engine));
    TranslateRequest any = command_.request;
    any.texts = {""};
    LANEWISE_ASSIGN_OR_RETURN(defaults_, engine_->TranslateDefaults(any));
    return absl::OkStatus();
  }

  absl::Status TranslateArguments() {
    ProgressLine progress(call_.io.err, "translating: texts");
    const InterruptScope interrupt;
    const auto texts = absl::MakeConstSpan(command_.texts);
    const size_t step = command_.request.batch;
    for (size_t begin = 0; begin < texts.size() && !out_.reader_gone();
         begin += step) {
      progress.Clear();
      LANEWISE_RETURN_IF_ERROR(
          TranslateSome(begin + 1, texts.subspan(begin, step), interrupt));
      progress.Update(std::min(begin + step, texts.size()), texts.size());
    }
    return absl::OkStatus();
  }

  // What can be read together is translated together, and nothing waits for
  // lines that have not come.
  absl::Status TranslateLines() {
    ProgressLine progress(call_.io.err, "translating: lines");
    const InterruptScope interrupt;
    LineReader lines(lines_fd_);
    std::vector<std::string> batch;
    size_t number = 1;
    std::string line;
    while (!out_.reader_gone() && lines.Next(interrupt, &line)) {
      batch.clear();
      do {
        batch.emplace_back(absl::StripSuffix(line, "\r"));
      } while (batch.size() < command_.request.batch && lines.Ready() &&
               lines.Next(interrupt, &line));
      progress.Clear();
      LANEWISE_RETURN_IF_ERROR(TranslateSome(number, batch, interrupt));
      number += batch.size();
      progress.Update(number - 1, 0);
    }
    return interrupt.requested() ? Interrupted() : lines.status();
  }

  // `number`: of the first text. Where one is at fault, each by itself.
  absl::Status TranslateSome(size_t number, absl::Span<const std::string> texts,
                             const InterruptScope& interrupt) {
    TranslateRequest request = command_.request;
    for (const std::string& text : texts) {
      if (!text.empty()) request.texts.push_back(text);
    }
    absl::StatusOr<TranslateResult> result = TranslateResult();
    if (!request.texts.empty()) {
      result = engine_->Translate(request, Callbacks(interrupt));
    }
    if (IsOfTheText(result.status()) && texts.size() > 1) {
      for (size_t i = 0; i < texts.size(); ++i) {
        LANEWISE_RETURN_IF_ERROR(
            TranslateSome(number + i, texts.subspan(i, 1), interrupt));
      }
      return absl::OkStatus();
    }
    if (!result.ok() && !IsOfTheText(result.status())) return result.status();
    // This program's numbers, not those of the request's inputs.
    absl::string_view message = result.status().message();
    absl::ConsumePrefix(&message, "input 0: ");
    const absl::Status error(result.status().code(), message);
    TranslateRun run{*engine_, command_, path_};
    if (result.ok()) {
      totals_.Add(*result);
      run.seed = result->seed;
    }
    size_t next = 0;
    for (const std::string& source : texts) {
      TranslatedText text{number++, source, nullptr, error};
      if (result.ok() && !source.empty()) {
        text.translation = &result->translations[next++];
      }
      LANEWISE_RETURN_IF_ERROR(Write(run, text));
    }
    return absl::OkStatus();
  }

  TranslateCallbacks Callbacks(const InterruptScope& interrupt) {
    TranslateCallbacks callbacks;
    callbacks.should_cancel = [&interrupt] { return interrupt.requested(); };
    if (streams()) {
      callbacks.on_text = [this](size_t, absl::string_view text) {
        return out_.Write(text);
      };
    }
    return callbacks;
  }

  // A single text appears as it is made.
  bool streams() const { return command_.texts.size() == 1 && !command_.json; }

  absl::Status Write(const TranslateRun& run, const TranslatedText& text) {
    const Translation* translation = text.translation;
    if (translation != nullptr &&
        translation->finish_reason == FinishReason::kCancelled) {
      if (streams()) out_.EndLine();
      if (!out_.status().ok()) return out_.status();
      return out_.reader_gone() ? absl::OkStatus() : Interrupted();
    }
    if (!text.error.ok()) {
      failed_ = true;
      const std::string number = absl::StrCat("text ", text.number, ": ");
      Note(call_, absl::StrCat(command_.texts.size() == 1 ? "" : number,
                               text.error.message()));
    }
    const bool shown =
        streams() && translation != nullptr && !translation->text.empty();
    if (command_.json) {
      out_.Write(TranslationJson(run, text));
    } else if (shown) {
      out_.EndLine();
    } else if (!streams() || text.error.ok()) {
      out_.Write(
          absl::StrCat(translation != nullptr ? translation->text : "", "\n"));
    }
    return out_.status();
  }

  const Invocation& call_;
  TranslateCommand command_;
  Output out_;
  int lines_fd_ = -1;  // where no text is an argument
  std::string path_;
  std::unique_ptr<Engine> engine_;
  TranslateOptions defaults_;
  TranslateTotals totals_;
  bool failed_ = false;  // a text
};

}  // namespace

int TranslateTexts(const Invocation& call) {
  TranslateCommand command;
  FlagSet flags = TranslateFlags(&command);
  absl::Status status = flags.Parse(call.arguments, &command.texts);
  if (flags.help_requested()) {
    return PrintHelp(call, TranslateIntroduction(), flags);
  }
  if (status.ok()) status = Check(command, isatty(call.io.in) == 1);
  if (!status.ok()) return FailUsage(call, status);
  return Program(call, std::move(command)).Run();
}

}  // namespace lanewise
