// Chat templates: the Jinja dialect of Hugging Face's apply_chat_template,
// rendered in-process.
//
//   LANEWISE_ASSIGN_OR_RETURN(ChatTemplate chat, ChatTemplate::Parse(source));
//   LANEWISE_ASSIGN_OR_RETURN(RenderedPrompt prompt, chat.Render({{"messages",
//   messages}, {"add_generation_prompt", true}}));
//
// The environment is the reference's: trim_blocks and lstrip_blocks, loop
// controls, tojson without HTML escapes, raise_exception, strftime_now, the
// generation tag. A feature that is missing is an UNIMPLEMENTED status that
// names it and the line.
#ifndef LANEWISE_MODEL_CHAT_CHAT_TEMPLATE_H_
#define LANEWISE_MODEL_CHAT_CHAT_TEMPLATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace lanewise {

struct RenderedPrompt {
  std::string text;
  // Byte ranges of `text`, ascending and disjoint, whose characters came from
  // the input messages, tools or documents rather than from the template:
  // EncodeOptions::plain_ranges. Characters keep their origin through
  // concatenation, slices, trim, replace and the other string operations; what
  // an operation makes anew from input (tojson, upper, …) counts as input.
  std::vector<std::pair<size_t, size_t>> from_input;
};

class ChatTemplate {
 public:
  struct RenderOptions {
    int64_t now_unix_seconds = 0;  // the clock of strftime_now, UTC
    size_t max_output_bytes = size_t{64} << 20;
    size_t max_steps =
        10'000'000;  // evaluated nodes; beyond it RESOURCE_EXHAUSTED
  };

  // INVALID_ARGUMENT with line and column for syntax errors.
  static absl::StatusOr<ChatTemplate> Parse(absl::string_view source);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // `variables`: what the template sees: messages, tools,
  // add_generation_prompt, bos_token, …. Strings under the keys in `trusted`
  // (special tokens such as bos_token) count as template text, all others as
  // input. INVALID_ARGUMENT with the template's own message when it calls
  // raise_exception. Objects keep their order of keys.
  absl::StatusOr<RenderedPrompt> Render(const nlohmann::ordered_json& variables,
                                        const std::vector<std::string>& trusted,
                                        const RenderOptions& options) const;

 private:
  struct Program;
  explicit ChatTemplate(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_CHAT_CHAT_TEMPLATE_H_
