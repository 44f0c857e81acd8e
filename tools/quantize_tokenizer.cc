// tokenizer.json as tokenizer.ggml.*: byte pairs over bytes ("gpt2") and over
// characters with byte tokens ("llama", SentencePiece's), and Unigram ("t5").
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/tokenizer/tokenizer.h"
#include "runtime/special_tokens.h"
#include "simd/status_macros.h"
#include "tools/escaped.h"
#include "tools/quantize_export.h"

namespace lanewise {
namespace {

using nlohmann::json;

constexpr char kJson[] = "tokenizer.json";
constexpr char kWayOut[] =
    ": --no_tokenizer writes the file without a vocabulary";

constexpr absl::string_view kSpace = "\xE2\x96\x81";  // SentencePiece's

enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// The patterns of Split that GGUF has a name for. `merges`: whether whole words
// of the vocabulary are taken without merging, unset where it is the same.
struct NamedPattern {
  const char* pattern;
  bool ignore_merges;
  const char* name;
};
#define LANEWISE_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LANEWISE_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LANEWISE_LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define LANEWISE_SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LANEWISE_SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
constexpr char kThreeDigits[] = LANEWISE_SHORT
    "|" LANEWISE_LEAD
    "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LANEWISE_SPACES;
constexpr char kOneDigit[] = LANEWISE_SHORT
    "|" LANEWISE_LEAD
    "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LANEWISE_SPACES;
constexpr char kCased[] = LANEWISE_LEAD LANEWISE_UPPER
    "*" LANEWISE_LOWER "+" LANEWISE_SHORT "?|" LANEWISE_LEAD LANEWISE_UPPER
    "+" LANEWISE_LOWER "*" LANEWISE_SHORT
    "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LANEWISE_SPACES;
constexpr char kCasedOneDigit[] = LANEWISE_LEAD LANEWISE_UPPER
    "*" LANEWISE_LOWER "+|" LANEWISE_LEAD LANEWISE_UPPER "+" LANEWISE_LOWER
    "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LANEWISE_SPACES;
constexpr NamedPattern kPatterns[] = {
    {kThreeDigits, true, "llama-bpe"}, {kThreeDigits, false, "smaug-bpe"},
    {kOneDigit, false, "qwen2"},       {kCased, false, "gpt-4o"},
    {kCasedOneDigit, true, "tekken"},
};

// Texts whose ids must be the same: words, digits, contractions, white space,
// punctuation, scripts, what is invalid.
constexpr absl::string_view kProbes[] = {
    "",
    "Hello, world!",
    "The quick brown fox can't jump over I'LL and you're DON'T.",
    "  leading,   inner and trailing spaces   ",
    "line\nbreaks\r\n\n\n  and\ttabs\t\t",
    "1 12 123 1234 12345678 3.14159 1,000,000 0x7F",
    "snake_case CamelCase HTTPServer x86-64 a/b//c #$%^&*()[]{}<>?!...",
    "na\xC3\xAFve caf\xC3\xA9 \xC3\x9C"
    "ber stra\xC3\x9F"
    "e e\xCC\x81",
    "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x8C\xE4\xB8\x96\xE7\x95\x8C "
    "\xED\x95\x9C\xEA\xB5\xAD \xD0\x9F\xD1\x80\xD0\xB8 \xD8\xB3\xD9\x84",
    "\xF0\x9F\x98\x80\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB \xE2\x82\xAC",
    "for (int i = 0; i < n; ++i) { x[i] += y[i] * 2; }  // done",
    "\xE2\x96\x81 and \xC2\xA0 and \xE3\x80\x80 and \xFF\xFE bytes",
};

absl::Status CannotExpress(const std::string& path, absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(
      path, "/", kJson, ": ", what, " cannot be written as GGUF", kWayOut));
}

class TokenizerExporter {
 public:
  TokenizerExporter(const Checkpoint& folder, size_t vocab_size,
                    Metadata* metadata, std::vector<std::string>* notices)
      : folder_(folder),
        file_(absl::StrCat(folder.path(), "/", kJson)),
        vocab_size_(vocab_size),
        metadata_(*metadata),
        notices_(*notices) {}

