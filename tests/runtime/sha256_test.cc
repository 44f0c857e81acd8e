#include "runtime/sha256.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

std::string HashOf(absl::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return hash.HexDigest();
}

// Messages and digests that NIST publishes with FIPS 180-4 ("Examples with
// Intermediate Values") and in its long-message tests.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(HashOf(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HashOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HashOf("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(HashOf(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, AnySplitGivesTheSameDigest) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  const std::string whole = HashOf(text);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.Update(text.substr(0, cut));
    const std::string prefix_digest = hash.HexDigest();
    EXPECT_EQ(prefix_digest, HashOf(text.substr(0, cut))) << cut;
    hash.Update(text.substr(cut));  // goes on after a digest was taken
    EXPECT_EQ(hash.HexDigest(), whole) << cut;
  }
  Sha256 bytewise;
  for (const char c : text) bytewise.Update(absl::string_view(&c, 1));
  EXPECT_EQ(bytewise.HexDigest(), whole);
}

TEST(Sha256, FloatsAreTheirLittleEndianBits) {
  Sha256 floats;
  floats.UpdateFloats({1.0f, -0.0f, std::numeric_limits<float>::infinity()});
  Sha256 bytes;
  bytes.Update(absl::string_view("\0\0\x80\x3f\0\0\0\x80\0\0\x80\x7f", 12));
  EXPECT_EQ(floats.HexDigest(), bytes.HexDigest());
  // More than one internal chunk, in two calls.
  std::vector<float> many(1000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = 0.25f * i;
  Sha256 whole, parts;
  whole.UpdateFloats(many);
  parts.UpdateFloats(absl::MakeConstSpan(many).first(313));
  parts.UpdateFloats(absl::MakeConstSpan(many).subspan(313));
  EXPECT_EQ(whole.HexDigest(), parts.HexDigest());
  many[999] = -many[999];
  Sha256 changed;
  changed.UpdateFloats(many);
  EXPECT_NE(whole.HexDigest(), changed.HexDigest());
}

}  // namespace
}  // namespace lanewise
