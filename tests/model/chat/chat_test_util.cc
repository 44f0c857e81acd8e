#include "tests/model/chat/chat_test_util.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "simd/status_macros.h"

namespace lanewise {

absl::StatusOr<RenderedPrompt> RenderPrompt(
    absl::string_view source, const Json& variables,
    const std::vector<std::string>& trusted,
    ChatTemplate::RenderOptions options) {
  LANEWISE_ASSIGN_OR_RETURN(ChatTemplate chat, ChatTemplate::Parse(source));
  return chat.Render(variables, trusted, options);
}

std::string Render(absl::string_view source, const Json& variables) {
  const absl::StatusOr<RenderedPrompt> prompt = RenderPrompt(source, variables);
  if (prompt.ok()) return prompt->text;
  return absl::StrCat(absl::StatusCodeToString(prompt.status().code()), ": ",
                      prompt.status().message());
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<Json> ReadJsonLines(const std::string& path) {
  std::vector<Json> lines;
  for (const absl::string_view line :
       absl::StrSplit(ReadFile(path), '\n', absl::SkipEmpty())) {
    Json json = Json::parse(line, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << path << ": " << line;
    lines.push_back(std::move(json));
  }
  return lines;
}

}  // namespace lanewise
