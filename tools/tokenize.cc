#include "tools/tokenize.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "model/format/checkpoint.h"
#include "model/tokenizer/tokenizer.h"
#include "nlohmann/json.hpp"
#include "simd/status_macros.h"
#include "tools/escaped.h"
#include "tools/json_line.h"
#include "tools/output.h"

namespace lanewise {
namespace {

constexpr absl::string_view kIntroduction =
    R"(Turns text into token ids, and ids into text.

  tokenize "Hello, world"
  tokenize --tokens "Hello, world"       one token a line, with its spelling
  tokenize --file book.txt --json
  echo "Hello" | tokenize --model model.gguf
  tokenize --decode 19556 28 905
  tokenize --special "<|im_start|>user"  text may spell control tokens

Text after `--` may begin with a dash: tokenize -- --help
)";

struct Options {
  std::string model;
  std::optional<std::string> file;
  bool decode = false;
  bool tokens = false;
  bool special = false;
  bool no_special_tokens = false;
  bool json = false;
  std::vector<std::string> positional;
};

FlagSet MakeFlags(Options* options) {
  FlagSet flags;
  flags.Section("Flags");
  flags.Add({"model", "FILE_OR_FOLDER",
             "a GGUF file, a model's folder or a tokenizer.json (default: "
             "SmolLM2-135M-Instruct)"},
            &options->model);
  flags.Add({"file", "FILE",
             "read FILE (-: standard input), less one newline at its end"},
            &options->file);
  flags.Add({"decode", "", "from ids to text"}, &options->decode);
  flags.Add({"tokens", "", "one token a line: its id and how it is spelled"},
            &options->tokens);
  flags.Add({"special", "",
             "text may spell control tokens (without: it is ordinary text)"},
            &options->special);
  flags.Add({"no_special_tokens", "",
             "leave out what the tokenizer puts around a text, like <s>; with "
             "--decode: leave out control tokens"},
            &options->no_special_tokens);
  flags.Add({"json", "", "one JSON object: ids, tokens, text"}, &options->json);
  return flags;
}

absl::Status Check(const Options& options) {
  if (options.file.has_value() && !options.positional.empty()) {
    return absl::InvalidArgumentError(
        "both a text and --file: give only one of them");
  }
  if (!options.decode && options.positional.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unexpected argument '", Escaped(options.positional[1], 80),
        "': put the whole text in quotes"));
  }
  if (options.decode && (options.special || options.tokens)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--decode: --", options.special ? "special" : "tokens",
                     " is for text: leave one of them out"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const Invocation& call, const Options& options) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string path,
                            ModelPath(call, options.model));
  if (absl::EndsWith(path, ".json")) {
    LANEWISE_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(call, path));
    return Tokenizer::FromJson(json, path);
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint,
                            Checkpoint::Open(path));
  return Tokenizer::Load(*checkpoint);
}

// Ids between spaces, commas, newlines or brackets.
absl::StatusOr<std::vector<int32_t>> ParseIds(absl::string_view text,
                                              size_t vocab_size) {
  std::vector<int32_t> ids;
  for (absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" ,\n\t\r[]"), absl::SkipEmpty())) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(word, &id) || id < 0 ||
        static_cast<size_t>(id) >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("--decode: expected ids from 0 to ", vocab_size - 1,
                       ", found '", Escaped(word, 80), "'"));
    }
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<std::string> ReadText(const Invocation& call,
                                     const Options& options) {
  if (!options.positional.empty()) {
    return absl::StrJoin(options.positional, " ");
  }
  if (options.file.has_value()) return ReadTextFile(call, *options.file);
  return ReadStandardInput(call);
}

std::string Format(const Options& options, const Tokenizer& tokenizer,
                   absl::Span<const int32_t> ids, absl::string_view text) {
  if (options.json) {
    nlohmann::ordered_json json;
    json["ids"] = std::vector<int32_t>(ids.begin(), ids.end());
    auto& tokens = json["tokens"] = nlohmann::ordered_json::array();
    for (int32_t id : ids) tokens.push_back(tokenizer.TokenText(id));
    json["text"] = std::string(text);
    return JsonLine(json);
  }
  if (options.decode) return absl::StrCat(text, "\n");
  if (!options.tokens) return absl::StrCat(absl::StrJoin(ids, " "), "\n");
  std::string lines;
  for (int32_t id : ids) {
    absl::StrAppend(&lines, id, "\t", Escaped(tokenizer.TokenText(id)), "\n");
  }
  return lines;
}

absl::Status Run(const Invocation& call, const Options& options) {
  LANEWISE_ASSIGN_OR_RETURN(std::string text, ReadText(call, options));
  LANEWISE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                            LoadTokenizer(call, options));
  std::vector<int32_t> ids;
  if (options.decode) {
    LANEWISE_ASSIGN_OR_RETURN(ids, ParseIds(text, tokenizer->vocab_size()));
    DecodeOptions decode;
    decode.skip_special_tokens = options.no_special_tokens;
    text = tokenizer->Decode(ids, decode);
  } else {
    EncodeOptions encode;
    encode.add_special_tokens = !options.no_special_tokens;
    encode.parse_special_tokens = options.special;
    LANEWISE_ASSIGN_OR_RETURN(ids, tokenizer->Encode(text, encode));
  }
  Output out(call.io.out);
  out.Write(Format(options, *tokenizer, ids, text));
  return out.status();
}

}  // namespace

int Tokenize(const Invocation& call) {
  Options options;
  FlagSet flags = MakeFlags(&options);
  absl::Status status = flags.Parse(call.arguments, &options.positional);
  if (flags.help_requested()) return PrintHelp(call, kIntroduction, flags);
  if (status.ok()) status = Check(options);
  if (status.ok() && options.positional.empty() && !options.file.has_value() &&
      isatty(call.io.in) == 1) {
    status = absl::InvalidArgumentError(
        "no text: give one as an argument, with --file FILE or by a pipe");
  }
  if (!status.ok()) return FailUsage(call, status);
  status = Run(call, options);
  return status.ok() ? kExitOk : Fail(call, status);
}

}  // namespace lanewise
