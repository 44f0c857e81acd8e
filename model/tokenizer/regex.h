// Regular expressions of tokenizer files, matched by PCRE2 with UTF and
// Unicode properties. Memory and steps are limited; reaching a limit is a
// status (RESOURCE_EXHAUSTED), so is a pattern that does not compile
// (INVALID_ARGUMENT, with the place). Stack use does not depend on the text.
//
//   LANEWISE_ASSIGN_OR_RETURN(Regex regex, Regex::Compile("\\p{N}{1,3}"));
//   Regex::Scratch scratch(regex);
//   LANEWISE_ASSIGN_OR_RETURN(bool found, regex.Find(text, 0, scratch,
//   &match));
#ifndef LANEWISE_MODEL_TOKENIZER_REGEX_H_
#define LANEWISE_MODEL_TOKENIZER_REGEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lanewise {

class Regex {
 public:
  struct Match {
    size_t begin;
    size_t end;
  };

  // What one thread needs to match; may be used again, for the same regex.
  class Scratch {
   public:
    // `bytes`: of all texts it will serve. They set how many backtracking steps
    // its matches may take together, beyond a few for each character.
    explicit Scratch(const Regex& regex, size_t bytes = 0);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    friend class Regex;
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };

  // `pattern` is in Oniguruma's syntax (regex_syntax.h).
  static absl::StatusOr<Regex> Compile(absl::string_view pattern);

  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The first match in `subject` (valid UTF-8) that starts at `begin` (between
  // characters) or later; false when there is none. RESOURCE_EXHAUSTED when a
  // match, or all matches with this scratch, take too many steps.
  absl::StatusOr<bool> Find(absl::string_view subject, size_t begin,
                            Scratch& scratch, Match* match) const;

 private:
  struct Impl;
  Regex();
  int MatchAt(absl::string_view subject, size_t at, uint32_t options,
              Scratch& scratch) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lanewise

#endif  // LANEWISE_MODEL_TOKENIZER_REGEX_H_
