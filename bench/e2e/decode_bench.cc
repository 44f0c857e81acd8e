// How fast a decoder-only model processes a prompt and generates, as JSON lines
// (one a test): the forward passes only, with fixed token ids, so that neither
// tokenization nor sampling is in the numbers.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "nlohmann/json.hpp"
#include "simd/context.h"
#include "simd/status_macros.h"
#include "simd/target.h"
#include "tools/cli.h"
#include "tools/flags.h"
#include "tools/output.h"

namespace lanewise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::string_view kIntroduction =
    R"(Measures prefill and decoding of a model.

  llm --model model.gguf --threads 1 --threads 2

One JSON object a test: pp512 is the prefill of 512 tokens, tg64 the decoding of
64 tokens one after the other. tokens_per_second is the median of the runs; one
run before them is not counted.
)";

struct Options {
  std::string model;
  std::vector<std::string> threads;
  std::string target;
  size_t prompt = 512;
  size_t decode = 64;
  size_t depth = 0;
  size_t repeat = 5;
  ActivationType activations = ActivationType::kNative;
  CacheType cache = CacheType::kF16;
};

FlagSet MakeFlags(Options* options) {
  constexpr int64_t kMaxTokens = 1'000'000;
  FlagSet flags;
  flags.Section("Flags");
  flags.Add({"model", "FILE_OR_FOLDER", "the model"}, &options->model);
  flags.Add({"threads", "N", "may be given several times (default: 1 and 2)"},
            &options->threads);
  flags.Add({"target", "NAME", "instruction set (default: the best here)"},
            &options->target);
  flags.Add({"prompt", "N", "tokens of the prefill (512)"}, &options->prompt, 0,
            kMaxTokens);
  flags.Add({"decode", "N", "tokens that are decoded (64)"}, &options->decode,
            0, kMaxTokens);
  flags.Add({"depth", "N", "tokens before those that are decoded (0)"},
            &options->depth, 0, kMaxTokens);
  flags.Add({"repeat", "N", "runs (5)"}, &options->repeat, 1, 1000);
  flags.Add(
      {"activations", "native|f32", "what activations are"},
      &options->activations,
      {{"native", ActivationType::kNative}, {"f32", ActivationType::kF32}});
  flags.Add({"cache", "f16|bf16|f32", "type of keys and values (f16)"},
            &options->cache,
            {{"f16", CacheType::kF16},
             {"bf16", CacheType::kBF16},
             {"f32", CacheType::kF32}});
  return flags;
}

class Bench {
 public:
  Bench(const Options& options, size_t threads)
      : options_(options), threads_(threads) {}

  absl::Status Run(Output* out) {
    LANEWISE_RETURN_IF_ERROR(Prepare());
    std::vector<double> prefill, decode;
    for (size_t run = 0; run <= options_.repeat; ++run) {
      LANEWISE_ASSIGN_OR_RETURN(const double prefill_speed, Prefill());
      LANEWISE_ASSIGN_OR_RETURN(const double decode_speed, Decode());
      if (run == 0) continue;
      prefill.push_back(prefill_speed);
      decode.push_back(decode_speed);
    }
    if (options_.prompt > 0) {
      out->Write(Line(absl::StrCat("pp", options_.prompt), prefill));
    }
    if (options_.decode > 0) {
      out->Write(Line(absl::StrCat("tg", options_.decode), decode));
    }
    return out->status();
  }

 private:
  absl::Status Prepare() {
    Context::Options context;
    context.threads = threads_;
    if (!options_.target.empty()) {
      LANEWISE_ASSIGN_OR_RETURN(context.target,
                                Target::FromName(options_.target));
    }
    LANEWISE_ASSIGN_OR_RETURN(context_, Context::Create(context));
    LANEWISE_ASSIGN_OR_RETURN(const auto checkpoint,
                              Checkpoint::Open(options_.model));
    LANEWISE_ASSIGN_OR_RETURN(model_, Model::Load(*checkpoint, *context_, {}));
    const size_t vocab = model_->spec().vocab_size;
    if (vocab <= 10) {
      return absl::InvalidArgumentError("expected more than 10 tokens");
    }
    Executor::Options executor;
    executor.activations = options_.activations;
    executor.max_rows = kChunk;
    LANEWISE_ASSIGN_OR_RETURN(executor_,
                              Executor::Create(*model_, *context_, executor));
    cache_ = std::make_unique<KvCache>(
        KvPagePool::Create(model_->spec(), options_.cache, size_t{1} << 36));
    const size_t length = std::max(
        options_.prompt, std::max<size_t>(options_.depth, 1) + options_.decode);
    LANEWISE_RETURN_IF_ERROR(cache_->Reserve(length));
    for (size_t i = 0; i < length; ++i) {
      ids_.push_back(static_cast<int32_t>((i * 7919) % (vocab - 10) + 5));
    }
    logits_.resize(vocab);
    return absl::OkStatus();
  }

