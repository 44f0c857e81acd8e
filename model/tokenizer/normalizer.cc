#include "model/tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "model/tokenizer/byte_level.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

// A normalizer that looks at one character at a time: `map(c, out)` appends
// what becomes of it.
template <typename Map>
void MapCharacters(AlignedText* text, Map map) {
  AlignedWriter writer(text);
  const absl::string_view old = writer.old();
  for (size_t pos = 0; pos < old.size();) {
    const size_t begin = pos;
    map(NextCodePoint(old, &pos), writer.text());
    writer.Align(begin);
  }
}

template <typename Map>
class CharacterNormalizer : public Normalizer {
 public:
  explicit CharacterNormalizer(Map map) : map_(map) {}
  absl::Status Apply(AlignedText* text) const override {
    MapCharacters(text, map_);
    return absl::OkStatus();
  }

 private:
  Map map_;
};

template <typename Map>
NormalizerPtr MakeCharacterNormalizer(Map map) {
  return std::make_unique<CharacterNormalizer<Map>>(map);
}

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(NormalForm form) : form_(form) {}

  absl::Status Apply(AlignedText* text) const override {
    AlignedWriter writer(text);
    const absl::string_view old = writer.old();
    // In chunks of ASCII and of other text, for the origins' sake: an ASCII
    // character goes with the non-ASCII text that follows.
    const auto ascii = [&](size_t i) {
      return static_cast<unsigned char>(old[i]) < 0x80;
    };
    for (size_t pos = 0; pos < old.size();) {
      size_t end = pos;
      while (end < old.size() && ascii(end)) ++end;
      const size_t chunk = end == old.size() || end == pos ? end : end - 1;
      writer.Copy(pos, chunk);
      while (end < old.size() && !ascii(end)) ++end;
      if (chunk < end) AppendChunk(chunk, end, &writer);
      pos = end;
    }
    return absl::OkStatus();
  }

 private:
  void AppendChunk(size_t begin, size_t end, AlignedWriter* writer) const {
    const absl::string_view chunk = writer->old().substr(begin, end - begin);
    std::string whole;
    AppendNormalForm(form_, chunk, &whole);
    if (writer->keeps_origin() && AppendCharacters(begin, end, whole, writer)) {
      return;
    }
    writer->text()->append(whole);
    writer->Align(begin);
  }

  // Each character with its marks by itself, so that each has its own origin;
  // false where characters of the chunk compose, and so not all is `whole`.
  bool AppendCharacters(size_t begin, size_t end, absl::string_view whole,
                        AlignedWriter* writer) const {
    struct Part {
      size_t begin, end;  // of the old text
      std::string text;
    };
    std::vector<Part> parts;
    std::string all;
    for (size_t pos = begin; pos < end; pos = parts.back().end) {
      const size_t next = CombiningEnd(writer->old().substr(0, end), pos);
      parts.push_back({pos, next, ""});
      AppendNormalForm(form_, writer->old().substr(pos, next - pos),
                       &parts.back().text);
      all += parts.back().text;
    }
    if (all != whole) return false;
    for (const Part& part : parts) {
      if (part.text ==
          writer->old().substr(part.begin, part.end - part.begin)) {
        writer->Copy(part.begin, part.end);
      } else {
        writer->text()->append(part.text);
        writer->Align(part.begin);
      }
    }
    return true;
  }

  NormalForm form_;
};

bool IsChinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options)
      : options_(options), nfd_(NormalForm::kNfd) {}

  absl::Status Apply(AlignedText* text) const override {
    if (options_.clean_text) {
      MapCharacters(text, [](char32_t c, std::string* out) {
        const bool kept_control = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xFFFD || (IsOther(c) && !kept_control)) return;
        if (IsWhitespace(c)) {
          out->push_back(' ');
        } else {
          AppendUtf8(c, out);
        }
      });
    }
    if (options_.handle_chinese_chars) {
      MapCharacters(text, [](char32_t c, std::string* out) {
        const bool chinese = IsChinese(c);
        if (chinese) out->push_back(' ');
        AppendUtf8(c, out);
        if (chinese) out->push_back(' ');
      });
    }
    if (options_.strip_accents.value_or(options_.lowercase)) {
      LANEWISE_RETURN_IF_ERROR(nfd_.Apply(text));
      MapCharacters(text, [](char32_t c, std::string* out) {
        if (!IsNonspacingMark(c)) AppendUtf8(c, out);
      });
    }
    if (options_.lowercase) MapCharacters(text, AppendLowercase);
    return absl::OkStatus();
  }

 private:
  BertNormalizerOptions options_;
  UnicodeNormalizer nfd_;
};

