// Every published template and every snippet of the language against the
// reference's renderings.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/conformance/template_runner.h"
#include "tests/model/chat/chat_test_util.h"

namespace lanewise {
namespace {

TEST(ChatGolden, PublishedTemplates) {
  size_t templates = 0;
  size_t cases = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(kTemplateFolder)) {
    if (entry.path().extension() != ".jinja") continue;
    ++templates;
    SCOPED_TRACE(entry.path().string());
    const absl::StatusOr<LineCount> count =
        CompareTemplate(entry.path().string());
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->equal, count->cases) << count->differences;
    cases += count->cases;
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
