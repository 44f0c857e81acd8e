// Tokenizer::FromMetadata: the pipeline from tokenizer.ggml.* in a GGUF file.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/format/printable.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/gguf_pre_tokenizer.h"
#include "model/tokenizer/pipeline.h"
#include "model/tokenizer/precompiled.h"
#include "model/tokenizer/sentencepiece.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unigram.h"
#include "model/tokenizer/wordpiece.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Kind = TemplatePart::Kind;

constexpr absl::string_view kTokens = "tokenizer.ggml.tokens";
constexpr absl::string_view kTypes = "tokenizer.ggml.token_type";
constexpr absl::string_view kScores = "tokenizer.ggml.scores";
constexpr absl::string_view kMerges = "tokenizer.ggml.merges";
constexpr absl::string_view kSpace = "\xE2\x96\x81";  // "▁"

enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

class Reader {
 public:
  explicit Reader(const Metadata& metadata) : metadata_(metadata) {}

  absl::StatusOr<std::unique_ptr<Tokenizer>> Read();

 private:
  std::string Where(absl::string_view key) const {
    return absl::StrCat(metadata_.file(), ": ", key);
  }

  absl::Status ReadTokens();
  absl::Status ReadScores();
  absl::StatusOr<std::optional<int32_t>> ReadId(absl::string_view key) const;
  absl::Status ReadSpecialIds();
  absl::Status ReadAround(bool bos, bool eos);
  void ReadAddedTokens();
  absl::StatusOr<Vocabulary> TakeVocabulary() {
    return Vocabulary::FromList(tokens_, Where(kTokens));
  }

  absl::Status ReadBytePairs();
  absl::Status ReadSentencePiece();
  absl::Status ReadUnigram();
  absl::Status ReadWordPiece();

  const Metadata& metadata_;
  std::vector<std::string> tokens_;
  std::vector<int64_t> types_;
  std::vector<double> scores_;
  std::optional<int32_t> bos_, eos_, unk_, sep_, cls_;
  PipelineStages stages_;
};

absl::Status Reader::ReadTokens() {
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<std::string>* tokens,
                            metadata_.GetStrings(kTokens));
  tokens_ = *tokens;
  types_.assign(tokens_.size(), kNormal);
  if (!metadata_.Has(kTypes)) return absl::OkStatus();
  LANEWISE_ASSIGN_OR_RETURN(types_, metadata_.GetInts(kTypes));
  if (types_.size() != tokens_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(kTypes), ": expected ", tokens_.size(),
                     " types, one a token, found ", types_.size()));
  }
  return absl::OkStatus();
}

absl::Status Reader::ReadScores() {
  LANEWISE_ASSIGN_OR_RETURN(scores_, metadata_.GetFloats(kScores));
  if (scores_.size() != tokens_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Where(kScores), ": expected ", tokens_.size(),
                     " scores, one a token, found ", scores_.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int32_t>> Reader::ReadId(
    absl::string_view key) const {
  if (!metadata_.Has(key)) return std::optional<int32_t>();
  LANEWISE_ASSIGN_OR_RETURN(const uint64_t id,
                            metadata_.GetUint(key, UINT32_MAX));
  if (id == UINT32_MAX) return std::optional<int32_t>();  // "none"
  if (id >= tokens_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        Where(key), ": expected an id below ", tokens_.size(), ", found ", id));
  }
  return std::optional<int32_t>(static_cast<int32_t>(id));
}

absl::Status Reader::ReadSpecialIds() {
  LANEWISE_ASSIGN_OR_RETURN(bos_, ReadId("tokenizer.ggml.bos_token_id"));
  LANEWISE_ASSIGN_OR_RETURN(eos_, ReadId("tokenizer.ggml.eos_token_id"));
  LANEWISE_ASSIGN_OR_RETURN(unk_, ReadId("tokenizer.ggml.unknown_token_id"));
  LANEWISE_ASSIGN_OR_RETURN(cls_, ReadId("tokenizer.ggml.cls_token_id"));
  // The format spells it so.
  LANEWISE_ASSIGN_OR_RETURN(sep_, ReadId("tokenizer.ggml.seperator_token_id"));
  stages_.bos_id = bos_;
  stages_.eos_id = eos_;
  return absl::OkStatus();
}

