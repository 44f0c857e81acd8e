// SHA-256 (FIPS 180-4, sections 5 and 6.2), streaming. It names results (the
// hash of all logits of a run) and checks downloaded files.
//
//   Sha256 hash;
//   hash.Update("ab");
//   hash.Update("c");
//   std::string hex = hash.HexDigest();  // ba7816bf…
#ifndef LANEWISE_RUNTIME_SHA256_H_
#define LANEWISE_RUNTIME_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lanewise {

class Sha256 {
 public:
  static constexpr size_t kDigestBytes = 32;
  using Digest = std::array<uint8_t, kDigestBytes>;

  void Update(absl::Span<const uint8_t> bytes);
  void Update(absl::string_view bytes);

  // The IEEE bits of the values, little-endian on every machine.
  void UpdateFloats(absl::Span<const float> values);

  // Of everything so far; updates may go on afterwards.
  Digest Finish() const;
  std::string HexDigest() const;  // 64 lower-case digits

 private:
  static constexpr size_t kBlockBytes = 64;

  void AddBlock(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, kBlockBytes> pending_;
  uint64_t bytes_ = 0;  // pending_ holds bytes_ % kBlockBytes of them
};

}  // namespace lanewise

#endif  // LANEWISE_RUNTIME_SHA256_H_
