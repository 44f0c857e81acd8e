#include "tools/classify_output.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/escaped.h"
#include "tools/json_line.h"

namespace lanewise {
namespace {

using Json = nlohmann::ordered_json;

std::string Part(const std::string& text, size_t begin, size_t end) {
  return text.substr(begin, end - begin);
}

std::string Place(size_t begin, size_t end) {
  return absl::StrCat(begin, "-", end, "\t");
}

Json Span(const std::string& text, size_t begin, size_t end) {
  return {{"begin", begin}, {"end", end}, {"text", Part(text, begin, end)}};
}

Json Labels(const Classification& output) {
  Json list = Json::array();
  for (const LabelScore& label : output.labels) {
    list.push_back({{"label", label.label}, {"score", label.score}});
  }
  return list;
}

Json Entities(const Classification& output, const std::string& text) {
  Json list = Json::array();
  for (const Entity& entity : output.entities) {
    Json json = {{"label", entity.label}, {"score", entity.score}};
    json.update(Span(text, entity.begin, entity.end));
    list.push_back(std::move(json));
  }
  return list;
}

Json Masks(const Classification& output, const std::string& text) {
  Json list = Json::array();
  for (const MaskChoices& mask : output.masks) {
    Json choices = Json::array();
    for (const TokenChoice& choice : mask.choices) {
      choices.push_back({{"id", choice.id},
                         {"token", choice.token},
                         {"score", choice.score}});
    }
    Json json = Span(text, mask.begin, mask.end);
    json["choices"] = std::move(choices);
    list.push_back(std::move(json));
  }
  return list;
}

Json Answers(const Classification& output, const std::string& text) {
  Json list = Json::array();
  for (const AnswerSpan& answer : output.answers) {
    Json json = {{"score", answer.score}};
    json.update(Span(text, answer.begin, answer.end));
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace

std::string FindingLines(const Classification& output, const std::string& text,
                         absl::string_view behind) {
  std::string lines;
  const auto add = [&](double score, absl::string_view what) {
    absl::StrAppendFormat(&lines, "%.6f\t%s%s\n", score, what, behind);
  };
  for (const LabelScore& label : output.labels) {
    add(label.score, Escaped(label.label));
  }
  for (const Entity& entity : output.entities) {
    add(entity.score,
        absl::StrCat(Place(entity.begin, entity.end), Escaped(entity.label),
                     "\t", Escaped(Part(text, entity.begin, entity.end))));
  }
  for (const MaskChoices& mask : output.masks) {
    const std::string place =
        output.masks.size() > 1 ? Place(mask.begin, mask.end) : "";
    for (const TokenChoice& choice : mask.choices) {
      add(choice.score, absl::StrCat(place, Escaped(choice.token)));
    }
  }
  for (const AnswerSpan& answer : output.answers) {
    add(answer.score,
        absl::StrCat(Place(answer.begin, answer.end),
                     Escaped(Part(text, answer.begin, answer.end))));
  }
  return lines;
}

std::string FindingsJson(ClassifyTask task, const Classification& output,
                         const std::string& text) {
  Json json;
  json["text"] = text;
  json["tokens"] = output.tokens;
  if (output.truncated) json["truncated"] = true;
  switch (task) {
    case ClassifyTask::kSequenceLabels:
      json["labels"] = Labels(output);
      break;
    case ClassifyTask::kTokenLabels:
      json["entities"] = Entities(output, text);
      break;
    case ClassifyTask::kMaskedTokens:
      json["masks"] = Masks(output, text);
      break;
    case ClassifyTask::kAnswers:
      json["answers"] = Answers(output, text);
      break;
  }
  return JsonLine(json);
}

}  // namespace lanewise