// The tokens before and behind a text; `bos` and `eos`: where the file does
// not say.
absl::Status Reader::ReadAround(bool bos, bool eos) {
  LANEWISE_ASSIGN_OR_RETURN(
      bos, metadata_.GetBoolOr("tokenizer.ggml.add_bos_token", bos));
  LANEWISE_ASSIGN_OR_RETURN(
      eos, metadata_.GetBoolOr("tokenizer.ggml.add_eos_token", eos));
  Template before, behind;
  if (bos && bos_) before.push_back({Kind::kTokens, 0, {*bos_}});
  if (eos && eos_) behind.push_back({Kind::kTokens, 0, {*eos_}});
  PostProcessor& post = stages_.post_processor;
  const auto add = [](const Template& parts, int32_t type_id, Template* out) {
    for (TemplatePart part : parts) {
      part.type_id = type_id;
      out->push_back(std::move(part));
    }
  };
  post.single.clear();
  add(before, 0, &post.single);
  post.single.push_back({Kind::kFirst, 0});
  add(behind, 0, &post.single);
  post.pair = post.single;
  add(before, 1, &post.pair);
  post.pair.push_back({Kind::kSecond, 1});
  add(behind, 1, &post.pair);
  return absl::OkStatus();
}

// Control tokens are special; so is the unknown token. User-defined ones are
// found in the text, but are not special.
void Reader::ReadAddedTokens() {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const int64_t type = types_[i];
    if (type != kControl && type != kUnknown && type != kUserDefined) continue;
    // Longer ones are no marks that somebody writes.
    if (tokens_[i].size() > AddedTokens::kMaxContent) continue;
    AddedToken token;
    token.content = tokens_[i];
    token.id = static_cast<int32_t>(i);
    token.special = type != kUserDefined;
    stages_.added_tokens.push_back(std::move(token));
  }
}

absl::Status Reader::ReadBytePairs() {
  constexpr absl::string_view kPre = "tokenizer.ggml.pre";
  absl::string_view name = "default";
  if (metadata_.Has(kPre)) {
    LANEWISE_ASSIGN_OR_RETURN(name, metadata_.GetString(kPre));
  }
  LANEWISE_ASSIGN_OR_RETURN(GgufPreTokenizer pre,
                            MakeGgufPreTokenizer(name, Where(kPre)));
  LANEWISE_ASSIGN_OR_RETURN(const std::vector<std::string>* lines,
                            metadata_.GetStrings(kMerges));
  Bpe::MergeList merges;
  merges.reserve(lines->size());
  for (size_t i = 0; i < lines->size(); ++i) {
    const std::string& line = (*lines)[i];
    const size_t space = line.find(' ', 1);
    if (space == std::string::npos || space + 1 == line.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Where(kMerges), "[", i, "]: expected two tokens, found \"",
          Printable(line), "\""));
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  BpeOptions options;
  options.ignore_merges = pre.ignore_merges;
  options.skip_unknown_merges = true;
  LANEWISE_ASSIGN_OR_RETURN(Vocabulary vocabulary, TakeVocabulary());
  LANEWISE_ASSIGN_OR_RETURN(stages_.model,
                            Bpe::Create(std::move(vocabulary), merges,
                                        std::move(options), metadata_.file()));
  if (pre.nfc) stages_.normalizer = MakeUnicodeNormalizer(NormalForm::kNfc);
  stages_.pre_tokenizer = std::move(pre.stage);
  stages_.decoder = MakeByteLevelDecoder();
  return ReadAround(pre.add_bos, pre.add_eos);
}

absl::Status Reader::ReadSentencePiece() {
  LANEWISE_RETURN_IF_ERROR(ReadScores());
  LANEWISE_ASSIGN_OR_RETURN(
      const bool prefix,
      metadata_.GetBoolOr("tokenizer.ggml.add_space_prefix", true));
  std::vector<bool> usable(tokens_.size());
  for (size_t i = 0; i < usable.size(); ++i) {
    usable[i] = types_[i] == kNormal || types_[i] == kUserDefined;
  }
  LANEWISE_ASSIGN_OR_RETURN(Vocabulary vocabulary, TakeVocabulary());
  LANEWISE_ASSIGN_OR_RETURN(
      stages_.model,
      SentencePieceBpe::Create(std::move(vocabulary), scores_,
                               std::move(usable), unk_, Where(kScores)));
  std::vector<NormalizerPtr> normalizers;
  if (prefix) normalizers.push_back(MakePrependNormalizer(std::string(kSpace)));
  normalizers.push_back(
      MakeReplaceNormalizer(std::string(" "), std::string(kSpace)));
  stages_.normalizer = MakeNormalizerSequence(std::move(normalizers));
  std::vector<DecoderPtr> decoders;
  decoders.push_back(MakeReplaceDecoder(std::string(kSpace), " "));
  decoders.push_back(MakeByteFallbackDecoder());
  decoders.push_back(MakeFuseDecoder());
  if (prefix) decoders.push_back(MakeStripDecoder(" ", 1, 0));
  stages_.decoder = MakeDecoderSequence(std::move(decoders));
  return ReadAround(/*bos=*/true, /*eos=*/false);
}

