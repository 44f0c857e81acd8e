// Single operations with values that a reference implementation computed in
// double: tests/data/kernels/TOPIC.json lists the cases, TOPIC.safetensors
// holds the arrays they name.
#ifndef LANEWISE_TESTS_SIMD_GOLDEN_TOPIC_H_
#define LANEWISE_TESTS_SIMD_GOLDEN_TOPIC_H_

#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/format/safetensors.h"
#include "nlohmann/json.hpp"
#include "simd/types.h"

namespace lanewise {

struct GoldenArray {
  std::vector<float> values;
  size_t width = 0;  // of the last axis
  size_t rows() const { return width == 0 ? 0 : values.size() / width; }
  const float* row(size_t r) const { return values.data() + r * width; }
};

// One topic: a list of cases and the arrays they name.
class GoldenTopic {
 public:
  explicit GoldenTopic(const std::string& name) {
    const std::string path = "tests/data/kernels/" + name;
    std::ifstream stream(path + ".json");
    json_ = nlohmann::json::parse(stream, nullptr, false);
    absl::StatusOr<SafetensorsFile> file =
        SafetensorsFile::Open(path + ".safetensors");
    EXPECT_TRUE(file.ok()) << file.status();
    if (!file.ok()) return;
    for (const Tensor& tensor : file->tensors()) {
      GoldenArray& array = arrays_[tensor.name];
      array.values.resize(tensor.elements());
      if (tensor.type == DType::kI32) {  // positions, buckets: small
        std::vector<int32_t> integers(tensor.elements());
        std::memcpy(integers.data(), tensor.data.data(), tensor.data.size());
        array.values.assign(integers.begin(), integers.end());
      } else {
        EXPECT_EQ(tensor.type, DType::kF32);
        std::memcpy(array.values.data(), tensor.data.data(),
                    tensor.data.size());
      }
      array.width = tensor.shape.empty() ? 1 : tensor.shape.back();
    }
  }

  const nlohmann::json& cases() const { return json_["cases"]; }

  // The array of a field of "inputs" or "outputs"; null when the case has none.
  const GoldenArray* Find(const nlohmann::json& golden, const char* side,
                          const char* field) const {
    const auto& fields = golden[side];
    const auto name = fields.find(field);
    if (name == fields.end()) return nullptr;
    const auto array = arrays_.find(name->get<std::string>());
    return array == arrays_.end() ? nullptr : &array->second;
  }

 private:
  nlohmann::json json_;
  std::map<std::string, GoldenArray> arrays_;
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_SIMD_GOLDEN_TOPIC_H_
