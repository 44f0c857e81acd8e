#include "model/tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "model/tokenizer/unicode.h"

namespace lanewise {
namespace {

constexpr bool IsPrintable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         byte >= 0xAE;
}

constexpr int kCharacters = 0x144;

struct Tables {
  std::array<uint16_t, 256> character = {};
  std::array<int16_t, kCharacters> byte = {};  // -1: none
};

constexpr Tables MakeTables() {
  Tables tables;
  for (int c = 0; c < kCharacters; ++c) tables.byte[c] = -1;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned c = IsPrintable(byte) ? byte : next++;
    tables.character[byte] = static_cast<uint16_t>(c);
    tables.byte[c] = static_cast<int16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

void AppendByteLevel(absl::string_view bytes, std::string* out) {
  for (const char byte : bytes) {
    AppendUtf8(kTables.character[static_cast<unsigned char>(byte)], out);
  }
}

void AppendByteLevelDecoded(absl::string_view token, std::string* out) {
  const size_t before = out->size();
  for (size_t pos = 0; pos < token.size();) {
    const char32_t c = NextCodePoint(token, &pos);
    const int byte = c < kCharacters ? kTables.byte[c] : -1;
    if (byte < 0) {
      out->resize(before);
      out->append(token.data(), token.size());
      return;
    }
    out->push_back(static_cast<char>(byte));
  }
}

}  // namespace lanewise