  absl::Status Export() {
    absl::StatusOr<json> root = folder_.ReadJson(kJson);
    if (absl::IsNotFound(root.status())) {
      return absl::NotFoundError(absl::StrCat(file_, ": missing", kWayOut));
    }
    LANEWISE_RETURN_IF_ERROR(root.status());
    root_ = *std::move(root);
    LANEWISE_ASSIGN_OR_RETURN(const json* model,
                              GetObject(root_, file_, "model"));
    model_ = model;
    LANEWISE_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Load(folder_));
    LANEWISE_RETURN_IF_ERROR(ExportModel());
    LANEWISE_RETURN_IF_ERROR(ReadTokens());
    LANEWISE_RETURN_IF_ERROR(unigram_         ? ExportUnigram()
                             : sentencepiece_ ? ExportScores()
                                              : ExportMerges());
    LANEWISE_RETURN_IF_ERROR(ExportSpecialTokens());
    LANEWISE_ASSIGN_OR_RETURN(const std::optional<std::string> chat,
                              ReadChatTemplate(folder_));
    if (chat.has_value()) {
      metadata_.Insert("tokenizer.chat_template", *chat);
    }
    return Verify();
  }

 private:
  // Which kind of vocabulary it is, and the name of its pre-tokenizer.
  absl::Status ExportModel() {
    LANEWISE_ASSIGN_OR_RETURN(const std::string type,
                              GetStringOr(*model_, file_, "type", "BPE"));
    unigram_ = type == "Unigram";
    if (unigram_) {
      metadata_.Insert("tokenizer.ggml.model", std::string("t5"));
      metadata_.Insert("tokenizer.ggml.pre", std::string("default"));
      return absl::OkStatus();
    }
    if (type != "BPE") {
      return CannotExpress(folder_.path(),
                           absl::StrCat("a model of type ", type));
    }
    LANEWISE_ASSIGN_OR_RETURN(
        sentencepiece_, GetBoolOr(*model_, file_, "byte_fallback", false));
    std::string pre = "default";
    if (!sentencepiece_) {
      LANEWISE_ASSIGN_OR_RETURN(pre, PreTokenizerName());
    }
    metadata_.Insert("tokenizer.ggml.model",
                     std::string(sentencepiece_ ? "llama" : "gpt2"));
    metadata_.Insert("tokenizer.ggml.pre", pre);
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> PreTokenizerName() const {
    std::vector<const json*> stages;
    if (const json* stage = FindJson(root_, "pre_tokenizer")) {
      const json* parts = FindJson(*stage, "pretokenizers");
      if (parts != nullptr && parts->is_array()) {
        for (const json& part : *parts) stages.push_back(&part);
      } else {
        stages.push_back(stage);
      }
    }
    const auto type_is = [&](size_t index, absl::string_view type) {
      const json* value =
          index < stages.size() ? FindJson(*stages[index], "type") : nullptr;
      return value != nullptr && *value == type;
    };
    const size_t last = stages.empty() ? 0 : stages.size() - 1;
    if (type_is(last, "ByteLevel")) {
      LANEWISE_ASSIGN_OR_RETURN(
          const bool regex, GetBoolOr(*stages[last], file_, "use_regex", true));
      if (stages.size() == 1 && regex) return "gpt-2";
      if (stages.size() == 2 && regex && type_is(0, "Digits")) return "smollm";
      if (stages.size() == 2 && !regex && type_is(0, "Split")) {
        return PatternName(*stages[0]);
      }
    }
    return CannotExpress(folder_.path(), "this pre-tokenizer");
  }

  absl::StatusOr<std::string> PatternName(const json& split) const {
    LANEWISE_ASSIGN_OR_RETURN(
        const bool ignore_merges,
        GetBoolOr(*model_, file_, "ignore_merges", false));
    const json* pattern = FindJson(split, "pattern");
    const json* regex =
        pattern == nullptr ? nullptr : FindJson(*pattern, "Regex");
    for (const NamedPattern& named : kPatterns) {
      if (regex != nullptr && *regex == named.pattern &&
          ignore_merges == named.ignore_merges) {
        return named.name;
      }
    }
    return CannotExpress(folder_.path(), "the pattern of this pre-tokenizer");
  }

  absl::Status SetToken(const std::string& text, const json& id,
                        TokenType type) {
    LANEWISE_ASSIGN_OR_RETURN(
        const uint64_t index,
        ToUint(id, file_, absl::StrCat("id of ", Escaped(text, 80)),
               vocab_size_ - 1));
    tokens_[index] = text;
    types_[index] = type;
    return absl::OkStatus();
  }

  static bool IsByte(const std::string& text) {
    return text.size() == 6 && absl::StartsWith(text, "<0x") && text[5] == '>';
  }

  // {text: id}
  absl::Status ReadVocabulary() {
    LANEWISE_ASSIGN_OR_RETURN(const json* vocab,
                              GetObject(*model_, file_, "vocab"));
    for (const auto& [text, id] : vocab->items()) {
      const bool byte = sentencepiece_ && IsByte(text);
      LANEWISE_RETURN_IF_ERROR(SetToken(text, id, byte ? kByte : kNormal));
    }
    LANEWISE_ASSIGN_OR_RETURN(unknown_,
                              GetStringOr(*model_, file_, "unk_token", ""));
    return absl::OkStatus();
  }

  // [[text, score], …]: the tokenizer has checked the types.
  absl::Status ReadScoredVocabulary() {
    LANEWISE_ASSIGN_OR_RETURN(const json* vocab,
                              GetArray(*model_, file_, "vocab"));
    LANEWISE_ASSIGN_OR_RETURN(
        const bool bytes, GetBoolOr(*model_, file_, "byte_fallback", false));
    LANEWISE_ASSIGN_OR_RETURN(
        const uint64_t unknown,
        GetUintOr(*model_, file_, "unk_id", vocab_size_ - 1, vocab_size_));
    scores_.assign(vocab_size_, 0.0);
    for (size_t id = 0; id < vocab->size(); ++id) {
      const std::string& text = (*vocab)[id][0].get_ref<const std::string&>();
      LANEWISE_RETURN_IF_ERROR(
          SetToken(text, json(id), bytes && IsByte(text) ? kByte : kNormal));
      scores_[id] = (*vocab)[id][1].get<double>();
      if (id == unknown) unknown_ = text;
    }
    return absl::OkStatus();
  }

  // All tokens by id; ids that the model has and the tokenizer has not are
  // marked as unused.
  absl::Status ReadTokens() {
    tokens_.resize(vocab_size_);
    types_.assign(vocab_size_, kUnused);
    for (size_t i = 0; i < vocab_size_; ++i) {
      tokens_[i] = absl::StrCat("[PAD", i, "]");
    }
    LANEWISE_RETURN_IF_ERROR(unigram_ ? ReadScoredVocabulary()
                                      : ReadVocabulary());
    if (const json* added = FindJson(root_, "added_tokens");
        added != nullptr && added->is_array()) {
      for (const json& token : *added) {
        LANEWISE_ASSIGN_OR_RETURN(const std::string text,
                                  GetString(token, file_, "content"));
        LANEWISE_ASSIGN_OR_RETURN(const json* id, GetJson(token, file_, "id"));
        LANEWISE_ASSIGN_OR_RETURN(const bool special,
                                  GetBoolOr(token, file_, "special", false));
        const bool unknown = (sentencepiece_ || unigram_) && text == unknown_;
        LANEWISE_RETURN_IF_ERROR(SetToken(text, *id,
                                          unknown   ? kUnknown
                                          : special ? kControl
                                                    : kUserDefined));
      }
    }
    metadata_.Insert("tokenizer.ggml.tokens", tokens_);
    metadata_.Insert("tokenizer.ggml.token_type", types_, MetadataType::kInt32);
    return absl::OkStatus();
  }

  // "a b", also where the file has ["a", "b"].
  absl::StatusOr<std::vector<std::string>> ReadMerges() const {
    LANEWISE_ASSIGN_OR_RETURN(const json* list,
                              GetArray(*model_, file_, "merges"));
    std::vector<std::string> merges;
    for (const json& merge : *list) {
      if (merge.is_string()) {
        merges.push_back(merge.get_ref<const std::string&>());
      } else if (merge.is_array() && merge.size() == 2 &&
                 merge[0].is_string() && merge[1].is_string()) {
        merges.push_back(absl::StrCat(merge[0].get_ref<const std::string&>(),
                                      " ",
                                      merge[1].get_ref<const std::string&>()));
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat(file_,
                         ": model.merges: expected pairs of tokens, "
                         "found ",
                         DescribeJson(merge)));
      }
    }
    return merges;
  }

