#include "tests/model/model_folder.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

namespace fs = std::filesystem;

}  // namespace

ModelFolder::ModelFolder(const std::string& name) {
  static std::atomic<int> count{0};
  path_ = testing::TempDir() + "/model_folder_" + std::to_string(count++);
  fs::remove_all(path_);
  fs::create_directories(path_);
  for (const auto& entry :
       fs::directory_iterator("tests/data/models/" + name)) {
    const std::string file = entry.path().filename().string();
    Write(file, [&] {
      std::ifstream in(entry.path(), std::ios::binary);
      std::stringstream bytes;
      bytes << in.rdbuf();
      return bytes.str();
    }());
  }
}

ModelFolder::~ModelFolder() { fs::remove_all(path_); }

void ModelFolder::EditJson(const std::string& file,
                           const std::function<void(nlohmann::json&)>& edit) {
  nlohmann::json json = nlohmann::json::parse(Read(file));
  edit(json);
  Write(file, json.dump());
}

void ModelFolder::EditTensors(
    const std::function<void(nlohmann::ordered_json&)>& edit) {
  const std::string bytes = Read("model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  nlohmann::ordered_json header =
      nlohmann::ordered_json::parse(bytes.substr(8, length));
  edit(header);
  const std::string text = header.dump();
  const uint64_t new_length = text.size();
  std::string out(reinterpret_cast<const char*>(&new_length), 8);
  Write("model.safetensors", out + text + bytes.substr(8 + length));
}

void ModelFolder::EditValues(const std::string& tensor,
                             const std::function<float(size_t)>& value) {
  std::string bytes = Read("model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  const nlohmann::json& entry = header.at(tensor);
  ASSERT_EQ(entry.at("dtype"), "F32");
  const size_t begin = entry.at("data_offsets").at(0);
  const size_t end = entry.at("data_offsets").at(1);
  for (size_t i = 0; i < (end - begin) / sizeof(float); ++i) {
    const float element = value(i);
    std::memcpy(&bytes[8 + length + begin + i * sizeof(float)], &element,
                sizeof(float));
  }
  Write("model.safetensors", bytes);
}

void ModelFolder::Remove(const std::string& file) {
  fs::remove(path_ + "/" + file);
}

void ModelFolder::Write(const std::string& file, const std::string& bytes) {
  std::ofstream out(path_ + "/" + file, std::ios::binary);
  out << bytes;
}

std::string ModelFolder::Read(const std::string& file) const {
  std::ifstream in(path_ + "/" + file, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

}  // namespace lanewise
