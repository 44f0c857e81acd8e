// Helpers of the chat template tests.
#ifndef LANEWISE_TESTS_MODEL_CHAT_CHAT_TEST_UTIL_H_
#define LANEWISE_TESTS_MODEL_CHAT_CHAT_TEST_UTIL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/chat/chat_template.h"
#include "nlohmann/json.hpp"
#include "tests/conformance/template_runner.h"

namespace lanewise {

using Json = nlohmann::ordered_json;

// The clock of all expected values.
constexpr int64_t kTestClock = kTemplateClock;
constexpr char kTemplateFolder[] = "tests/data/templates";

absl::StatusOr<RenderedPrompt> RenderPrompt(
    absl::string_view source, const Json& variables,
    const std::vector<std::string>& trusted = {},
    ChatTemplate::RenderOptions options = {kTestClock});

// The text, or "code: message" of the error.
std::string Render(absl::string_view source,
                   const Json& variables = Json::object());

// The lines of a JSON lines file; none when it cannot be read.
std::vector<Json> ReadJsonLines(const std::string& path);
std::string ReadFile(const std::string& path);

}  // namespace lanewise

#endif  // LANEWISE_TESTS_MODEL_CHAT_CHAT_TEST_UTIL_H_
