#include "model/chat/chat_template.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "model/chat/evaluator.h"
#include "model/chat/machine.h"
#include "model/chat/parser.h"
#include "model/chat/unicode.h"
#include "simd/status_macros.h"

namespace lanewise {
namespace {

using Json = nlohmann::ordered_json;

// Turns a variable into a value; `trusted` strings count as template text.
absl::StatusOr<chat::Value> Convert(chat::Machine& machine, const Json& json,
                                    bool trusted, int depth) {
  if (depth > chat::kMaxValueDepth) {
    return chat::Fail("nested deeper than ", chat::kMaxValueDepth);
  }
  switch (json.type()) {
    case Json::value_t::null:
      return chat::Value::None();
    case Json::value_t::boolean:
      return chat::Value::Bool(*json.get_ptr<const Json::boolean_t*>());
    case Json::value_t::number_integer:
      return chat::Value::Int(*json.get_ptr<const Json::number_integer_t*>());
    case Json::value_t::number_unsigned: {
      const uint64_t v = *json.get_ptr<const Json::number_unsigned_t*>();
      if (v <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return chat::Value::Int(static_cast<int64_t>(v));
      }
      LANEWISE_ASSIGN_OR_RETURN(const chat::Value digits,
                                machine.TemplateString(absl::StrCat(v)));
      return chat::Value::Of(chat::Kind::kBigInt, digits.shared());
    }
    case Json::value_t::number_float:
      return chat::Value::Float(*json.get_ptr<const Json::number_float_t*>());
    case Json::value_t::string: {
      const std::string& s = *json.get_ptr<const Json::string_t*>();
      if (!chat::ValidUtf8(s)) return chat::Fail("a string is not valid UTF-8");
      return machine.String(chat::Text::Derived(s, !trusted));
    }
    case Json::value_t::array: {
      std::vector<chat::Value> items;
      for (const Json& element : json) {
        LANEWISE_ASSIGN_OR_RETURN(
            chat::Value item, Convert(machine, element, trusted, depth + 1));
        items.push_back(std::move(item));
      }
      return machine.List(std::move(items));
    }
    case Json::value_t::object: {
      std::vector<std::pair<chat::Value, chat::Value>> items;
      for (const auto& [name, element] : json.items()) {
        LANEWISE_ASSIGN_OR_RETURN(chat::Value key,
                                  Convert(machine, name, trusted, depth + 1));
        LANEWISE_ASSIGN_OR_RETURN(
            chat::Value item, Convert(machine, element, trusted, depth + 1));
        items.emplace_back(std::move(key), std::move(item));
      }
      return machine.Dict(std::move(items));
    }
    default:
      return chat::Fail("a value that is no JSON");
  }
}

}  // namespace

struct ChatTemplate::Program {
  chat::Template tree;
};

ChatTemplate::ChatTemplate(std::unique_ptr<Program> program)
    : program_(std::move(program)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

absl::StatusOr<ChatTemplate> ChatTemplate::Parse(absl::string_view source) {
  auto program = std::make_unique<Program>();
  LANEWISE_ASSIGN_OR_RETURN(program->tree, chat::ParseTemplate(source));
  return ChatTemplate(std::move(program));
}

absl::StatusOr<RenderedPrompt> ChatTemplate::Render(
    const Json& variables, const std::vector<std::string>& trusted,
    const RenderOptions& options) const {
  if (!variables.is_object()) {
    return absl::InvalidArgumentError(
        "chat template: the variables must be a JSON object");
  }
  // What the caller gave is not counted against the template.
  constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
  chat::Machine inputs({kUnlimited, kUnlimited}, 0);
  std::vector<std::pair<std::string, chat::Value>> values;
  for (const auto& [name, json] : variables.items()) {
    const bool is_trusted =
        std::find(trusted.begin(), trusted.end(), name) != trusted.end();
    absl::StatusOr<chat::Value> value = Convert(inputs, json, is_trusted, 0);
    if (!value.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "chat template: variable '", name, "': ", value.status().message()));
    }
    values.emplace_back(name, *std::move(value));
  }
  const size_t output = std::min(options.max_output_bytes, kUnlimited / 8);
  chat::Machine machine({options.max_steps, 4 * output + (size_t{1} << 20)},
                        options.now_unix_seconds);
  chat::Evaluator evaluator(program_->tree, machine, output);
  LANEWISE_ASSIGN_OR_RETURN(const chat::Text text, evaluator.Render(values));
  return RenderedPrompt{text.bytes(), text.input()};
}

}  // namespace lanewise
