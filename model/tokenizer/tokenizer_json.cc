// Tokenizer::FromJson and Tokenizer::Load.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "model/format/printable.h"
#include "model/tokenizer/pipeline.h"
#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/tokenizer_json_stages.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 30;  // of truncation
// Padding is made, so its length costs memory.
constexpr int64_t kMaxPadding = int64_t{1} << 20;

absl::StatusOr<AddedToken> ReadAddedToken(const JsonField& field,
                                          const Vocabulary& vocabulary) {
  AddedToken token;
  LANEWISE_ASSIGN_OR_RETURN(token.content, field["content"].String());
  LANEWISE_ASSIGN_OR_RETURN(const int64_t id, field["id"].Int(0, kMaxTokenId));
  LANEWISE_ASSIGN_OR_RETURN(token.single_word,
                            field["single_word"].BoolOr(false));
  LANEWISE_ASSIGN_OR_RETURN(token.lstrip, field["lstrip"].BoolOr(false));
  LANEWISE_ASSIGN_OR_RETURN(token.rstrip, field["rstrip"].BoolOr(false));
  LANEWISE_ASSIGN_OR_RETURN(token.special, field["special"].BoolOr(false));
  LANEWISE_ASSIGN_OR_RETURN(token.normalized,
                            field["normalized"].BoolOr(!token.special));
  // The vocabulary decides where both know the token.
  token.id = vocabulary.Find(token.content).value_or(static_cast<int32_t>(id));
  if (vocabulary.Has(token.id) && vocabulary.Text(token.id) != token.content) {
    return field["id"].Error(absl::StrCat(
        "an id that is not of \"", Printable(vocabulary.Text(token.id)), "\""));
  }
  return token;
}

absl::StatusOr<std::vector<AddedToken>> ReadAddedTokens(
    const JsonField& field, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (!field.present()) return tokens;
  LANEWISE_ASSIGN_OR_RETURN(const size_t size, field.ArraySize());
  for (size_t i = 0; i < size; ++i) {
    LANEWISE_ASSIGN_OR_RETURN(AddedToken token,
                              ReadAddedToken(field[i], vocabulary));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

absl::StatusOr<bool> ReadIsLeft(const JsonField& field) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string name, field.StringOr("Right"));
  if (name != "Left" && name != "Right") return field.Error("Left or Right");
  return name == "Left";
}

absl::StatusOr<std::optional<Truncation>> ReadTruncation(
    const JsonField& field) {
  if (!field.present()) return std::optional<Truncation>();
  Truncation truncation;
  LANEWISE_ASSIGN_OR_RETURN(const int64_t length,
                            field["max_length"].Int(0, kMaxLength));
  truncation.max_length = static_cast<size_t>(length);
  LANEWISE_ASSIGN_OR_RETURN(truncation.left, ReadIsLeft(field["direction"]));
  LANEWISE_ASSIGN_OR_RETURN(const std::string strategy,
                            field["strategy"].StringOr("LongestFirst"));
  if (strategy == "LongestFirst") {
    truncation.strategy = Truncation::Strategy::kLongestFirst;
  } else if (strategy == "OnlyFirst") {
    truncation.strategy = Truncation::Strategy::kOnlyFirst;
  } else if (strategy == "OnlySecond") {
    truncation.strategy = Truncation::Strategy::kOnlySecond;
  } else {
    return field["strategy"].Error("LongestFirst, OnlyFirst or OnlySecond");
  }
  return std::optional<Truncation>(truncation);
}

