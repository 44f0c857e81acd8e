#include "model/tokenizer/tokenizer_json_stages.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/format/printable.h"
#include "model/tokenizer/precompiled.h"
#include "model/tokenizer/vocabulary.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr size_t kMaxStages = 512;
constexpr size_t kMaxContentBytes = 1024;  // that one stage puts in

// How many stages a value holds, at any depth.
size_t CountStages(const nlohmann::json& value) {
  if (!value.is_structured()) return 0;
  size_t count = value.is_object() && value.contains("type");
  for (const nlohmann::json& item : value) count += CountStages(item);
  return count;
}

absl::StatusOr<std::string> ReadContent(const JsonField& field) {
  LANEWISE_ASSIGN_OR_RETURN(std::string content, field.String());
  if (content.size() <= kMaxContentBytes) return content;
  return field.Error(absl::StrCat("at most ", kMaxContentBytes, " bytes"));
}

// One character.
absl::StatusOr<std::string> ReadReplacement(const JsonField& field,
                                            absl::string_view absent) {
  LANEWISE_ASSIGN_OR_RETURN(std::string text, field.StringOr(absent));
  size_t end = 0;
  if (!text.empty()) NextCodePoint(text, &end);
  if (text.empty() || end != text.size()) return field.Error("one character");
  return text;
}

// The stages of a sequence, read one by one.
template <typename Stage, typename Read>
absl::StatusOr<std::vector<Stage>> ReadStages(const JsonField& list, Read read,
                                              int depth) {
  LANEWISE_ASSIGN_OR_RETURN(const size_t size, list.ArraySize());
  if (depth >= kMaxStageDepth) {
    return list.Error(absl::StrCat("at most ", kMaxStageDepth,
                                   " sequences within each other"));
  }
  if (depth == 0 && CountStages(*list.value()) > kMaxStages) {
    return list.Error(absl::StrCat("at most ", kMaxStages, " stages"));
  }
  std::vector<Stage> stages;
  for (size_t i = 0; i < size; ++i) {
    LANEWISE_ASSIGN_OR_RETURN(Stage stage, read(list[i], depth + 1));
    if (stage != nullptr) stages.push_back(std::move(stage));
  }
  return stages;
}

absl::StatusOr<SplitBehavior> ReadBehavior(const JsonField& field,
                                           absl::string_view absent) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string name, field.StringOr(absent));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return field.Error(
      "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

absl::StatusOr<NormalizerPtr> ReadBertNormalizer(const JsonField& field) {
  BertNormalizerOptions options;
  LANEWISE_ASSIGN_OR_RETURN(options.clean_text,
                            field["clean_text"].BoolOr(true));
  LANEWISE_ASSIGN_OR_RETURN(options.handle_chinese_chars,
                            field["handle_chinese_chars"].BoolOr(true));
  LANEWISE_ASSIGN_OR_RETURN(options.lowercase, field["lowercase"].BoolOr(true));
  if (field["strip_accents"].present()) {
    LANEWISE_ASSIGN_OR_RETURN(options.strip_accents,
                              field["strip_accents"].Bool());
  }
  return MakeBertNormalizer(options);
}

absl::StatusOr<NormalizerPtr> ReadPrecompiled(const JsonField& field) {
  const JsonField charsmap = field["precompiled_charsmap"];
  LANEWISE_ASSIGN_OR_RETURN(const std::string base64, charsmap.StringOr(""));
  std::string bytes;
  if (!absl::Base64Unescape(base64, &bytes)) return charsmap.Error("base64");
  return MakePrecompiledNormalizer(bytes, charsmap.path());
}

}  // namespace

absl::Status UnknownStage(const JsonField& field, absl::string_view type) {
  return absl::UnimplementedError(
      absl::StrCat(field.path(), ": a stage of type \"", Printable(type),
                   "\" is not supported"));
}

absl::StatusOr<Pattern> ReadPattern(const JsonField& field) {
  if (field.value() != nullptr && field.value()->is_string()) {
    LANEWISE_ASSIGN_OR_RETURN(std::string text, field.String());
    return Pattern(std::move(text));
  }
  LANEWISE_RETURN_IF_ERROR(field.CheckObject());
  if (field["Regex"].present()) {
    LANEWISE_ASSIGN_OR_RETURN(const std::string text, field["Regex"].String());
    absl::StatusOr<Regex> regex = Regex::Compile(text);
    if (!regex.ok()) {
      return absl::Status(
          regex.status().code(),
          absl::StrCat(field.path(), ": ", regex.status().message()));
    }
    return Pattern(*std::move(regex));
  }
  LANEWISE_ASSIGN_OR_RETURN(std::string text, field["String"].String());
  return Pattern(std::move(text));
}