  // Ids that continue the sequence; logits of the last one.
  absl::Status Feed(absl::Span<const int32_t> ids) {
    while (!ids.empty()) {
      const absl::Span<const int32_t> chunk = ids.subspan(0, kChunk);
      const Executor::Entry entry{chunk, cache_.get(),
                                  chunk.size() == ids.size()
                                      ? Executor::Logits::kLast
                                      : Executor::Logits::kNone};
      LANEWISE_RETURN_IF_ERROR(executor_->Forward({&entry, 1}, logits_.data()));
      ids.remove_prefix(chunk.size());
    }
    return absl::OkStatus();
  }

  // Tokens per second.
  absl::StatusOr<double> Prefill() {
    cache_->Truncate(0);
    LANEWISE_RETURN_IF_ERROR(cache_->Reserve(ids_.size()));
    const Clock::time_point start = Clock::now();
    LANEWISE_RETURN_IF_ERROR(
        Feed(absl::MakeConstSpan(ids_).subspan(0, options_.prompt)));
    return Speed(options_.prompt, start);
  }

  absl::StatusOr<double> Decode() {
    cache_->Truncate(0);
    LANEWISE_RETURN_IF_ERROR(cache_->Reserve(ids_.size()));
    LANEWISE_RETURN_IF_ERROR(Feed(absl::MakeConstSpan(ids_).subspan(
        0, std::max<size_t>(options_.depth, 1))));
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < options_.decode; ++i) {
      LANEWISE_RETURN_IF_ERROR(Feed({&ids_[i], 1}));
    }
    return Speed(options_.decode, start);
  }

  static double Speed(size_t tokens, Clock::time_point start) {
    return static_cast<double>(tokens) /
           std::chrono::duration<double>(Clock::now() - start).count();
  }

  std::string Line(const std::string& test, std::vector<double> runs) const {
    nlohmann::ordered_json json;
    json["engine"] = "lanewise";
    json["model"] = options_.model.substr(options_.model.rfind('/') + 1);
    json["threads"] = context_->threads();
    json["target"] = std::string(context_->target().name());
    json["depth"] = test[0] == 't' ? options_.depth : 0;
    json["test"] = test;
    std::vector<double> sorted = runs;
    std::sort(sorted.begin(), sorted.end());
    const size_t middle = sorted.size() / 2;
    json["tokens_per_second"] = sorted.size() % 2 == 1
                                    ? sorted[middle]
                                    : (sorted[middle - 1] + sorted[middle]) / 2;
    json["runs"] = runs;
    return absl::StrCat(
        json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
        "\n");
  }

  static constexpr size_t kChunk = 512;

  const Options& options_;
  const size_t threads_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<KvCache> cache_;
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
};

absl::Status RunAll(const Invocation& call, Options options) {
  options.model = ResolvePath(options.model);
  if (options.threads.empty()) options.threads = {"1", "2"};
  const ScopedFloatEnvironment environment;
  Output out(call.io.out);
  for (const std::string& text : options.threads) {
    size_t threads = 0;
    if (!absl::SimpleAtoi(text, &threads)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--threads: expected a number, found '", text, "'"));
    }
    LANEWISE_RETURN_IF_ERROR(Bench(options, threads).Run(&out));
  }
  return absl::OkStatus();
}

int Main(const Invocation& call) {
  Options options;
  FlagSet flags = MakeFlags(&options);
  std::vector<std::string> positional;
  absl::Status status = flags.Parse(call.arguments, &positional);
  if (flags.help_requested()) return PrintHelp(call, kIntroduction, flags);
  if (status.ok() && (options.model.empty() || !positional.empty())) {
    status = absl::InvalidArgumentError(
        "expected one model: --model FILE_OR_FOLDER");
  }
  if (!status.ok()) return FailUsage(call, status);
  status = RunAll(call, options);
  return status.ok() ? kExitOk : Fail(call, status);
}

}  // namespace
}  // namespace lanewise

int main(int argc, char** argv) {
  return lanewise::Main(lanewise::MakeInvocation("llm", argc, argv, ""));
}