absl::StatusOr<std::optional<Padding>> ReadPadding(const JsonField& field) {
  if (!field.present()) return std::optional<Padding>();
  Padding padding;
  const JsonField strategy = field["strategy"];
  if (strategy["Fixed"].present()) {
    LANEWISE_ASSIGN_OR_RETURN(const int64_t length,
                              strategy["Fixed"].Int(0, kMaxPadding));
    padding.length = static_cast<size_t>(length);
  } else {
    LANEWISE_ASSIGN_OR_RETURN(const std::string name,
                              strategy.StringOr("BatchLongest"));
    if (name != "BatchLongest") {
      return strategy.Error("BatchLongest or Fixed");
    }
  }
  LANEWISE_ASSIGN_OR_RETURN(padding.left, ReadIsLeft(field["direction"]));
  LANEWISE_ASSIGN_OR_RETURN(
      const int64_t multiple,
      field["pad_to_multiple_of"].IntOr(0, kMaxPadding, 1));
  padding.multiple = static_cast<size_t>(multiple);
  LANEWISE_ASSIGN_OR_RETURN(const int64_t id,
                            field["pad_id"].IntOr(0, kMaxTokenId, 0));
  padding.id = static_cast<int32_t>(id);
  LANEWISE_ASSIGN_OR_RETURN(const int64_t type_id,
                            field["pad_type_id"].IntOr(0, INT32_MAX, 0));
  padding.type_id = static_cast<int32_t>(type_id);
  return std::optional<Padding>(padding);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> FromParsed(
    const nlohmann::json& json, absl::string_view file) {
  const JsonField root = JsonField::Root(json, file);
  LANEWISE_RETURN_IF_ERROR(root.CheckObject());
  PipelineStages stages;
  LANEWISE_ASSIGN_OR_RETURN(stages.model, ReadTokenModel(root["model"]));
  LANEWISE_ASSIGN_OR_RETURN(stages.normalizer,
                            ReadNormalizer(root["normalizer"]));
  LANEWISE_ASSIGN_OR_RETURN(stages.pre_tokenizer,
                            ReadPreTokenizer(root["pre_tokenizer"]));
  LANEWISE_ASSIGN_OR_RETURN(stages.post_processor,
                            ReadPostProcessor(root["post_processor"]));
  LANEWISE_ASSIGN_OR_RETURN(stages.decoder, ReadDecoder(root["decoder"]));
  LANEWISE_ASSIGN_OR_RETURN(
      stages.added_tokens,
      ReadAddedTokens(root["added_tokens"], stages.model->vocabulary()));
  LANEWISE_ASSIGN_OR_RETURN(stages.truncation,
                            ReadTruncation(root["truncation"]));
  LANEWISE_ASSIGN_OR_RETURN(stages.padding, ReadPadding(root["padding"]));
  return Pipeline::Create(std::move(stages),
                          absl::StrCat(file, ": added_tokens"));
}

// The vocabulary files of folders that are older than tokenizer.json.
constexpr absl::string_view kOlderFiles[] = {"sentencepiece.bpe.model",
                                             "tokenizer.model",
                                             "spiece.model",
                                             "sentencepiece.model",
                                             "source.spm",
                                             "vocab.json",
                                             "vocab.txt",
                                             "vocab.tsv"};

// `not_found`, or what to do about it where an older file is there.
absl::Status MissingFile(const Checkpoint& checkpoint,
                         const absl::Status& not_found) {
  for (const absl::string_view name : kOlderFiles) {
    if (absl::IsNotFound(checkpoint.ReadText(name).status())) continue;
    return absl::NotFoundError(absl::StrCat(
        checkpoint.path(), ": expected tokenizer.json, found only ", name,
        ", which is not read: save the tokenizer as a fast one "
        "(AutoTokenizer.from_pretrained(folder).save_pretrained(folder)), "
        "which writes tokenizer.json"));
  }
  return not_found;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromJson(
    absl::string_view json, absl::string_view file) {
  LANEWISE_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(json, file));
  return FromParsed(parsed, file);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Load(
    const Checkpoint& checkpoint) {
  if (checkpoint.kind() == CheckpointKind::kGguf) {
    return FromMetadata(checkpoint.metadata());
  }
  const absl::StatusOr<nlohmann::json> json =
      checkpoint.ReadJson("tokenizer.json");
  if (absl::IsNotFound(json.status())) {
    return MissingFile(checkpoint, json.status());
  }
  LANEWISE_RETURN_IF_ERROR(json.status());
  return FromParsed(*json, absl::StrCat(checkpoint.path(), "/tokenizer.json"));
}

}  // namespace lanewise