class StripNormalizer : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}

  absl::Status Apply(AlignedText* text) const override {
    AlignedWriter writer(text);
    const absl::string_view old = writer.old();
    size_t begin = 0, end = old.size();
    for (size_t pos = 0;
         left_ && pos < end && IsWhitespace(NextCodePoint(old, &pos));)
      begin = pos;
    for (size_t pos = end;
         right_ && pos > begin && IsWhitespace(PreviousCodePoint(old, &pos));)
      end = pos;
    writer.Copy(begin, end);
    return absl::OkStatus();
  }

 private:
  bool left_;
  bool right_;
};

class ReplaceNormalizer : public Normalizer {
 public:
  ReplaceNormalizer(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  absl::Status Apply(AlignedText* text) const override {
    AlignedWriter writer(text);
    const absl::string_view old = writer.old();
    size_t end = 0;
    const absl::Status status =
        ForEachMatch(pattern_, old, [&](size_t match_begin, size_t match_end) {
          writer.Copy(end, match_begin);
          size_t last = match_end;
          if (match_begin < match_end) PreviousCodePoint(old, &last);
          writer.Insert(content_, match_begin, last);
          end = match_end;
        });
    writer.Copy(end, old.size());
    return status.ok() ? writer.status() : status;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class PrependNormalizer : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}

  absl::Status Apply(AlignedText* text) const override {
    if (text->text.empty()) return absl::OkStatus();
    AlignedWriter writer(text);
    writer.Insert(prefix_, 0, 0);
    writer.Copy(0, writer.old().size());
    return writer.status();
  }

 private:
  std::string prefix_;
};

class ByteLevelNormalizer : public Normalizer {
 public:
  absl::Status Apply(AlignedText* text) const override {
    AlignedWriter writer(text);
    const absl::string_view old = writer.old();
    for (size_t pos = 0; pos < old.size(); ++pos) {
      AppendByteLevel(old.substr(pos, 1), writer.text());
      writer.Align(pos);
    }
    return absl::OkStatus();
  }
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<NormalizerPtr> stages)
      : stages_(std::move(stages)) {}

  absl::Status Apply(AlignedText* text) const override {
    const size_t limit = std::max(text->text.size(), kMaxNormalizedBytes);
    for (const NormalizerPtr& stage : stages_) {
      LANEWISE_RETURN_IF_ERROR(stage->Apply(text));
      if (text->text.size() > limit) return TooLong();
    }
    return absl::OkStatus();
  }

 private:
  std::vector<NormalizerPtr> stages_;
};

void AppendNmt(char32_t c, std::string* out) {
  if ((c >= 0x1 && c <= 0x8) || c == 0xB || (c >= 0xE && c <= 0x1F) ||
      c == 0x7F || c == 0x8F || c == 0x9F) {
    return;
  }
  if (c == 0x9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
      (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 ||
      c == 0x2581 || c == 0xFEFF || c == 0xFFFD) {
    out->push_back(' ');
    return;
  }
  AppendUtf8(c, out);
}

}  // namespace

NormalizerPtr MakeBertNormalizer(const BertNormalizerOptions& options) {
  return std::make_unique<BertNormalizer>(options);
}

NormalizerPtr MakeUnicodeNormalizer(NormalForm form) {
  return std::make_unique<UnicodeNormalizer>(form);
}

NormalizerPtr MakeLowercaseNormalizer() {
  return MakeCharacterNormalizer(&AppendLowercase);
}

NormalizerPtr MakeStripNormalizer(bool left, bool right) {
  return std::make_unique<StripNormalizer>(left, right);
}

NormalizerPtr MakeStripAccentsNormalizer() {
  return MakeCharacterNormalizer([](char32_t c, std::string* out) {
    if (!IsMark(c)) AppendUtf8(c, out);
  });
}

NormalizerPtr MakeReplaceNormalizer(Pattern pattern, std::string content) {
  return std::make_unique<ReplaceNormalizer>(std::move(pattern),
                                             std::move(content));
}

NormalizerPtr MakePrependNormalizer(std::string prefix) {
  return std::make_unique<PrependNormalizer>(std::move(prefix));
}

NormalizerPtr MakeNmtNormalizer() {
  return MakeCharacterNormalizer(&AppendNmt);
}

NormalizerPtr MakeByteLevelNormalizer() {
  return std::make_unique<ByteLevelNormalizer>();
}

NormalizerPtr MakeNormalizerSequence(std::vector<NormalizerPtr> stages) {
  return std::make_unique<NormalizerSequence>(std::move(stages));
}

}  // namespace lanewise
