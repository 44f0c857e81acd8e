#include "tools/flags.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/escaped.h"

namespace lanewise {
namespace {

constexpr size_t kHelpIndent = 30;
constexpr size_t kHelpWidth = 80;

absl::Status Expected(absl::string_view what, absl::string_view found) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected ", what, ", found '", Escaped(found, 80), "'"));
}

// Insertions, deletions and replacements between two names.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

void FlagSet::Section(absl::string_view title) {
  flags_.push_back({{"", "", title}, false, nullptr});
}

void FlagSet::Add(FlagText text, bool* out) {
  flags_.push_back({text, false, [out](absl::string_view value) {
                      if (value.empty() || absl::SimpleAtob(value, out)) {
                        if (value.empty()) *out = true;
                        return absl::OkStatus();
                      }
                      return Expected("true or false", value);
                    }});
}

void FlagSet::Add(FlagText text, std::string* out) {
  flags_.push_back({text, true, [out](absl::string_view value) {
                      *out = std::string(value);
                      return absl::OkStatus();
                    }});
}

void FlagSet::Add(FlagText text, std::optional<std::string>* out) {
  flags_.push_back({text, true, [out](absl::string_view value) {
                      *out = std::string(value);
                      return absl::OkStatus();
                    }});
}

void FlagSet::Add(FlagText text, std::vector<std::string>* out) {
  flags_.push_back({text, true, [out](absl::string_view value) {
                      out->emplace_back(value);
                      return absl::OkStatus();
                    }});
}

void FlagSet::Add(FlagText text, double* out) {
  flags_.push_back({text, true, [out](absl::string_view value) {
                      double number = 0;
                      if (!absl::SimpleAtod(value, &number) ||
                          !std::isfinite(number)) {
                        return Expected("a number", value);
                      }
                      *out = number;
                      return absl::OkStatus();
                    }});
}

void FlagSet::Add(FlagText text, std::optional<uint64_t>* out) {
  flags_.push_back({text, true, [out](absl::string_view value) {
                      uint64_t number = 0;
                      if (!absl::SimpleAtoi(value, &number)) {
                        return Expected("a whole number from 0 to 2^64-1",
                                        value);
                      }
                      *out = number;
                      return absl::OkStatus();
                    }});
}

void FlagSet::AddInteger(FlagText text, int64_t min, int64_t max,
                         std::function<void(int64_t)> set) {
  flags_.push_back(
      {text, true, [min, max, set](absl::string_view value) {
         int64_t number = 0;
         if (!absl::SimpleAtoi(value, &number) || number < min ||
             number > max) {
           return Expected(
               absl::StrCat("a whole number from ", min, " to ", max), value);
         }
         set(number);
         return absl::OkStatus();
       }});
}

void FlagSet::AddChoice(FlagText text, std::vector<absl::string_view> words,
                        std::function<void(size_t)> set) {
  flags_.push_back(
      {text, true, [words = std::move(words), set](absl::string_view value) {
         for (size_t i = 0; i < words.size(); ++i) {
           if (absl::EqualsIgnoreCase(words[i], value)) {
             set(i);
             return absl::OkStatus();
           }
         }
         return Expected(absl::StrCat("one of ", absl::StrJoin(words, ", ")),
                         value);
       }});
}

const FlagSet::Flag* FlagSet::Find(absl::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.set != nullptr && flag.text.name == name) return &flag;
  }
  return nullptr;
}

absl::Status FlagSet::Unknown(absl::string_view argument,
                              absl::string_view name) const {
  absl::string_view nearest;
  // Long names would cost quadratic time and are no slip of the fingers.
  size_t distance = name.size() <= 40 ? 3 : 0;
  for (absl::string_view candidate : names()) {
    const size_t d = distance > 0 ? EditDistance(candidate, name) : 0;
    if (d < distance) {
      distance = d;
      nearest = candidate;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag ", Escaped(argument, 80),
                   nearest.empty() ? absl::string_view()
                                   : absl::string_view("; did you mean --"),
                   nearest, nearest.empty() ? "" : "?"));
}

absl::Status FlagSet::Parse(absl::Span<const std::string> arguments,
                            std::vector<std::string>* positional) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const absl::string_view argument = arguments[i];
    if (argument == "--") {
      positional->insert(positional->end(), arguments.begin() + i + 1,
                         arguments.end());
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      positional->emplace_back(argument);
      continue;
    }
    if (argument == "--help" || argument == "-h") {
      help_requested_ = true;
      return absl::OkStatus();
    }
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    std::string name(halves.first.substr(1));
    if (absl::StartsWith(name, "-")) {
      name = absl::StrReplaceAll(name.substr(1), {{"-", "_"}});
    }
    const Flag* flag = absl::StartsWith(argument, "--") ? Find(name) : nullptr;
    if (flag == nullptr) return Unknown(halves.first, name);
    const bool has_value = halves.first.size() < argument.size();
    absl::string_view value = halves.second;
    if (!has_value && flag->takes_value) {
      if (i + 1 == arguments.size()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "--", name, " needs a value: --", name, " ", flag->text.value));
      }
      value = arguments[++i];
    } else if (has_value && !flag->takes_value && value.empty()) {
      value = "=";  // --raw= is neither true nor false
    }
    if (absl::Status status = flag->set(value); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

std::string FlagSet::Help() const {
  std::string help;
  for (const Flag& flag : flags_) {
    if (flag.set == nullptr) {
      absl::StrAppend(&help, "\n", flag.text.help, ":\n");
      continue;
    }
    std::string line =
        absl::StrCat("  --", flag.text.name, flag.text.value.empty() ? "" : " ",
                     flag.text.value);
    if (line.size() + 2 > kHelpIndent) {
      absl::StrAppend(&help, line, "\n");
      line.clear();
    }
    line.resize(kHelpIndent, ' ');
    for (absl::string_view word : absl::StrSplit(flag.text.help, ' ')) {
      if (line.size() + 1 + word.size() > kHelpWidth) {
        absl::StrAppend(&help, absl::StripTrailingAsciiWhitespace(line), "\n");
        line.assign(kHelpIndent, ' ');
      }
      absl::StrAppend(&line, line.size() == kHelpIndent ? "" : " ", word);
    }
    absl::StrAppend(&help, line, "\n");
  }
  return help;
}

std::vector<absl::string_view> FlagSet::names() const {
  std::vector<absl::string_view> names;
  for (const Flag& flag : flags_) {
    if (flag.set != nullptr) names.push_back(flag.text.name);
  }
  return names;
}

}  // namespace lanewise
