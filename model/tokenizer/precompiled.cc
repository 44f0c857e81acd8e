#include "model/tokenizer/precompiled.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lanewise {
namespace {

// The unit of a double-array trie (Darts-clone's layout).
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t LeafValue(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

class PrecompiledNormalizer : public Normalizer {
 public:
  PrecompiledNormalizer(std::vector<uint32_t> units, std::string strings)
      : units_(std::move(units)), strings_(std::move(strings)) {}

  absl::Status Apply(AlignedText* text) const override {
    AlignedWriter writer(text);
    writer.StayAtBeginning();
    const absl::string_view old = writer.old();
    for (size_t pos = 0; pos < old.size();) {
      const size_t end = GraphemeEnd(old, pos);
      // The reference maps short clusters as a whole, by the shortest key that
      // begins them, and longer ones character by character.
      if (end - pos < kShortCluster && Map(old, pos, end, &writer)) {
        pos = end;
        continue;
      }
      while (pos < end) {
        size_t next = pos;
        NextCodePoint(old, &next);
        if (!Map(old, pos, next, &writer)) writer.Copy(pos, next);
        pos = next;
      }
    }
    return writer.status();
  }

 private:
  static constexpr size_t kShortCluster = 6;  // bytes

  bool Map(absl::string_view old, size_t begin, size_t end,
           AlignedWriter* writer) const {
    const std::optional<absl::string_view> mapped =
        Lookup(old.substr(begin, end - begin));
    if (mapped.has_value()) writer->Insert(*mapped, begin, begin);
    return mapped.has_value();
  }

  std::optional<absl::string_view> Lookup(absl::string_view key) const {
    size_t node = Offset(units_[0]);
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) break;
      node ^= byte;
      if (node >= units_.size() || Label(units_[node]) != byte) break;
      const uint32_t unit = units_[node];
      node ^= Offset(unit);
      if (!HasLeaf(unit)) continue;
      if (node >= units_.size()) break;
      const uint32_t at = LeafValue(units_[node]);
      if (at > strings_.size()) break;
      // Not inside a character.
      if (at < strings_.size() && (strings_[at] & 0xC0) == 0x80) break;
      const absl::string_view rest = absl::string_view(strings_).substr(at);
      return rest.substr(0, rest.find('\0'));
    }
    return std::nullopt;
  }

  std::vector<uint32_t> units_;  // not empty
  std::string strings_;
};

}  // namespace

absl::StatusOr<NormalizerPtr> MakePrecompiledNormalizer(
    absl::string_view bytes, absl::string_view where) {
  if (bytes.empty()) return NormalizerPtr();
  if (bytes.size() < 4) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": expected at least 4 bytes, found ", bytes.size()));
  }
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 4; i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    }
    return value;
  };
  const size_t trie = word(0);
  if (trie > bytes.size() - 4 || trie % 4 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected a trie of whole units within ",
                     bytes.size() - 4, " bytes, found ", trie));
  }
  if (trie == 0) return NormalizerPtr();
  std::vector<uint32_t> units(trie / 4);
  for (size_t i = 0; i < units.size(); ++i) units[i] = word(4 + 4 * i);
  std::string strings(bytes.substr(4 + trie));
  if (ValidUtf8Prefix(strings) != strings.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": expected UTF-8 strings behind the trie"));
  }
  return std::make_unique<PrecompiledNormalizer>(std::move(units),
                                                 std::move(strings));
}

}  // namespace lanewise
