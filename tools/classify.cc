#include "tools/classify.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lanewise/engine.h"
#include "simd/status_macros.h"
#include "tools/classify_options.h"
#include "tools/classify_output.h"
#include "tools/engine_output.h"
#include "tools/engine_setup.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/text_input.h"

namespace lanewise {
namespace {

// Texts that go to the engine together.
constexpr size_t kTextsAtOnce = 1024;

class Program {
 public:
  Program(const Invocation& call, const ClassifyOptions& options)
      : call_(call), options_(options), out_(call.io.out) {}

  int Run() {
    absl::Status status = Prepare();
    if (status.ok()) status = ClassifyAll();
    if (status.ok()) status = out_.status();
    if (!status.ok()) return Fail(call_, status);
    if (options_.stats) WriteStats();
    return kExitOk;
  }

 private:
  absl::Status Prepare() {
    LANEWISE_ASSIGN_OR_RETURN(texts_, ReadTexts(call_, options_.input));
    LANEWISE_ASSIGN_OR_RETURN(const std::string path,
                              ModelPath(call_, options_.model));
    LANEWISE_ASSIGN_OR_RETURN(engine_,
                              LoadEngine(call_, path, options_.engine));
    return absl::OkStatus();
  }

  ClassifyRequest RequestFor(size_t begin, size_t end) const {
    ClassifyRequest request = options_.request;
    request.truncate = !options_.no_truncate;
    if (options_.tokens) request.aggregation = Aggregation::kNone;
    for (size_t i = begin; i < end; ++i) {
      if (options_.question.has_value()) {
        request.inputs.push_back({*options_.question, texts_[i]});
      } else {
        request.inputs.push_back({texts_[i], options_.pair});
      }
    }
    return request;
  }

  absl::Status ClassifyAll() {
    ProgressLine progress(call_.io.err, "classifying: texts");
    const InterruptScope interrupt;
    for (size_t begin = 0; begin < texts_.size() && !out_.reader_gone();
         begin += kTextsAtOnce) {
      const size_t end = std::min(texts_.size(), begin + kTextsAtOnce);
      ClassifyCallbacks callbacks;
      callbacks.on_progress = [&](size_t done, size_t total) {
        progress.Update(begin + done * (end - begin) / total, texts_.size());
      };
      callbacks.should_cancel = [&interrupt] { return interrupt.requested(); };
      const absl::StatusOr<ClassifyResult> result =
          engine_->Classify(RequestFor(begin, end), callbacks);
      progress.Clear();
      if (absl::IsCancelled(result.status())) {
        return absl::CancelledError("interrupted");
      }
      if (!result.ok()) return result.status();
      for (size_t i = begin; i < end; ++i) {
        Take(i, *result, result->outputs[i - begin]);
      }
      seconds_ += result->seconds;
      max_tokens_ = result->max_tokens;
    }
    NoteTruncated(call_, truncated_, texts_.size(), max_tokens_);
    return absl::OkStatus();
  }

  void Take(size_t index, const ClassifyResult& result,
            const Classification& output) {
    truncated_ += output.truncated;
    tokens_ += output.tokens;
    if (options_.json) {
      out_.Write(FindingsJson(result.task, output, texts_[index]));
    } else {
      out_.Write(
          FindingLines(output, texts_[index],
                       texts_.size() > 1 ? absl::StrCat("\t", index) : ""));
    }
  }

  void WriteStats() const {
    Output(call_.io.err)
        .Write(absl::StrFormat("texts: %d; tokens: %d, %.1f tokens/s\n"
                               "%s\n",
                               texts_.size(), tokens_,
                               PerSecond(tokens_, seconds_),
                               EngineText(*engine_)));
  }

  const Invocation& call_;
  const ClassifyOptions& options_;
  Output out_;
  std::vector<std::string> texts_;
  std::unique_ptr<Engine> engine_;
  size_t tokens_ = 0, max_tokens_ = 0, truncated_ = 0;
  double seconds_ = 0;
};

}  // namespace

int ClassifyTexts(const Invocation& call) {
  ClassifyOptions options;
  FlagSet flags = ClassifyFlags(&options);
  absl::Status status = flags.Parse(call.arguments, &options.input.texts);
  if (flags.help_requested()) {
    return PrintHelp(call, ClassifyIntroduction(), flags);
  }
  if (status.ok()) status = Check(options, isatty(call.io.in) == 1);
  if (!status.ok()) return FailUsage(call, status);
  return Program(call, options).Run();
}

}  // namespace lanewise
