// Every published template and every snippet of the language against the
// reference's renderings.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/model/chat/chat_test_util.h"

namespace lanewise {
namespace {

const std::vector<std::string>& Trusted() {
  static const auto& names = *new std::vector<std::string>{
      "bos_token", "eos_token", "pad_token", "unk_token"};
  return names;
}

// The renderings of one template; returns how many.
size_t CheckTemplate(const std::filesystem::path& path) {
  const std::string source = ReadFile(path.string());
  std::filesystem::path lines = path;
  lines.replace_extension(".jsonl");
  size_t cases = 0;
  absl::StatusOr<ChatTemplate> chat = ChatTemplate::Parse(source);
  EXPECT_TRUE(chat.ok()) << path << ": " << chat.status();
  if (!chat.ok()) return 0;
  for (const Json& json : ReadJsonLines(lines.string())) {
    ++cases;
    SCOPED_TRACE(absl::StrCat(path.stem().string(), " ",
                              json["case"].get<std::string>()));
    const auto prompt = chat->Render(json["input"], Trusted(), {kTestClock});
    if (json.contains("rendered")) {
      EXPECT_TRUE(prompt.ok()) << prompt.status();
      if (prompt.ok()) {
        EXPECT_EQ(prompt->text, json["rendered"].get<std::string>());
      }
      continue;
    }
    const std::string error = json["error"].get<std::string>();
    EXPECT_FALSE(prompt.ok()) << "expected " << error;
    constexpr char kRaised[] = "TemplateError: ";
    if (absl::StartsWith(error, kRaised)) {
      EXPECT_EQ(prompt.status().message(), error.substr(sizeof(kRaised) - 1));
    }
  }
  return cases;
}

TEST(ChatGolden, PublishedTemplates) {
  size_t templates = 0;
  size_t cases = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(kTemplateFolder)) {
    if (entry.path().extension() != ".jinja") continue;
    ++templates;
    cases += CheckTemplate(entry.path());
  }
  EXPECT_EQ(templates, 48u);  // nothing was left out
  EXPECT_EQ(cases, 520u);
}

TEST(ChatGolden, Language) {
  const std::vector<Json> lines =
      ReadJsonLines(absl::StrCat(kTemplateFolder, "/language.jsonl"));
  ASSERT_GT(lines.size(), 600u);
  const Json& variables = lines[0]["variables"];
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string source = lines[i]["template"].get<std::string>();
    SCOPED_TRACE(absl::StrCat("line ", i + 1, ": ", source));
    const auto prompt = RenderPrompt(source, variables);
    if (lines[i].contains("error")) {
      EXPECT_FALSE(prompt.ok())
          << prompt->text << "\nexpected " << lines[i]["error"];
      // What does not parse is not rendered either, and nothing is called
      // missing that the reference calls wrong.
      EXPECT_EQ(prompt.status().code(), absl::StatusCode::kInvalidArgument)
          << prompt.status();
    } else {
      EXPECT_TRUE(prompt.ok()) << prompt.status();
      if (prompt.ok()) {
        EXPECT_EQ(prompt->text, lines[i]["rendered"].get<std::string>());
      }
    }
  }
}

}  // namespace
}  // namespace lanewise
