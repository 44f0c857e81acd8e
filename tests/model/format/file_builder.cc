#include "tests/model/format/file_builder.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>

#include "gtest/gtest.h"

namespace {

std::atomic<size_t> g_live{0};
std::atomic<size_t> g_peak{0};

void* Allocate(size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) return nullptr;
  const size_t live = g_live += malloc_usable_size(memory);
  if (live > g_peak) g_peak = live;
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  g_live -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

// Counts what is alive, for ExpectRefused.
void* operator new(size_t size) {
  void* memory = Allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t size) { return operator new(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }

namespace lanewise {

std::vector<uint8_t> Bytes(absl::string_view text) {
  return std::vector<uint8_t>(text.begin(), text.end());
}

GgufBuilder& GgufBuilder::Pair(absl::string_view key, uint32_t type,
                               const std::string& value) {
  pairs.push_back(Text(key) + Little(type) + value);
  return *this;
}

GgufBuilder& GgufBuilder::Tensor(GgufTensorInfo info) {
  tensors.push_back(std::move(info));
  return *this;
}

GgufBuilder& GgufBuilder::Data(size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) data.push_back(static_cast<char>(i));
  return *this;
}

std::string GgufBuilder::Header() const {
  std::string header = magic + Little(version) +
                       Little<uint64_t>(tensor_count.value_or(tensors.size())) +
                       Little<uint64_t>(pair_count.value_or(pairs.size()));
  for (const std::string& pair : pairs) header += pair;
  for (const GgufTensorInfo& info : tensors) {
    header += Text(info.name);
    header += Little<uint32_t>(
        info.dim_count.value_or(static_cast<uint32_t>(info.dims.size())));
    for (uint64_t dim : info.dims) header += Little(dim);
    header += Little(info.type) + Little(info.offset);
  }
  return header;
}

std::string GgufBuilder::Build() const {
  std::string file = Header();
  file.resize((file.size() + alignment - 1) / alignment * alignment);
  return file + data;
}

GgufBuilder SmallGguf() {
  GgufBuilder builder;
  builder.Pair("general.architecture", kGgufString, Text("llama"));
  builder.Uint("llama.block_count", 1);
  builder.Pair("tokens", kGgufArray,
               Little<uint32_t>(kGgufString) + Little<uint64_t>(2) +
                   Text("ab") + Text(""));
  builder.Pair("scores", kGgufArray,
               Little<uint32_t>(kGgufF32) + Little<uint64_t>(2) + Little(0.5f) +
                   Little(-1.0f));
  builder.Tensor({"a.weight", {4, 2}, kGgmlF32, 0});
  builder.Tensor({"b.weight", {32, 1}, kGgmlQ8_0, 32});
  builder.Data(32 + 34);
  return builder;
}

std::string Safetensors(absl::string_view header, absl::string_view data,
                        std::optional<uint64_t> length) {
  return Little<uint64_t>(length.value_or(header.size())) +
         std::string(header) + std::string(data);
}

TempDir::TempDir() {
  const char* base = std::getenv("TEST_TMPDIR");
  path_ = std::string(base != nullptr ? base : "/tmp") + "/format_XXXXXX";
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::Write(const std::string& name,
                           absl::string_view bytes) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

namespace {

size_t Entries(const char* folder) {
  size_t count = 0;
  DIR* dir = opendir(folder);
  if (dir == nullptr) return 0;
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

// Mappings of files, as /proc/self/maps shows them with their path.
size_t MappedFiles() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("/format_") != std::string::npos;
  }
  return count;
}

}  // namespace

void ExpectRefused(const std::function<absl::Status()>& open,
                   const Refusal& refusal) {
  // The first time may allocate what stays for good (a locale, …).
  { const absl::Status warm_up = open(); }
  const size_t fds = Entries("/proc/self/fd");
  const size_t live = g_live;
  g_peak = live;
  { const absl::Status measured = open(); }
  const size_t after = g_live;
  const size_t peak = g_peak;
  const absl::Status status = open();
  EXPECT_EQ(after, live) << "heap bytes stay allocated";
  EXPECT_LT(peak - live, refusal.max_peak);
  EXPECT_EQ(Entries("/proc/self/fd"), fds);
  EXPECT_EQ(MappedFiles(), 0u);
  EXPECT_EQ(status.code(), refusal.code) << status;
  for (const std::string& part : refusal.parts) {
    EXPECT_NE(status.message().find(part), absl::string_view::npos)
        << "expected \"" << part << "\" in: " << status.message();
  }
  EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
}

}  // namespace lanewise
