// Model and post-processor of a tokenizer.json.
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/tokenizer_json_stages.h"
#include "model/tokenizer/unigram.h"
#include "model/tokenizer/wordlevel.h"
#include "model/tokenizer/wordpiece.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Kind = TemplatePart::Kind;
using nlohmann::json;

// {"token": id, …}
absl::StatusOr<Vocabulary> ReadVocabulary(const JsonField& field) {
  LANEWISE_RETURN_IF_ERROR(field.CheckObject());
  std::vector<std::pair<std::string, int64_t>> entries;
  entries.reserve(field.value()->size());
  for (auto it = field.value()->begin(); it != field.value()->end(); ++it) {
    const auto* id = it->get_ptr<const json::number_unsigned_t*>();
    if (id == nullptr || *id > static_cast<uint64_t>(kMaxTokenId)) {
      return field[it.key()].Error(absl::StrCat("an id in 0..", kMaxTokenId));
    }
    entries.emplace_back(it.key(), static_cast<int64_t>(*id));
  }
  return Vocabulary::Create(std::move(entries), field.path());
}

// [["a", "b"], …] or, in older files, ["a b", …].
absl::StatusOr<Bpe::MergeList> ReadMerges(const JsonField& field) {
  LANEWISE_ASSIGN_OR_RETURN(const size_t size, field.ArraySize());
  Bpe::MergeList merges;
  merges.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    const json& merge = (*field.value())[i];
    if (const auto* text = merge.get_ptr<const std::string*>()) {
      if (text->rfind("#version", 0) == 0) continue;
      const std::vector<std::string> parts = absl::StrSplit(*text, ' ');
      if (parts.size() != 2) return field[i].Error("two tokens");
      merges.emplace_back(parts[0], parts[1]);
      continue;
    }
    if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() ||
        !merge[1].is_string()) {
      return field[i].Error("two tokens");
    }
    merges.emplace_back(*merge[0].get_ptr<const std::string*>(),
                        *merge[1].get_ptr<const std::string*>());
  }
  return merges;
}

absl::StatusOr<std::unique_ptr<TokenModel>> ReadBpe(const JsonField& field) {
  LANEWISE_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                            ReadVocabulary(field["vocab"]));
  LANEWISE_ASSIGN_OR_RETURN(const Bpe::MergeList merges,
                            ReadMerges(field["merges"]));
  BpeOptions options;
  if (field["unk_token"].present()) {
    LANEWISE_ASSIGN_OR_RETURN(options.unk_token, field["unk_token"].String());
  }
  LANEWISE_ASSIGN_OR_RETURN(options.continuing_subword_prefix,
                            field["continuing_subword_prefix"].StringOr(""));
  LANEWISE_ASSIGN_OR_RETURN(options.end_of_word_suffix,
                            field["end_of_word_suffix"].StringOr(""));
  LANEWISE_ASSIGN_OR_RETURN(options.fuse_unk, field["fuse_unk"].BoolOr(false));
  LANEWISE_ASSIGN_OR_RETURN(options.byte_fallback,
                            field["byte_fallback"].BoolOr(false));
  LANEWISE_ASSIGN_OR_RETURN(options.ignore_merges,
                            field["ignore_merges"].BoolOr(false));
  if (field["dropout"].present()) {
    LANEWISE_ASSIGN_OR_RETURN(const double dropout, field["dropout"].Number());
    if (dropout != 0) return field["dropout"].Error("no dropout (0 or null)");
  }
  return Bpe::Create(std::move(vocabulary), merges, std::move(options),
                     field.path());
}

// [["token", score], …]: ids are places.
absl::StatusOr<std::unique_ptr<TokenModel>> ReadUnigram(
    const JsonField& field) {
  const JsonField vocab = field["vocab"];
  LANEWISE_ASSIGN_OR_RETURN(const size_t size, vocab.ArraySize());
  std::vector<std::string> tokens;
  std::vector<double> scores;
  tokens.reserve(size);
  scores.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    const json& entry = (*vocab.value())[i];
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() ||
        !entry[1].is_number()) {
      return vocab[i].Error("a token and its score");
    }
    tokens.push_back(*entry[0].get_ptr<const std::string*>());
    scores.push_back(entry[1].get<double>());
  }
  LANEWISE_ASSIGN_OR_RETURN(
      Vocabulary vocabulary,
      Vocabulary::FromList(std::move(tokens), vocab.path()));
  std::optional<int32_t> unk_id;
  if (field["unk_id"].present()) {
    LANEWISE_ASSIGN_OR_RETURN(
        unk_id, field["unk_id"].Int(0, static_cast<int64_t>(size) - 1));
  }
  LANEWISE_ASSIGN_OR_RETURN(const bool byte_fallback,
                            field["byte_fallback"].BoolOr(false));
  return Unigram::Create(std::move(vocabulary), std::move(scores), unk_id,
                         byte_fallback, vocab.path());
}

absl::StatusOr<std::unique_ptr<TokenModel>> ReadWordPiece(
    const JsonField& field) {
  LANEWISE_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                            ReadVocabulary(field["vocab"]));
  WordPieceOptions options;
  LANEWISE_ASSIGN_OR_RETURN(options.unk_token,
                            field["unk_token"].StringOr(options.unk_token));
  LANEWISE_ASSIGN_OR_RETURN(options.continuing_subword_prefix,
                            field["continuing_subword_prefix"].StringOr("##"));
  LANEWISE_ASSIGN_OR_RETURN(
      const int64_t longest,
      field["max_input_chars_per_word"].IntOr(0, INT32_MAX, 100));
  options.max_input_chars_per_word = static_cast<size_t>(longest);
  return WordPiece::Create(std::move(vocabulary), options, field.path());
}

