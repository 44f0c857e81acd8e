// Command-line flags as a table: parsing, and the help text of the same table.
//
//   FlagSet flags;
//   flags.Add({"max_tokens", "N", "at most N new tokens"}, &max_tokens, 0,
//   1e9); flags.Add({"stop", "TEXT", "end before TEXT; may be repeated"},
//   &stop); absl::Status status = flags.Parse(arguments, &positional);
//
// Accepted: --max_tokens=5, --max_tokens 5, --max-tokens 5; a bool flag stands
// alone or takes =true or =false; `--` ends the flags. A flag given twice: the
// last one counts, lists collect. Abseil's parser is not used since it ends the
// process with exit code 1 and keeps flags in globals.
#ifndef LANEWISE_TOOLS_FLAGS_H_
#define LANEWISE_TOOLS_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lanewise {

// `name` with underscores; `value` stands for the value in the help ("" for a
// bool flag). All three must outlive the FlagSet.
struct FlagText {
  absl::string_view name;
  absl::string_view value;
  absl::string_view help;
};

class FlagSet {
 public:
  using Setter = std::function<absl::Status(absl::string_view value)>;

  // A heading in the help; flags added later stand below it.
  void Section(absl::string_view title);

  // Targets must outlive Parse.
  void Add(FlagText text, bool* out);
  void Add(FlagText text, std::string* out);
  void Add(FlagText text, std::optional<std::string>* out);
  void Add(FlagText text, std::vector<std::string>* out);
  void Add(FlagText text, double* out);  // any finite number
  void Add(FlagText text, std::optional<uint64_t>* out);

  // A whole number in [min, max].
  template <typename T>
  void Add(FlagText text, T* out, int64_t min, int64_t max) {
    AddInteger(text, min, max,
               [out](int64_t value) { *out = static_cast<T>(value); });
  }

  // One of some words.
  template <typename T>
  void Add(FlagText text, T* out,
           std::vector<std::pair<absl::string_view, T>> choices) {
    std::vector<absl::string_view> words;
    for (const auto& choice : choices) words.push_back(choice.first);
    AddChoice(text, std::move(words),
              [out, choices = std::move(choices)](size_t index) {
                *out = choices[index].second;
              });
  }

  // INVALID_ARGUMENT in one line that names the flag, what was expected and
  // what was found. `arguments` without the program's name. Stops at --help or
  // -h, which sets help_requested().
  absl::Status Parse(absl::Span<const std::string> arguments,
                     std::vector<std::string>* positional);
  bool help_requested() const { return help_requested_; }

  // All flags with their help, 80 columns.
  std::string Help() const;

  std::vector<absl::string_view> names() const;

 private:
  struct Flag {
    FlagText text;  // a section has only help
    bool takes_value = true;
    Setter set;
  };

  void AddInteger(FlagText text, int64_t min, int64_t max,
                  std::function<void(int64_t)> set);
  void AddChoice(FlagText text, std::vector<absl::string_view> words,
                 std::function<void(size_t)> set);
  const Flag* Find(absl::string_view name) const;
  absl::Status Unknown(absl::string_view argument,
                       absl::string_view name) const;

  std::vector<Flag> flags_;
  bool help_requested_ = false;
};

}  // namespace lanewise

#endif  // LANEWISE_TOOLS_FLAGS_H_
