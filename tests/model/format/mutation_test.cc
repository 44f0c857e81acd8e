// Every byte and every eight-byte field of small files, changed and cut: the
// readers give a status or a model whose every byte can be read. Deterministic;
// worth most under the address and undefined-behaviour sanitizers.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "model/format/gguf.h"
#include "model/format/json.h"
#include "model/format/safetensors.h"
#include "tests/model/format/file_builder.h"

namespace lanewise {
namespace {

// Counts what was tried, so that a test shows that it did something.
struct Tally {
  int refused = 0, accepted = 0;
};

template <class Open>
void Try(const std::string& bytes, Tally* tally, const Open& open) {
  const auto file = open(bytes);
  if (!file.ok()) {
    ++tally->refused;
    EXPECT_EQ(file.status().message().find("m.file: "), 0u) << file.status();
    EXPECT_LT(file.status().message().size(), 2000u);
    return;
  }
  ++tally->accepted;
  for (const Tensor& tensor : file->store().tensors()) {
    EXPECT_EQ(tensor.data.size(), BytesOf(tensor.type, tensor.elements()));
    uint64_t sum = 0;
    for (uint8_t byte : tensor.data) sum += byte;
    EXPECT_LE(sum, tensor.data.size() * 255);
  }
}

// All mutations of the first `header` bytes.
template <class Open>
Tally Mutate(const std::string& good, size_t header, const Open& open) {
  Tally tally;
  for (size_t at = 0; at < header; ++at) {
    for (int value = 0; value < 256; value += at % 3 == 0 ? 1 : 5) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      Try(bytes, &tally, open);
    }
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      Try(bytes, &tally, open);
    }
    for (uint64_t value :
         {uint64_t{0}, ~uint64_t{0}, ~uint64_t{0} - 7, ~uint64_t{0} - 31,
          uint64_t{1} << 63, (uint64_t{1} << 63) - 1, uint64_t{1} << 32,
          (uint64_t{1} << 31) + 1, uint64_t{good.size()}, uint64_t{1} << 61}) {
      if (at + 8 > header) break;
      std::string bytes = good;
      bytes.replace(at, 8, Little(value));
      Try(bytes, &tally, open);
    }
    std::string inserted = good;
    inserted.insert(at, 1, good[at]);
    Try(inserted, &tally, open);
    std::string removed = good;
    removed.erase(at, 1);
    Try(removed, &tally, open);
    Try(good.substr(0, at), &tally, open);
  }
  return tally;
}

TEST(Mutation, Gguf) {
  const GgufBuilder builder = SmallGguf();
  const Tally tally = Mutate(builder.Build(), builder.Header().size(),
                             [](const std::string& bytes) {
                               return Gguf::FromBytes("m.file", Bytes(bytes));
                             });
  EXPECT_GT(tally.refused, 10000);
  EXPECT_GT(tally.accepted, 1000);  // names, values
}

TEST(Mutation, Safetensors) {
  const std::string header =
      R"({"__metadata__":{"a":"b"},)"
      R"("x":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("y":{"dtype":"U8","shape":[0],"data_offsets":[24,24]}})";
  const std::string good = Safetensors(header, std::string(24, 'd'));
  const Tally tally =
      Mutate(good, good.size() - 24, [](const std::string& bytes) {
        return SafetensorsFile::FromBytes("m.file", Bytes(bytes));
      });
  EXPECT_GT(tally.refused, 5000);
  EXPECT_GT(tally.accepted, 500);
}

}  // namespace
}  // namespace lanewise
