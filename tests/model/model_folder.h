// A copy of a model folder under tests/data that a test may damage.
#ifndef LANEWISE_TESTS_MODEL_MODEL_FOLDER_H_
#define LANEWISE_TESTS_MODEL_MODEL_FOLDER_H_

#include <cstddef>
#include <functional>
#include <string>

#include "nlohmann/json.hpp"

namespace lanewise {

class ModelFolder {
 public:
  // Copies tests/data/models/<name> into the test's temporary folder.
  explicit ModelFolder(const std::string& name);
  ~ModelFolder();
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  const std::string& path() const { return path_; }

  // Rewrites a JSON file in place.
  void EditJson(const std::string& file,
                const std::function<void(nlohmann::json&)>& edit);

  // Rewrites the header of model.safetensors; the data stay where they are.
  void EditTensors(const std::function<void(nlohmann::ordered_json&)>& edit);

  // Sets every element of an F32 tensor of model.safetensors to value(index).
  void EditValues(const std::string& tensor,
                  const std::function<float(size_t)>& value);

  void Remove(const std::string& file);
  void Write(const std::string& file, const std::string& bytes);
  std::string Read(const std::string& file) const;

 private:
  std::string path_;
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_MODEL_MODEL_FOLDER_H_
