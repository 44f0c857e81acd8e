#include "tests/conformance/template_runner.h"

#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "model/chat/chat_template.h"
#include "model/format/text_file.h"
#include "simd/status_macros.h"
#include "tests/conformance/text_lines.h"

namespace lanewise {
namespace {

const std::vector<std::string>& Trusted() {
  static const auto& names = *new std::vector<std::string>{
      "bos_token", "eos_token", "pad_token", "unk_token"};
  return names;
}

void CheckConversation(const ChatTemplate& chat,
                       const nlohmann::ordered_json& line, LineCheck* check) {
  const auto input = line.find("input");
  if (input == line.end()) return check->Add("line", "no input");
  const auto prompt = chat.Render(*input, Trusted(), {kTemplateClock});
  if (line.contains("rendered")) {
    if (!prompt.ok()) {
      return check->Add("rendered", prompt.status().ToString());
    }
    return check->Compare("rendered", prompt->text, LineText(line, "rendered"));
  }
  const std::string error = LineText(line, "error");
  if (prompt.ok()) {
    return check->Add("error", absl::StrCat("expected ", error));
  }
  constexpr char kRaised[] = "TemplateError: ";
  if (absl::StartsWith(error, kRaised)) {
    check->Compare("error", std::string(prompt.status().message()),
                   error.substr(sizeof(kRaised) - 1));
  }
}

}  // namespace

absl::StatusOr<LineCount> CompareTemplate(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const std::string source, ReadTextFile(path));
  LANEWISE_ASSIGN_OR_RETURN(const ChatTemplate chat,
                            ChatTemplate::Parse(source));
  std::filesystem::path lines = path;
  lines.replace_extension(".jsonl");
  return CompareLines(lines.string(), [&](const nlohmann::ordered_json& line,
                                          LineCheck* check) {
    CheckConversation(chat, line, check);
  });
}

absl::StatusOr<CaseReport> RunTemplateCase(const std::string& path) {
  LANEWISE_ASSIGN_OR_RETURN(const LineCount count, CompareTemplate(path));
  CaseReport report;
  report.name = std::filesystem::path(path).stem().string();
  AddLines({"template", "rendered"}, count, &report);
  return report;
}

}  // namespace lanewise
