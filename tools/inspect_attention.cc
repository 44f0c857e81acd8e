#include "tools/inspect_attention.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/attention_map.h"
#include "model/executor.h"
#include "model/format/checkpoint.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/tokenizer/tokenizer.h"
#include "simd/context.h"
#include "simd/status_macros.h"
#include "tools/attention_page.h"
#include "tools/escaped.h"
#include "tools/npy.h"
#include "tools/output_file.h"

namespace lanewise {
namespace {

constexpr size_t kCacheBytes = size_t{1} << 34;

// "0,3" as numbers below `count`, ascending; all of them for "".
absl::StatusOr<std::vector<size_t>> ReadNumbers(absl::string_view flag,
                                                const std::string& text,
                                                size_t count) {
  std::vector<size_t> numbers;
  for (const absl::string_view part :
       absl::StrSplit(text, ',', absl::SkipEmpty())) {
    size_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag, ": expected numbers from 0 to ", count - 1,
                       " with commas between, found ", Escaped(text)));
    }
    numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

// Runs `ids` once with a recorder watching.
absl::Status Record(const Model& model, const Context& context,
                    absl::Span<const int32_t> ids,
                    AttentionMapRecorder* recorder) {
  if (ids.size() > kMaxMappedKeys) {
    return absl::InvalidArgumentError(
        absl::StrCat("--attention: expected a text of at most ", kMaxMappedKeys,
                     " tokens, found ", ids.size()));
  }
  Executor::Options options;
  options.activations = ActivationType::kF32;
  options.max_rows = ids.size();
  options.attention_observer = recorder->observer();
  LANEWISE_ASSIGN_OR_RETURN(
      const auto executor,
      Executor::Create(model, context, std::move(options)));
  Executor::Entry entry;
  entry.ids = ids;
  entry.logits = Executor::Logits::kNone;
  KvCache cache(KvPagePool::Create(model.spec(), CacheType::kF32, kCacheBytes));
  if (!model.spec().bidirectional()) {
    LANEWISE_RETURN_IF_ERROR(cache.Reserve(ids.size()));
    entry.cache = &cache;
  }
  LANEWISE_RETURN_IF_ERROR(executor->Forward({&entry, 1}, Executor::Outputs{}));
  return recorder->status();
}

absl::Status Save(const std::string& path, absl::string_view bytes) {
  LANEWISE_ASSIGN_OR_RETURN(const auto file, OutputFile::Create(path));
  LANEWISE_RETURN_IF_ERROR(file->Write(bytes));
  return file->Finish();
}

std::string NpyOf(absl::Span<const AttentionMap> maps) {
  const AttentionMap& first = maps.front();
  std::vector<float> all;
  for (const AttentionMap& map : maps) {
    all.insert(all.end(), map.weights.begin(), map.weights.end());
  }
  return absl::StrCat(
      NpyHeader({maps.size(), first.heads.size(), first.rows, first.keys}),
      NpyValues(all));
}

}  // namespace

absl::StatusOr<std::string> WriteAttention(const AttentionRequest& request) {
  LANEWISE_ASSIGN_OR_RETURN(const auto context, Context::Create({}));
  LANEWISE_ASSIGN_OR_RETURN(const auto checkpoint,
                            Checkpoint::Open(request.model));
  LANEWISE_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::Load(*checkpoint));
  LANEWISE_ASSIGN_OR_RETURN(const auto loaded,
                            Model::Load(*checkpoint, *context, {}));
  const Model& model =
      loaded->encoder() != nullptr ? *loaded->encoder() : *loaded;
  const std::vector<LayerSpec>& layers = model.spec().layers;
  if (model.spec().input != InputKind::kTokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        request.model, ": --attention: expected a model that reads text"));
  }
  size_t fewest_heads = layers.front().attention.heads;
  for (const LayerSpec& layer : layers) {
    fewest_heads = std::min(fewest_heads, layer.attention.heads);
  }
  AttentionMapRecorder::Choice choice;
  LANEWISE_ASSIGN_OR_RETURN(
      choice.layers, ReadNumbers("layers", request.layers, layers.size()));
  LANEWISE_ASSIGN_OR_RETURN(choice.heads,
                            ReadNumbers("heads", request.heads, fewest_heads));
  EncodeOptions encode;
  encode.pad = false;
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                            tokenizer->Encode(request.text, encode));
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        "--attention: expected a text of at least one token, found none");
  }
  AttentionMapRecorder recorder(*context, std::move(choice));
  LANEWISE_RETURN_IF_ERROR(Record(model, *context, ids, &recorder));
  AttentionPage page;
  page.title = absl::StrCat("Attention of ", request.model);
  page.maps = recorder.maps();
  for (const int32_t id : ids) page.tokens.push_back(tokenizer->TokenText(id));
  const std::string npy = absl::StrCat(request.output, ".npy");
  const std::string html = absl::StrCat(request.output, ".html");
  LANEWISE_RETURN_IF_ERROR(Save(npy, NpyOf(recorder.maps())));
  LANEWISE_RETURN_IF_ERROR(Save(html, AttentionHtml(page)));
  const AttentionMap& map = recorder.maps().front();
  return absl::StrCat(npy, ": f32 [", recorder.maps().size(), ", ",
                      map.heads.size(), ", ", map.rows, ", ", map.keys,
                      "]: layers, heads, rows, keys\n", html,
                      ": the same as heat maps\n");
}

}  // namespace lanewise
