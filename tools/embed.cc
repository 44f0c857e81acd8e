#include "tools/embed.h"

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
#include "tools/embed_options.h"
#include "tools/embed_output.h"
#include "tools/engine_output.h"
#include "tools/engine_setup.h"
#include "tools/interrupt.h"
#include "tools/npy.h"
#include "tools/output.h"
#include "tools/output_file.h"
#include "tools/text_input.h"

namespace lanewise {
namespace {

// Texts that go to the engine together: enough to sort by length, few enough
// to be written soon.
constexpr size_t kTextsAtOnce = 2048;

class Program {
 public:
  Program(const Invocation& call, const EmbedOptions& options)
      : call_(call), options_(options), out_(call.io.out) {}

  int Run() {
    absl::Status status = Prepare();
    if (status.ok()) status = EmbedAll();
    if (status.ok() && options_.similarity) status = WriteCosines();
    if (status.ok() && file_ != nullptr) status = file_->Finish();
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
    if (options_.out.has_value()) {
      LANEWISE_ASSIGN_OR_RETURN(file_,
                                OutputFile::Create(ResolvePath(*options_.out)));
    }
    return absl::OkStatus();
  }

  absl::Status EmbedAll() {
    ProgressLine progress(call_.io.err, "embedding: texts");
    const InterruptScope interrupt;
    for (size_t begin = 0; begin < texts_.size() && !out_.reader_gone();
         begin += kTextsAtOnce) {
      const size_t end = std::min(texts_.size(), begin + kTextsAtOnce);
      EmbedRequest request = options_.request;
      request.truncate = !options_.no_truncate;
      request.texts.assign(texts_.begin() + begin, texts_.begin() + end);
      EmbedCallbacks callbacks;
      callbacks.on_progress = [&](size_t done, size_t) {
        progress.Update(begin + done, texts_.size());
      };
      callbacks.should_cancel = [&interrupt] { return interrupt.requested(); };
      absl::StatusOr<EmbedResult> result = engine_->Embed(request, callbacks);
      progress.Clear();
      if (absl::IsCancelled(result.status())) {
        return absl::CancelledError("interrupted");
      }
      if (!result.ok()) return result.status();
      LANEWISE_RETURN_IF_ERROR(Take(begin, *result));
    }
    for (const std::string& notice : notices_) {
      Note(call_, absl::StrCat("note: ", notice));
    }
    NoteTruncated(call_, truncated_, texts_.size(), max_tokens_);
    return absl::OkStatus();
  }

  // Writes the vectors of texts_[begin …], or keeps them for the cosines.
  absl::Status Take(size_t begin, const EmbedResult& result) {
    if (begin == 0) {
      width_ = result.width;
      max_tokens_ = result.max_tokens;
      notices_ = result.notices;
      if (result.truncated > 0) notices_.pop_back();  // told for all texts
      if (options_.format == EmbedFormat::kNpy) {
        LANEWISE_RETURN_IF_ERROR(Write(NpyHeader(
            {texts_.size(), options_.similarity ? texts_.size() : width_})));
      }
    }
    truncated_ += result.truncated;
    seconds_ += result.seconds;
    tokens_.insert(tokens_.end(), result.tokens.begin(), result.tokens.end());
    if (options_.similarity) {
      vectors_.insert(vectors_.end(), result.vectors.begin(),
                      result.vectors.end());
      return absl::OkStatus();
    }
    for (size_t i = 0; i < result.tokens.size(); ++i) {
      const absl::Span<const float> vector =
          absl::MakeConstSpan(result.vectors).subspan(i * width_, width_);
      LANEWISE_RETURN_IF_ERROR(Write(
          RowText(options_, {texts_[begin + i], result.tokens[i], vector})));
    }
    return absl::OkStatus();
  }

  absl::Status WriteCosines() {
    const InterruptScope interrupt;
    for (size_t i = 0; i < texts_.size() && !out_.reader_gone(); ++i) {
      if (interrupt.requested()) return absl::CancelledError("interrupted");
      const std::vector<float> cosines = Cosines(vectors_, width_, i);
      LANEWISE_RETURN_IF_ERROR(
          Write(RowText(options_, {texts_[i], tokens_[i], cosines})));
    }
    return absl::OkStatus();
  }

  absl::Status Write(absl::string_view text) {
    if (file_ != nullptr) return file_->Write(text);
    out_.Write(text);
    return out_.status();
  }

  void WriteStats() const {
    size_t tokens = 0;
    for (const size_t count : tokens_) tokens += count;
    Output(call_.io.err)
        .Write(absl::StrFormat("texts: %d; tokens: %d, %.1f tokens/s\n"
                               "vectors: %d values; texts of up to %d tokens\n"
                               "%s\n",
                               texts_.size(), tokens,
                               PerSecond(tokens, seconds_), width_, max_tokens_,
                               EngineText(*engine_)));
  }

  const Invocation& call_;
  const EmbedOptions& options_;
  Output out_;
  std::unique_ptr<OutputFile> file_;  // null: standard output
  std::vector<std::string> texts_;
  std::unique_ptr<Engine> engine_;
  size_t width_ = 0, max_tokens_ = 0, truncated_ = 0;
  std::vector<size_t> tokens_;  // of each text
  std::vector<float> vectors_;  // [texts, width_], with --similarity
  std::vector<std::string> notices_;
  double seconds_ = 0;
};

}  // namespace

int EmbedTexts(const Invocation& call) {
  EmbedOptions options;
  FlagSet flags = EmbedFlags(&options);
  absl::Status status = flags.Parse(call.arguments, &options.input.texts);
  if (flags.help_requested()) {
    return PrintHelp(call, EmbedIntroduction(), flags);
  }
  if (status.ok()) {
    status = Check(options, isatty(call.io.in) == 1, isatty(call.io.out) == 1);
  }
  if (!status.ok()) return FailUsage(call, status);
  return Program(call, options).Run();
}

}  // namespace lanewise
