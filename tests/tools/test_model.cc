#include "tests/tools/test_model.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lanewise {

std::string TestFolder(const std::string& name) {
  const char* root = std::getenv("TEST_TMPDIR");
  const std::string folder =
      std::string(root == nullptr ? "/tmp" : root) + "/" + name;
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  std::filesystem::create_directories(folder, ignored);
  return folder;
}

std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

nlohmann::json Json(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace lanewise