absl::StatusOr<PrependScheme> ReadPrependScheme(const JsonField& stage) {
  const JsonField scheme = stage["prepend_scheme"];
  if (!scheme.present()) {
    LANEWISE_ASSIGN_OR_RETURN(const bool prefix,
                              stage["add_prefix_space"].BoolOr(true));
    return prefix ? PrependScheme::kAlways : PrependScheme::kNever;
  }
  LANEWISE_ASSIGN_OR_RETURN(const std::string name, scheme.String());
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return scheme.Error("always, first or never");
}

absl::StatusOr<NormalizerPtr> ReadNormalizer(const JsonField& field,
                                             int depth) {
  if (!field.present()) return NormalizerPtr();
  LANEWISE_ASSIGN_OR_RETURN(const std::string type, field["type"].String());
  if (type == "Sequence") {
    LANEWISE_ASSIGN_OR_RETURN(
        auto stages,
        ReadStages<NormalizerPtr>(field["normalizers"], ReadNormalizer, depth));
    return MakeNormalizerSequence(std::move(stages));
  }
  if (type == "NFC") return MakeUnicodeNormalizer(NormalForm::kNfc);
  if (type == "NFD") return MakeUnicodeNormalizer(NormalForm::kNfd);
  if (type == "NFKC") return MakeUnicodeNormalizer(NormalForm::kNfkc);
  if (type == "NFKD") return MakeUnicodeNormalizer(NormalForm::kNfkd);
  if (type == "Lowercase") return MakeLowercaseNormalizer();
  if (type == "StripAccents") return MakeStripAccentsNormalizer();
  if (type == "Nmt") return MakeNmtNormalizer();
  if (type == "ByteLevel") return MakeByteLevelNormalizer();
  if (type == "BertNormalizer") return ReadBertNormalizer(field);
  if (type == "Precompiled") return ReadPrecompiled(field);
  if (type == "Strip") {
    LANEWISE_ASSIGN_OR_RETURN(const bool left,
                              field["strip_left"].BoolOr(true));
    LANEWISE_ASSIGN_OR_RETURN(const bool right,
                              field["strip_right"].BoolOr(true));
    return MakeStripNormalizer(left, right);
  }
  if (type == "Replace") {
    LANEWISE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(field["pattern"]));
    LANEWISE_ASSIGN_OR_RETURN(std::string content,
                              ReadContent(field["content"]));
    return MakeReplaceNormalizer(std::move(pattern), std::move(content));
  }
  if (type == "Prepend") {
    LANEWISE_ASSIGN_OR_RETURN(std::string prefix,
                              ReadContent(field["prepend"]));
    return MakePrependNormalizer(std::move(prefix));
  }
  return UnknownStage(field, type);
}

absl::StatusOr<PreTokenizerPtr> ReadPreTokenizer(const JsonField& field,
                                                 int depth) {
  if (!field.present()) return PreTokenizerPtr();
  LANEWISE_ASSIGN_OR_RETURN(const std::string type, field["type"].String());
  if (type == "Sequence") {
    LANEWISE_ASSIGN_OR_RETURN(
        auto stages, ReadStages<PreTokenizerPtr>(field["pretokenizers"],
                                                 ReadPreTokenizer, depth));
    return MakePreTokenizerSequence(std::move(stages));
  }
  if (type == "BertPreTokenizer") return MakeBertPreTokenizer();
  if (type == "Whitespace") return MakeWhitespacePreTokenizer();
  if (type == "WhitespaceSplit") return MakeWhitespaceSplitPreTokenizer();
  if (type == "ByteLevel") {
    LANEWISE_ASSIGN_OR_RETURN(const bool prefix,
                              field["add_prefix_space"].BoolOr(true));
    LANEWISE_ASSIGN_OR_RETURN(const bool regex,
                              field["use_regex"].BoolOr(true));
    return MakeByteLevelPreTokenizer(prefix, regex);
  }
  if (type == "Metaspace") {
    LANEWISE_ASSIGN_OR_RETURN(
        std::string replacement,
        ReadReplacement(field["replacement"], "\xE2\x96\x81"));
    LANEWISE_ASSIGN_OR_RETURN(const PrependScheme scheme,
                              ReadPrependScheme(field));
    LANEWISE_ASSIGN_OR_RETURN(const bool split, field["split"].BoolOr(true));
    return MakeMetaspacePreTokenizer(std::move(replacement), scheme, split);
  }
  if (type == "Split") {
    LANEWISE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(field["pattern"]));
    LANEWISE_ASSIGN_OR_RETURN(const SplitBehavior behavior,
                              ReadBehavior(field["behavior"], ""));
    LANEWISE_ASSIGN_OR_RETURN(const bool invert, field["invert"].BoolOr(false));
    return MakeSplitPreTokenizer(std::move(pattern), behavior, invert);
  }
  if (type == "Punctuation") {
    LANEWISE_ASSIGN_OR_RETURN(const SplitBehavior behavior,
                              ReadBehavior(field["behavior"], "Isolated"));
    return MakePunctuationPreTokenizer(behavior);
  }
  if (type == "Digits") {
    LANEWISE_ASSIGN_OR_RETURN(const bool individual,
                              field["individual_digits"].BoolOr(false));
    return MakeDigitsPreTokenizer(individual);
  }
  if (type == "CharDelimiterSplit") {
    LANEWISE_ASSIGN_OR_RETURN(const std::string delimiter,
                              field["delimiter"].String());
    size_t end = 0;
    const char32_t c = delimiter.empty() ? 0 : NextCodePoint(delimiter, &end);
    if (delimiter.empty() || end != delimiter.size()) {
      return field["delimiter"].Error("one character");
    }
    return MakeDelimiterPreTokenizer(c);
  }
  if (type == "FixedLength") {
    LANEWISE_ASSIGN_OR_RETURN(const int64_t length,
                              field["length"].IntOr(1, INT32_MAX, 5));
    return MakeFixedLengthPreTokenizer(static_cast<size_t>(length));
  }
  return UnknownStage(field, type);
}

