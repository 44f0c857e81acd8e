#include "tools/text_input.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "simd/status_macros.h"

namespace lanewise {

void AddTextFlags(TextInput* input, FlagSet* flags) {
  flags->Add(
      {"file", "FILE", "read texts from FILE (-: standard input), one a line"},
      &input->file);
  flags->Add({"whole", "", "the file or input is one text, not one a line"},
             &input->whole);
}

void AddBatchFlags(bool* no_truncate, size_t* batch_tokens, FlagSet* flags) {
  flags->Add({"no_truncate", "",
              "a text that is longer than the model takes is an error, instead "
              "of losing its end"},
             no_truncate);
  flags->Add({"batch_tokens", "N",
              "tokens that are computed together (512); changes no result"},
             batch_tokens, 1, 1 << 16);
}

void NoteTruncated(const Invocation& call, size_t truncated, size_t texts,
                   size_t max_tokens) {
  if (truncated == 0) return;
  Note(call, absl::StrCat("note: ", truncated, " of ", texts,
                          " texts had more than ", max_tokens,
                          " tokens (the model's limit) and lost their end"));
}

absl::Status Check(const TextInput& input, bool terminal) {
  if (input.file.has_value() && !input.texts.empty()) {
    return absl::InvalidArgumentError(
        "both texts and --file: give only one of them");
  }
  if (input.whole && !input.texts.empty()) {
    return absl::InvalidArgumentError(
        "--whole is for --file or a pipe: an argument is one text as it is");
  }
  if (input.texts.empty() && !input.file.has_value() && terminal) {
    return absl::InvalidArgumentError(
        "no text: give some as arguments, with --file FILE or by a pipe");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReadTexts(const Invocation& call,
                                                   const TextInput& input) {
  if (!input.texts.empty()) return input.texts;
  std::string text;
  if (input.file.has_value()) {
    LANEWISE_ASSIGN_OR_RETURN(text, ReadTextFile(call, *input.file));
  } else {
    LANEWISE_ASSIGN_OR_RETURN(text, ReadStandardInput(call));
  }
  if (text.empty()) {
    return absl::InvalidArgumentError(
        "the input is empty: expected a text, or one a line");
  }
  std::vector<std::string> texts;
  if (input.whole) {
    texts.push_back(std::move(text));
    return texts;
  }
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    texts.emplace_back(absl::StripSuffix(line, "\r"));
  }
  return texts;
}

}  // namespace lanewise
