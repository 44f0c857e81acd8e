#include "model/tokenizer/decoder.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "model/tokenizer/byte_level.h"
#include "model/tokenizer/unicode.h"

namespace lanewise {
namespace {

using Tokens = std::vector<std::string>;

// One replacement after the other, as the reference does.
std::string Cleanup(std::string text) {
  static constexpr std::pair<absl::string_view, absl::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& rule : kRules) {
    if (absl::StrContains(text, rule.first)) {
      text = absl::StrReplaceAll(text, {rule});
    }
  }
  return text;
}

class ByteLevelDecoder : public Decoder {
 public:
  void Apply(Tokens* tokens) const override {
    std::string bytes;
    for (const std::string& token : *tokens) {
      AppendByteLevelDecoded(token, &bytes);
    }
    *tokens = {ReplaceInvalidUtf8(bytes)};
  }
};

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  void Apply(Tokens* tokens) const override {
    for (size_t i = 0; i < tokens->size(); ++i) {
      std::string& token = (*tokens)[i];
      if (i > 0) {
        if (absl::StartsWith(token, prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(0, 1, ' ');
        }
      }
      if (cleanup_) token = Cleanup(std::move(token));
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class MetaspaceDecoder : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, PrependScheme scheme)
      : replacement_(std::move(replacement)), scheme_(scheme) {}

  void Apply(Tokens* tokens) const override {
    for (size_t i = 0; i < tokens->size(); ++i) {
      const bool drop = i == 0 && scheme_ != PrependScheme::kNever;
      (*tokens)[i] =
          absl::StrReplaceAll((*tokens)[i], {{replacement_, drop ? "" : " "}});
    }
  }

 private:
  std::string replacement_;
  PrependScheme scheme_;
};

class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}

  void Apply(Tokens* tokens) const override {
    if (suffix_.empty()) return;
    for (size_t i = 0; i < tokens->size(); ++i) {
      const bool last = i + 1 == tokens->size();
      (*tokens)[i] =
          absl::StrReplaceAll((*tokens)[i], {{suffix_, last ? "" : " "}});
    }
  }

 private:
  std::string suffix_;
};

class CtcDecoder : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)),
        delimiter_(std::move(delimiter)),
        cleanup_(cleanup) {}

  void Apply(Tokens* tokens) const override {
    Tokens out;
    for (size_t i = 0; i < tokens->size(); ++i) {
      if (i > 0 && (*tokens)[i] == (*tokens)[i - 1]) continue;
      std::string token = (*tokens)[i];
      if (!pad_.empty()) token = absl::StrReplaceAll(token, {{pad_, ""}});
      if (cleanup_) {
        token = Cleanup(std::move(token));
        if (!delimiter_.empty()) {
          token = absl::StrReplaceAll(token, {{delimiter_, " "}});
        }
      }
      if (!token.empty()) out.push_back(std::move(token));
    }
    *tokens = std::move(out);
  }

 private:
  std::string pad_;
  std::string delimiter_;
  bool cleanup_;
};

constexpr size_t kMaxDecodedBytes = size_t{1} << 20;  // of one token

class ReplaceDecoder : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Apply(Tokens* tokens) const override {
    for (std::string& token : *tokens) {
      std::string out;
      size_t end = 0;
      const absl::Status status =
          ForEachMatch(pattern_, token, [&](size_t begin, size_t match_end) {
            if (out.size() > kMaxDecodedBytes) return;
            out.append(token, end, begin - end);
            out.append(content_);
            end = match_end;
          });
      // A token on which the pattern reaches its limit stays as it is, and so
      // does one that would grow without end.
      if (!status.ok() || out.size() > kMaxDecodedBytes) continue;
      out.append(token, end, std::string::npos);
      token = std::move(out);
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class ByteFallbackDecoder : public Decoder {
 public:
  void Apply(Tokens* tokens) const override {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (ValidUtf8Prefix(bytes) == bytes.size()) {
        out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      }
      bytes.clear();
    };
    for (std::string& token : *tokens) {
      const int byte = ByteOf(token);
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
      } else {
        flush();
        out.push_back(std::move(token));
      }
    }
    flush();
    *tokens = std::move(out);
  }

 private:
  // Of "<0x0A>", or -1.
  static int ByteOf(absl::string_view token) {
    if (token.size() != 6 || !absl::ConsumePrefix(&token, "<0x") ||
        !absl::ConsumeSuffix(&token, ">")) {
      return -1;
    }
    int byte = 0;
    for (const char c : token) {
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                               : -1;
      if (digit < 0) return -1;
      byte = byte * 16 + digit;
    }
    return byte;
  }
};

class FuseDecoder : public Decoder {
 public:
  void Apply(Tokens* tokens) const override {
    std::string text;
    for (const std::string& token : *tokens) text += token;
    *tokens = {std::move(text)};
  }
};

class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string content, size_t start, size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}

  void Apply(Tokens* tokens) const override {
    if (content_.empty()) return;
    for (std::string& token : *tokens) {
      absl::string_view text = token;
      for (size_t i = 0; i < start_ && absl::ConsumePrefix(&text, content_);
           ++i) {
      }
      for (size_t i = 0; i < stop_ && absl::ConsumeSuffix(&text, content_);
           ++i) {
      }
      token = std::string(text);
    }
  }

 private:
  std::string content_;
  size_t start_;
  size_t stop_;
};

class DecoderSequence : public Decoder {
 public:
  explicit DecoderSequence(std::vector<DecoderPtr> stages)
      : stages_(std::move(stages)) {}

  void Apply(Tokens* tokens) const override {
    for (const DecoderPtr& stage : stages_) stage->Apply(tokens);
  }

 private:
  std::vector<DecoderPtr> stages_;
};

}  // namespace

DecoderPtr MakeByteLevelDecoder() {
  return std::make_unique<ByteLevelDecoder>();
}

DecoderPtr MakeWordPieceDecoder(std::string prefix, bool cleanup) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
}

DecoderPtr MakeMetaspaceDecoder(std::string replacement, PrependScheme scheme) {
  return std::make_unique<MetaspaceDecoder>(std::move(replacement), scheme);
}

DecoderPtr MakeBpeDecoder(std::string suffix) {
  return std::make_unique<BpeDecoder>(std::move(suffix));
}

DecoderPtr MakeCtcDecoder(std::string pad, std::string delimiter,
                          bool cleanup) {
  return std::make_unique<CtcDecoder>(std::move(pad), std::move(delimiter),
                                      cleanup);
}

DecoderPtr MakeReplaceDecoder(Pattern pattern, std::string content) {
  return std::make_unique<ReplaceDecoder>(std::move(pattern),
                                          std::move(content));
}

DecoderPtr MakeByteFallbackDecoder() {
  return std::make_unique<ByteFallbackDecoder>();
}

DecoderPtr MakeFuseDecoder() { return std::make_unique<FuseDecoder>(); }

DecoderPtr MakeStripDecoder(std::string content, size_t start, size_t stop) {
  return std::make_unique<StripDecoder>(std::move(content), start, stop);
}

DecoderPtr MakeDecoderSequence(std::vector<DecoderPtr> stages) {
  return std::make_unique<DecoderSequence>(std::move(stages));
}

}  // namespace lanewise
