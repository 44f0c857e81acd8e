// Model folders that tests make, and files they read.
#ifndef LANEWISE_TESTS_TOOLS_TEST_MODEL_H_
#define LANEWISE_TESTS_TOOLS_TEST_MODEL_H_

#include <string>

#include "nlohmann/json.hpp"

namespace lanewise {

inline constexpr char kLlama[] = "tests/data/models/llama";
inline constexpr char kLlamaGguf[] = "tests/data/gguf/llama_q4_0/model.gguf";

// A fresh folder for this test.
std::string TestFolder(const std::string& name);

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

// The JSON in `text`; discarded() when it is none.
nlohmann::json Json(const std::string& text);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_TOOLS_TEST_MODEL_H_