absl::Status Reader::ReadUnigram() {
  LANEWISE_RETURN_IF_ERROR(ReadScores());
  constexpr absl::string_view kMap = "tokenizer.ggml.precompiled_charsmap";
  std::vector<NormalizerPtr> normalizers;
  if (metadata_.Has(kMap)) {
    LANEWISE_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                              metadata_.GetInts(kMap));
    std::string bytes;
    for (const int64_t value : values) {
      bytes.push_back(static_cast<char>(value & 0xFF));
    }
    LANEWISE_ASSIGN_OR_RETURN(NormalizerPtr map,
                              MakePrecompiledNormalizer(bytes, Where(kMap)));
    if (map != nullptr) normalizers.push_back(std::move(map));
  }
  LANEWISE_ASSIGN_OR_RETURN(
      const bool squeeze,
      metadata_.GetBoolOr("tokenizer.ggml.remove_extra_whitespaces", false));
  if (squeeze) {
    LANEWISE_ASSIGN_OR_RETURN(Regex spaces, Regex::Compile(" {2,}"));
    normalizers.push_back(MakeStripNormalizer(true, true));
    normalizers.push_back(MakeReplaceNormalizer(std::move(spaces), " "));
  }
  stages_.normalizer = MakeNormalizerSequence(std::move(normalizers));
  LANEWISE_ASSIGN_OR_RETURN(
      const bool prefix,
      metadata_.GetBoolOr("tokenizer.ggml.add_space_prefix", true));
  const PrependScheme scheme =
      prefix ? PrependScheme::kAlways : PrependScheme::kNever;
  stages_.pre_tokenizer =
      MakeMetaspacePreTokenizer(std::string(kSpace), scheme, /*split=*/true);
  stages_.decoder = MakeMetaspaceDecoder(std::string(kSpace), scheme);
  const bool bytes = std::count(types_.begin(), types_.end(), kByte) > 0;
  LANEWISE_ASSIGN_OR_RETURN(Vocabulary vocabulary, TakeVocabulary());
  LANEWISE_ASSIGN_OR_RETURN(
      stages_.model, Unigram::Create(std::move(vocabulary), scores_, unk_,
                                     bytes, Where(kScores)));
  return ReadAround(/*bos=*/false, /*eos=*/true);
}

// The file marks the start of words ("▁the", "ing"), where BERT's own
// vocabulary marks the inside ("the", "##ing").
absl::Status Reader::ReadWordPiece() {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (types_[i] != kNormal) continue;
    if (absl::StartsWith(tokens_[i], kSpace)) {
      tokens_[i].erase(0, kSpace.size());
    } else if (!absl::StartsWith(tokens_[i], "[") ||
               !absl::EndsWith(tokens_[i], "]")) {  // not "[unused1]"
      tokens_[i].insert(0, "##");
    }
  }
  BertNormalizerOptions normalizer;
  LANEWISE_ASSIGN_OR_RETURN(
      normalizer.lowercase,
      metadata_.GetBoolOr("tokenizer.ggml.normalizer.lowercase", true));
  stages_.normalizer = MakeBertNormalizer(normalizer);
  stages_.pre_tokenizer = MakeBertPreTokenizer();
  stages_.decoder = MakeWordPieceDecoder("##", /*cleanup=*/true);
  WordPieceOptions options;
  if (unk_.has_value()) options.unk_token = tokens_[*unk_];
  LANEWISE_ASSIGN_OR_RETURN(Vocabulary vocabulary, TakeVocabulary());
  LANEWISE_ASSIGN_OR_RETURN(
      stages_.model,
      WordPiece::Create(std::move(vocabulary), options, metadata_.file()));
  const std::optional<int32_t> cls = bos_ ? bos_ : cls_;
  const std::optional<int32_t> sep = sep_ ? sep_ : eos_;
  if (cls && sep) stages_.post_processor = BertPostProcessor(*cls, *sep);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Reader::Read() {
  constexpr absl::string_view kModel = "tokenizer.ggml.model";
  LANEWISE_ASSIGN_OR_RETURN(const absl::string_view model,
                            metadata_.GetString(kModel));
  const bool known =
      model == "gpt2" || model == "llama" || model == "t5" || model == "bert";
  if (!known) {
    return absl::UnimplementedError(
        absl::StrCat(Where(kModel), ": a vocabulary of type \"",
                     Printable(model), "\" is not supported"));
  }
  LANEWISE_RETURN_IF_ERROR(ReadTokens());
  LANEWISE_RETURN_IF_ERROR(ReadSpecialIds());
  LANEWISE_RETURN_IF_ERROR(model == "gpt2"    ? ReadBytePairs()
                           : model == "llama" ? ReadSentencePiece()
                           : model == "t5"    ? ReadUnigram()
                                              : ReadWordPiece());
  ReadAddedTokens();
  return Pipeline::Create(std::move(stages_), Where(kTokens));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromMetadata(
    const Metadata& metadata) {
  return Reader(metadata).Read();
}

}  // namespace lanewise
