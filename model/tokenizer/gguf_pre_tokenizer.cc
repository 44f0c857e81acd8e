#include "model/tokenizer/gguf_pre_tokenizer.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "model/format/printable.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// Parts that several patterns share.
#define LANEWISE_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LANEWISE_NEWLINES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define LANEWISE_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define LANEWISE_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define LANEWISE_LEAD R"([^\r\n\p{L}\p{N}]?)"

constexpr char kGpt2[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr char kLlama3[] = LANEWISE_CONTRACTIONS
    "|" LANEWISE_LEAD
    R"(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LANEWISE_NEWLINES;
constexpr char kQwen2[] = LANEWISE_CONTRACTIONS
    "|" LANEWISE_LEAD
    R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" LANEWISE_NEWLINES;
constexpr char kQwen35[] = LANEWISE_CONTRACTIONS
    "|" LANEWISE_LEAD
    R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" LANEWISE_NEWLINES;
constexpr char kGpt4o[] = LANEWISE_LEAD LANEWISE_UPPER
    "*" LANEWISE_LOWER "+" LANEWISE_CONTRACTIONS
    "?|" LANEWISE_LEAD LANEWISE_UPPER "+" LANEWISE_LOWER
    "*" LANEWISE_CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LANEWISE_NEWLINES;
constexpr char kTekken[] = LANEWISE_LEAD LANEWISE_UPPER
    "*" LANEWISE_LOWER "+|" LANEWISE_LEAD LANEWISE_UPPER "+" LANEWISE_LOWER
    R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" LANEWISE_NEWLINES;
constexpr char kSeedCoder[] = LANEWISE_CONTRACTIONS
    "|" LANEWISE_LEAD
    R"(\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" LANEWISE_NEWLINES;
constexpr char kBailing[] =
    R"('(?i:[sdmt]|ll|ve|re)|)" LANEWISE_LEAD
    R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr char kDeepSeek3Words[] =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" LANEWISE_NEWLINES;
constexpr char kDeepSeekLetters[] =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿ)"
    R"(ᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭ)"
    R"(ℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻)"
    R"(𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr char kPunctuationRuns[] = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr char kBloom[] = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

struct Kind {
  absl::string_view names;  // separated by spaces
  std::vector<absl::string_view> patterns;
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
  bool add_eos = false;
};

std::vector<Kind> Kinds() {
  return {
      {"default", {kPunctuationRuns, kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
      {"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 "
       "mellum modern-bert mpt olmo jais exaone4 trillion granite-docling",
       {kGpt2}},
      {"jina-v1-en jina-v2-code roberta-bpe",
       {kGpt2},
       false,
       false,
       false,
       true},
      {"falcon", {kPunctuationRuns, kGpt2, "[0-9][0-9][0-9]"}},
      {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
       {R"(\p{N})", kGpt2}},
      {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 "
       "jina-v5-nano",
       {kLlama3},
       false,
       true,
       true},
      {"dbrx smaug-bpe glm4 chatglm-bpe", {kLlama3}},
      {"qwen2", {kQwen2}, true},
      {"deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open "
       "grok-2",
       {kQwen2}},
      {"qwen35", {kQwen35}, true},
      {"gpt-4o llama4 kanana2 talkie minimax-m2", {kGpt4o}},
      {"tekken", {kTekken}, false, true, true},
      {"deepseek-llm",
       {"[\r\n]", kDeepSeekLetters, R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)",
        R"(\s+$)", "[一-龥ࠀ-一가-퟿]+", R"(\p{N}+)"}},
      {"deepseek-coder",
       {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-퟿]+",
        R"(\p{N})"}},
      {"deepseek-v3 hunyuan-dense joyai-llm",
       {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepSeek3Words}},
      {"poro-chat bloom gpt3-finnish", {kBloom}},
      {"viking", {kBloom, R"(\p{N})"}},
      {"seed-coder", {kSeedCoder}},
      {"bailingmoe bailingmoe2 llada-moe", {kBailing}},
  };
}

}  // namespace

absl::StatusOr<GgufPreTokenizer> MakeGgufPreTokenizer(absl::string_view name,
                                                      absl::string_view where) {
  for (const Kind& kind : Kinds()) {
    const std::vector<absl::string_view> names =
        absl::StrSplit(kind.names, ' ');
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    std::vector<PreTokenizerPtr> stages;
    for (const absl::string_view pattern : kind.patterns) {
      LANEWISE_ASSIGN_OR_RETURN(Regex regex, Regex::Compile(pattern));
      stages.push_back(MakeSplitPreTokenizer(
          std::move(regex), SplitBehavior::kIsolated, /*invert=*/false));
    }
    LANEWISE_ASSIGN_OR_RETURN(
        PreTokenizerPtr bytes,
        MakeByteLevelPreTokenizer(/*add_prefix_space=*/false,
                                  /*use_regex=*/false));
    stages.push_back(std::move(bytes));
    GgufPreTokenizer made;
    made.stage = MakePreTokenizerSequence(std::move(stages));
    made.nfc = kind.nfc;
    made.ignore_merges = kind.ignore_merges;
    made.add_bos = kind.add_bos;
    made.add_eos = kind.add_eos;
    return made;
  }
  return absl::UnimplementedError(
      absl::StrCat(where, ": a pre-tokenizer named \"", Printable(name),
                   "\" is not supported"));
}

}  // namespace lanewise