// Older files do not name the model's type.
std::string GuessModelType(const JsonField& field) {
  if (field["merges"].present()) return "BPE";
  if (field["max_input_chars_per_word"].present()) return "WordPiece";
  const json* vocab = field["vocab"].value();
  if (vocab != nullptr && vocab->is_array()) return "Unigram";
  return "WordLevel";
}

// ["[SEP]", 3] → 3.
absl::StatusOr<int32_t> ReadTokenAndId(const JsonField& field) {
  LANEWISE_ASSIGN_OR_RETURN(const size_t size, field.ArraySize());
  if (size != 2) return field.Error("a token and its id");
  LANEWISE_ASSIGN_OR_RETURN(const int64_t id, field[1].Int(0, kMaxTokenId));
  return static_cast<int32_t>(id);
}

// Tokens that a template may put around a text. A part names a list of ids, so
// without a bound a small file could ask for very many.
constexpr size_t kMaxTemplateTokens = size_t{1} << 16;

absl::StatusOr<Template> ReadTemplate(const JsonField& field,
                                      const JsonField& tokens) {
  LANEWISE_ASSIGN_OR_RETURN(const size_t size, field.ArraySize());
  Template parts;
  size_t total = 0;
  for (size_t i = 0; i < size; ++i) {
    const bool is_text = field[i]["Sequence"].present();
    const JsonField part =
        is_text ? field[i]["Sequence"] : field[i]["SpecialToken"];
    LANEWISE_ASSIGN_OR_RETURN(const std::string id, part["id"].String());
    LANEWISE_ASSIGN_OR_RETURN(const int64_t type_id,
                              part["type_id"].IntOr(0, INT32_MAX, 0));
    TemplatePart out = {Kind::kTokens, static_cast<int32_t>(type_id)};
    if (is_text) {
      if (id != "A" && id != "B") return part["id"].Error("A or B");
      out.kind = id == "A" ? Kind::kFirst : Kind::kSecond;
    } else {
      const JsonField ids = tokens[id]["ids"];
      LANEWISE_ASSIGN_OR_RETURN(const size_t count, ids.ArraySize());
      if (count > kMaxTemplateTokens - total) {
        return field.Error(absl::StrCat("a template of at most ",
                                        kMaxTemplateTokens, " tokens"));
      }
      total += count;
      for (size_t j = 0; j < count; ++j) {
        LANEWISE_ASSIGN_OR_RETURN(const int64_t token,
                                  ids[j].Int(0, kMaxTokenId));
        out.ids.push_back(static_cast<int32_t>(token));
      }
    }
    parts.push_back(std::move(out));
  }
  return parts;
}

// ByteLevel moves only offsets, which nothing here keeps.
bool IsNoOp(const JsonField& field) {
  return !field.present() || (field["type"].value() != nullptr &&
                              *field["type"].value() == "ByteLevel");
}

}  // namespace

absl::StatusOr<PostProcessor> ReadPostProcessor(const JsonField& field) {
  if (IsNoOp(field)) return PostProcessor();
  LANEWISE_ASSIGN_OR_RETURN(const std::string type, field["type"].String());
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    LANEWISE_ASSIGN_OR_RETURN(const int32_t sep, ReadTokenAndId(field["sep"]));
    LANEWISE_ASSIGN_OR_RETURN(const int32_t cls, ReadTokenAndId(field["cls"]));
    return type == "BertProcessing" ? BertPostProcessor(cls, sep)
                                    : RobertaPostProcessor(cls, sep);
  }
  if (type == "TemplateProcessing") {
    PostProcessor post;
    LANEWISE_ASSIGN_OR_RETURN(
        post.single, ReadTemplate(field["single"], field["special_tokens"]));
    LANEWISE_ASSIGN_OR_RETURN(
        post.pair, ReadTemplate(field["pair"], field["special_tokens"]));
    return post;
  }
  if (type == "Sequence") {
    const JsonField list = field["processors"];
    LANEWISE_ASSIGN_OR_RETURN(const size_t size, list.ArraySize());
    std::optional<PostProcessor> post;
    for (size_t i = 0; i < size; ++i) {
      if (IsNoOp(list[i])) continue;
      LANEWISE_ASSIGN_OR_RETURN(const std::string inner,
                                list[i]["type"].String());
      if (inner == "Sequence") return UnknownStage(list[i], inner);
      if (post.has_value()) {
        return list.Error("at most one stage that adds tokens");
      }
      LANEWISE_ASSIGN_OR_RETURN(post, ReadPostProcessor(list[i]));
    }
    return post.value_or(PostProcessor());
  }
  return UnknownStage(field, type);
}

absl::StatusOr<std::unique_ptr<TokenModel>> ReadTokenModel(
    const JsonField& field) {
  LANEWISE_RETURN_IF_ERROR(field.CheckObject());
  LANEWISE_ASSIGN_OR_RETURN(const std::string type,
                            field["type"].StringOr(GuessModelType(field)));
  if (type == "BPE") return ReadBpe(field);
  if (type == "Unigram") return ReadUnigram(field);
  if (type == "WordPiece") return ReadWordPiece(field);
  if (type == "WordLevel") {
    LANEWISE_ASSIGN_OR_RETURN(Vocabulary vocabulary,
                              ReadVocabulary(field["vocab"]));
    LANEWISE_ASSIGN_OR_RETURN(const std::string unk,
                              field["unk_token"].StringOr("<unk>"));
    return WordLevel::Create(std::move(vocabulary), unk);
  }
  return UnknownStage(field, type);
}

}  // namespace lanewise