  absl::Status ExportMerges() {
    LANEWISE_ASSIGN_OR_RETURN(std::vector<std::string> merges, ReadMerges());
    metadata_.Insert("tokenizer.ggml.merges", std::move(merges));
    return absl::OkStatus();
  }

  // SentencePiece merges the pair whose result scores best: the earlier its
  // merge, the higher the score.
  absl::Status ExportScores() {
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<std::string> merges,
                              ReadMerges());
    absl::flat_hash_map<std::string, double> score;
    for (size_t i = 0; i < merges.size(); ++i) {
      std::string whole = merges[i];
      const size_t space = whole.find(' ', 1);
      if (space != std::string::npos) whole.erase(space, 1);
      score.try_emplace(std::move(whole), -static_cast<double>(i));
    }
    const double lowest = -static_cast<double>(merges.size());
    std::vector<double> scores;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const auto found = score.find(tokens_[i]);
      scores.push_back(types_[i] != kNormal   ? 0.0
                       : found != score.end() ? found->second
                                              : lowest);
    }
    metadata_.Insert("tokenizer.ggml.scores", std::move(scores),
                     MetadataType::kFloat32);
    return absl::OkStatus();
  }

  // Scores, and what happens to a text before; whether that is all that the
  // folder's stages do, Verify finds out.
  absl::Status ExportUnigram() {
    metadata_.Insert("tokenizer.ggml.scores", scores_, MetadataType::kFloat32);
    metadata_.Insert("tokenizer.ggml.remove_extra_whitespaces", true);
    const json* normalizer = FindJson(root_, "normalizer");
    if (normalizer == nullptr) return absl::OkStatus();
    const json* parts = FindJson(*normalizer, "normalizers");
    for (const json& part :
         parts != nullptr && parts->is_array() ? *parts : json({*normalizer})) {
      const json* map = FindJson(part, "precompiled_charsmap");
      if (map == nullptr || !map->is_string()) continue;
      std::string bytes;
      if (!absl::Base64Unescape(map->get_ref<const std::string&>(), &bytes)) {
        return CannotExpress(folder_.path(), "this normalizer");
      }
      std::vector<int64_t> values;
      for (const char byte : bytes) {
        values.push_back(static_cast<uint8_t>(byte));
      }
      metadata_.Insert("tokenizer.ggml.precompiled_charsmap", std::move(values),
                       MetadataType::kUint8);
    }
    return absl::OkStatus();
  }

  void InsertId(absl::string_view name, std::optional<int32_t> id) {
    if (!id.has_value()) return;
    metadata_.Insert(absl::StrCat("tokenizer.ggml.", name, "_token_id"),
                     static_cast<int64_t>(*id), MetadataType::kUint32);
  }

  absl::Status ExportSpecialTokens() {
    LANEWISE_ASSIGN_OR_RETURN(const SpecialTokens special,
                              ReadSpecialTokens(folder_, *tokenizer_));
    std::optional<int32_t> bos = special.bos;
    std::optional<int32_t> eos = tokenizer_->TokenId(special.eos_text);
    if (!eos.has_value() && !special.end_ids.empty()) {
      eos = special.end_ids.front();
    }
    // What stands around a text.
    EncodeOptions plain;
    plain.add_special_tokens = plain.pad = plain.truncate = false;
    EncodeOptions around = plain;
    around.add_special_tokens = true;
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> inner,
                              tokenizer_->Encode("a", plain));
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> outer,
                              tokenizer_->Encode("a", around));
    const auto begin =
        std::search(outer.begin(), outer.end(), inner.begin(), inner.end());
    const auto before = begin - outer.begin();
    const auto behind =
        static_cast<ptrdiff_t>(outer.size() - inner.size()) - before;
    if (before > 1 || behind > 1 || begin == outer.end()) {
      return CannotExpress(folder_.path(),
                           "more than one token before or behind a text");
    }
    if (before == 1) bos = outer.front();
    if (behind == 1) eos = outer.back();
    InsertId("bos", bos);
    InsertId("eos", eos);
    InsertId("unknown", tokenizer_->TokenId(unknown_));
    metadata_.Insert("tokenizer.ggml.add_bos_token", before == 1);
    metadata_.Insert("tokenizer.ggml.add_eos_token", behind == 1);
    if (sentencepiece_ || unigram_) {
      const bool prefix =
          !inner.empty() &&
          absl::StartsWith(tokenizer_->TokenText(inner[0]), kSpace);
      metadata_.Insert("tokenizer.ggml.add_space_prefix", prefix);
    }
    return absl::OkStatus();
  }

  absl::Status Verify() {
    bool spaces_differ = false;
    LANEWISE_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> written,
                              Tokenizer::FromMetadata(metadata_));
    for (const absl::string_view text : kProbes) {
      for (const bool special : {false, true}) {
        EncodeOptions options;
        options.add_special_tokens = special;
        options.pad = options.truncate = false;
        LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> expected,
                                  tokenizer_->Encode(text, options));
        LANEWISE_ASSIGN_OR_RETURN(const std::vector<int32_t> found,
                                  written->Encode(text, options));
        if (expected == found) continue;
        spaces_differ = true;
        if (!absl::StartsWith(text, " ") && !absl::StartsWith(text, kSpace)) {
          return CannotExpress(
              folder_.path(),
              absl::StrCat("this tokenizer (the text \"", Escaped(text, 80),
                           "\" would get other ids)"));
        }
      }
    }
    if (spaces_differ) {
      notices_.push_back(
          "texts that begin with a space get other ids than in the folder: "
          "GGUF's vocabularies of this kind put one more before them");
    }
    return absl::OkStatus();
  }

  const Checkpoint& folder_;
  const std::string file_;
  const size_t vocab_size_;
  Metadata& metadata_;
  std::vector<std::string>& notices_;
  json root_;
  const json* model_ = nullptr;
  std::unique_ptr<Tokenizer> tokenizer_;
  bool sentencepiece_ = false, unigram_ = false;
  std::string unknown_;
  std::vector<std::string> tokens_;
  std::vector<int64_t> types_;
  std::vector<double> scores_;  // of unigram_
};

}  // namespace

absl::Status ExportTokenizer(const Checkpoint& folder, size_t vocab_size,
                             Metadata* metadata,
                             std::vector<std::string>* notices) {
  return TokenizerExporter(folder, vocab_size, metadata, notices).Export();
}

}  // namespace lanewise