absl::StatusOr<DecoderPtr> ReadDecoder(const JsonField& field, int depth) {
  if (!field.present()) return DecoderPtr();
  LANEWISE_ASSIGN_OR_RETURN(const std::string type, field["type"].String());
  if (type == "Sequence") {
    LANEWISE_ASSIGN_OR_RETURN(
        auto stages,
        ReadStages<DecoderPtr>(field["decoders"], ReadDecoder, depth));
    return MakeDecoderSequence(std::move(stages));
  }
  if (type == "ByteLevel") return MakeByteLevelDecoder();
  if (type == "ByteFallback") return MakeByteFallbackDecoder();
  if (type == "Fuse") return MakeFuseDecoder();
  if (type == "WordPiece") {
    LANEWISE_ASSIGN_OR_RETURN(std::string prefix,
                              field["prefix"].StringOr("##"));
    LANEWISE_ASSIGN_OR_RETURN(const bool cleanup,
                              field["cleanup"].BoolOr(true));
    return MakeWordPieceDecoder(std::move(prefix), cleanup);
  }
  if (type == "Metaspace") {
    LANEWISE_ASSIGN_OR_RETURN(
        std::string replacement,
        ReadReplacement(field["replacement"], "\xE2\x96\x81"));
    LANEWISE_ASSIGN_OR_RETURN(const PrependScheme scheme,
                              ReadPrependScheme(field));
    return MakeMetaspaceDecoder(std::move(replacement), scheme);
  }
  if (type == "BPEDecoder") {
    LANEWISE_ASSIGN_OR_RETURN(std::string suffix,
                              field["suffix"].StringOr("</w>"));
    return MakeBpeDecoder(std::move(suffix));
  }
  if (type == "CTC") {
    LANEWISE_ASSIGN_OR_RETURN(std::string pad,
                              field["pad_token"].StringOr("<pad>"));
    LANEWISE_ASSIGN_OR_RETURN(std::string delimiter,
                              field["word_delimiter_token"].StringOr("|"));
    LANEWISE_ASSIGN_OR_RETURN(const bool cleanup,
                              field["cleanup"].BoolOr(true));
    return MakeCtcDecoder(std::move(pad), std::move(delimiter), cleanup);
  }
  if (type == "Replace") {
    LANEWISE_ASSIGN_OR_RETURN(Pattern pattern, ReadPattern(field["pattern"]));
    LANEWISE_ASSIGN_OR_RETURN(std::string content,
                              ReadContent(field["content"]));
    return MakeReplaceDecoder(std::move(pattern), std::move(content));
  }
  if (type == "Strip") {
    LANEWISE_ASSIGN_OR_RETURN(std::string content,
                              field["content"].StringOr(" "));
    LANEWISE_ASSIGN_OR_RETURN(const int64_t start,
                              field["start"].IntOr(0, INT32_MAX, 0));
    LANEWISE_ASSIGN_OR_RETURN(const int64_t stop,
                              field["stop"].IntOr(0, INT32_MAX, 0));
    return MakeStripDecoder(std::move(content), static_cast<size_t>(start),
                            static_cast<size_t>(stop));
  }
  return UnknownStage(field, type);
}

}  // namespace lanewise
