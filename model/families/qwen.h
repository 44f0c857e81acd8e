// What the Qwen families share.
#ifndef LANEWISE_MODEL_FAMILIES_QWEN_H_
#define LANEWISE_MODEL_FAMILIES_QWEN_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "model/families/family.h"
#include "model/spec.h"
#include "nlohmann/json.hpp"

namespace lanewise {

// With use_sliding_window the layers from max_window_layers on have a window,
// or those that layer_types says.
absl::Status ReadQwenWindows(const nlohmann::json& config,
                             absl::string_view file, ModelSpec* spec);

// Router and experts, a tensor each.
std::vector<TensorRule> QwenExpertTensors();

}  // namespace lanewise

#endif  // LANEWISE_MODEL_FAMILIES_QWEN_H_
