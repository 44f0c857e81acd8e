#include "runtime/text_stream.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/runtime/test_random.h"

namespace lanewise {
namespace {

#define FFFD "\xEF\xBF\xBD"

using Ids = std::vector<int32_t>;

std::string Cleaned(const std::string& bytes) {
  Utf8Stream stream;
  std::string out = stream.Append(bytes);
  return out + stream.Finish();
}

// As a byte-level vocabulary decodes: the bytes of all ids, then cleaned. Ids
// below 256 are bytes, others words; 999 is a special token without text.
std::string Word(int32_t id) {
  static const std::vector<std::string> words = {
      " hello", "é",  "你好", " 你\xE5", "\xA5\xBD!", "STOP",
      "ST",     "OP", "OP x", FFFD,      "\n",        "😀"};
  if (id < 256) return std::string(1, static_cast<char>(id));
  const size_t index = static_cast<size_t>(id) - 256;
  return index < words.size() ? words[index] : "";
}

std::string ByteLevel(absl::Span<const int32_t> ids) {
  std::string bytes;
  for (const int32_t id : ids) bytes += Word(id);
  return Cleaned(bytes);
}

// As SentencePiece does: "▁" is a space, and the first one is dropped.
std::string SentencePiece(absl::Span<const int32_t> ids) {
  static const std::vector<std::string> pieces = {
      "▁Hello", "▁", "▁world", "ing", ".", "▁你", "▁▁"};
  std::string text;
  for (const int32_t id : ids) {
    if (static_cast<size_t>(id) < pieces.size()) text += pieces[id];
  }
  text = absl::StrReplaceAll(text, {{"▁", " "}});
  return text.empty() || text[0] != ' ' ? text : text.substr(1);
}

// As WordPiece does: pieces that begin with ## are joined, others get a space
// before them, and clean-up takes it away again before punctuation.
std::string WordPiece(absl::Span<const int32_t> ids) {
  static const std::vector<std::string> pieces = {
      "un", "##believ", "##able", "it", "does", "n't", ".", ",", "word"};
  std::string text;
  for (const int32_t id : ids) {
    if (static_cast<size_t>(id) >= pieces.size()) continue;
    const std::string& piece = pieces[id];
    const bool first = text.empty();
    if (piece.substr(0, 2) == "##") {
      text += first ? piece : piece.substr(2);
    } else {
      text += (first ? "" : " ") + piece;
    }
  }
  return absl::StrReplaceAll(text, {{" .", "."}, {" ,", ","}, {" n't", "n't"}});
}

std::string Streamed(const DecodeFunction& decode, const Ids& ids) {
  IncrementalDecoder decoder(decode);
  std::string out;
  for (const int32_t id : ids) {
    const std::string piece = decoder.Push(id);
    EXPECT_TRUE(IsValidUtf8(piece));
    out += piece;
  }
  return out + decoder.Finish();
}

TEST(IncrementalDecoder, KeepsTheSpacesThatDecodingAloneWouldDrop) {
  IncrementalDecoder decoder(SentencePiece);
  EXPECT_EQ(decoder.Push(0), "Hello");
  EXPECT_EQ(decoder.Push(2), " world");
  EXPECT_EQ(decoder.Push(3), "ing");
  EXPECT_EQ(decoder.Push(99), "");  // a special token
  EXPECT_EQ(decoder.Push(2), " world");
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(IncrementalDecoder, JoinsWordPieces) {
  IncrementalDecoder decoder(WordPiece);
  EXPECT_EQ(decoder.Push(0), "un");
  EXPECT_EQ(decoder.Push(1), "believ");
  EXPECT_EQ(decoder.Push(2), "able");
  EXPECT_EQ(decoder.Push(6), ".");
  EXPECT_EQ(decoder.Push(3), " it");
  EXPECT_EQ(decoder.Push(4), " does");
  EXPECT_EQ(decoder.Push(5), "n't");
}

TEST(IncrementalDecoder, S16HoldsIncompleteCharacters) {
  IncrementalDecoder decoder(ByteLevel);
  EXPECT_EQ(decoder.Push('a'), "a");
  EXPECT_EQ(decoder.Push(0xD7), "");
  EXPECT_EQ(decoder.waiting(), 1u);
  EXPECT_EQ(decoder.Push(256), FFFD " hello");  // a space: it was none
  EXPECT_EQ(decoder.waiting(), 0u);
  EXPECT_EQ(decoder.Push(0xF0), "");
  EXPECT_EQ(decoder.Push(0x9F), "");
  EXPECT_EQ(decoder.Push(0x98), "");
  EXPECT_EQ(decoder.Push(0x80), "😀");
  EXPECT_EQ(decoder.Push(259), "");  // " 你" and one byte of the next
  EXPECT_EQ(decoder.Push(260), " 你好!");
  EXPECT_EQ(decoder.Push(0xE4), "");
  EXPECT_EQ(decoder.Finish(), FFFD);
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(IncrementalDecoder, StreamEqualsWholeOnRandomIds) {
  TestBits random(2);
  for (int round = 0; round < 3000; ++round) {
    Ids bytes(random.Below(60)), pieces(random.Below(40)),
        words(random.Below(40));
    // Mostly bytes that begin or continue characters, to meet every state.
    static const std::vector<int32_t> alphabet = {
        'a',  ' ',  0xC3, 0xA9, 0xE4, 0xBD, 0xA0, 0xF0, 0x9F, 0x98,
        0x80, 0xFF, 256,  257,  258,  259,  260,  265,  267,  999};
    const size_t letters = 2 + random.Below(alphabet.size() - 1);
    const size_t shift = random.Below(alphabet.size());
    for (int32_t& id : bytes) {
      id = alphabet[(shift + random.Below(letters)) % alphabet.size()];
    }
    for (int32_t& id : pieces) id = static_cast<int32_t>(random.Below(9));
    for (int32_t& id : words) id = static_cast<int32_t>(random.Below(11));
    ASSERT_EQ(Streamed(ByteLevel, bytes), ByteLevel(bytes))
        << testing::PrintToString(bytes);
    ASSERT_EQ(Streamed(SentencePiece, pieces), SentencePiece(pieces))
        << testing::PrintToString(pieces);
    ASSERT_EQ(Streamed(WordPiece, words), WordPiece(words))
        << testing::PrintToString(words);
  }
}

// A character after a long run of bytes that are none.
TEST(IncrementalDecoder, S17EndlessInvalidBytesKeepTheWindowSmall) {
  size_t longest = 0, decoded = 0;
  IncrementalDecoder decoder([&](absl::Span<const int32_t> ids) {
    longest = std::max(longest, ids.size());
    decoded += ids.size();
    return ByteLevel(ids);
  });
  Ids ids(5000, 0xFF);
  for (const int32_t id : {0xE4, 0xBD, 0xA0}) ids.push_back(id);
  for (int i = 0; i < 5000; ++i) ids.push_back(999);
  std::string text;
  for (const int32_t id : ids) text += decoder.Push(id);
  EXPECT_EQ(text, ByteLevel(ids));
  EXPECT_LE(longest, 2 * IncrementalDecoder::kMaxWaiting + 1);
  EXPECT_LE(decoded, ids.size() * 40 * 4);
}

// Clean-up that changes what was given out: the stream goes on with the new
// ids' own text.
TEST(IncrementalDecoder, RewrittenTextIsNotRepeated) {
  const DecodeFunction decode = [](absl::Span<const int32_t> ids) {
    std::string text;
    for (const int32_t id : ids) text += static_cast<char>(id);
    return absl::StrReplaceAll(text, {{" ' ", "'"}});
  };
  EXPECT_EQ(Streamed(decode, {'x', ' ', '\'', ' ', 'y'}), "x ' y");
}

struct Shown {
  std::string text;
  size_t ids;
  bool stopped;
};

Shown StreamAll(const StopStrings& stops, const Ids& ids) {
  TextStream stream(ByteLevel, &stops);
  Shown shown;
  for (const int32_t id : ids) {
    const std::string piece = stream.Push(id);
    EXPECT_TRUE(IsValidUtf8(piece));
    shown.text += piece;
    if (stream.stopped()) break;
  }
  shown.text += stream.Finish();
  shown.ids = stream.ids_shown();
  shown.stopped = stream.stopped();
  return shown;
}

TEST(TextStream, S14StopCutsTextAndIdsAlike) {
  const StopStrings stops = StopStrings::Create({"STOP"}).value();
  // The stop string within one id, over two, and with more text behind.
  for (const Ids& tail : {Ids{261}, Ids{262, 263}, Ids{262, 264},
                          Ids{'S', 'T', 'O', 'P'}, Ids{262, 'O', 'P', 'x'}}) {
    Ids ids = {256, 999, 257};
    ids.insert(ids.end(), tail.begin(), tail.end());
    const Shown shown = StreamAll(stops, ids);
    EXPECT_EQ(shown.text, " helloé");
    EXPECT_TRUE(shown.stopped);
    EXPECT_EQ(shown.ids, 3u);
    EXPECT_EQ(ByteLevel(absl::MakeConstSpan(ids).first(shown.ids)), shown.text);
  }
}

TEST(TextStream, S14IdWithTheCutInsideIsNotShown) {
  const StopStrings stops = StopStrings::Create({"lo", "é"}).value();
  Shown shown = StreamAll(stops, {'a', 256});
  EXPECT_EQ(shown.text, "a hel");
  EXPECT_EQ(shown.ids, 1u);
  // A stop string of two bytes, each an id of its own.
  shown = StreamAll(stops, {'a', 0xC3, 0xA9});
  EXPECT_EQ(shown.text, "a");
  EXPECT_EQ(shown.ids, 1u);
}

TEST(TextStream, S13EndFlushesWhatWasHeld) {
  const StopStrings stops = StopStrings::Create({"STOP", "\n\n"}).value();
  Shown shown = StreamAll(stops, {256, 266});
  EXPECT_EQ(shown.text, " hello\n");
  EXPECT_EQ(shown.ids, 2u);
  EXPECT_FALSE(shown.stopped);
  shown = StreamAll(stops, {262, 0xE4, 0xBD});
  EXPECT_EQ(shown.text, "ST" FFFD);
  EXPECT_EQ(shown.ids, 3u);
  shown = StreamAll(stops, {0xC3, 266, 0xFF});
  EXPECT_EQ(shown.text, FFFD "\n" FFFD);
  // Only the flush shows that the text ends in a stop string.
  const StopStrings replacement = StopStrings::Create({FFFD}).value();
  shown = StreamAll(replacement, {'a', 0xE4});
  EXPECT_EQ(shown.text, "a");
  EXPECT_TRUE(shown.stopped);
  EXPECT_EQ(shown.ids, 1u);
}

TEST(TextStream, StreamEqualsWholeOnRandomIds) {
  TestBits random(3);
  static const std::vector<int32_t> alphabet = {
      'S', 'T', 'O', 'P', 'a', 0xC3, 0xA9, 257, 261, 262, 263, 264, 999, 0xFF};
  const std::vector<std::string> strings = {"STOP", "TOST", "éS", "aé"};
  const StopStrings stops = StopStrings::Create(strings).value();
  int stopped = 0;
  for (int round = 0; round < 3000; ++round) {
    Ids ids(random.Below(30));
    for (int32_t& id : ids) id = alphabet[random.Below(alphabet.size())];
    const std::string whole = ByteLevel(ids);
    StopFilter filter(&stops);
    std::string expected = filter.Append(whole);
    expected += filter.Finish();
    const Shown shown = StreamAll(stops, ids);
    ASSERT_EQ(shown.text, expected) << testing::PrintToString(ids);
    ASSERT_EQ(shown.stopped, filter.stopped());
    const std::string of_ids =
        ByteLevel(absl::MakeConstSpan(ids).first(shown.ids));
    // Never more than the text, and less only by the id that holds the cut.
    ASSERT_EQ(expected.substr(0, of_ids.size()), of_ids);
    if (!shown.stopped) {
      ASSERT_EQ(shown.ids, ids.size());
    } else {
      ++stopped;
      const std::string one_more =
          ByteLevel(absl::MakeConstSpan(ids).first(shown.ids + 1));
      ASSERT_TRUE(one_more.size() > expected.size() ||
                  expected.substr(0, one_more.size()) != one_more)
          << testing::PrintToString(ids) << shown.ids;
    }
  }
  EXPECT_GT(stopped, 500);
}

}  // namespace
}  // namespace lanewise
