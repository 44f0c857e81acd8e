#include "model/tokenizer/regex.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/printable.h"
#include "model/tokenizer/regex_syntax.h"
#include "model/tokenizer/unicode.h"
#include "simd/status_macros.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include "pcre2.h"

namespace lanewise {
namespace {

constexpr size_t kMaxPattern = size_t{1} << 16;  // bytes
constexpr uint32_t kHeapLimit = 256 * 1024;      // KiB, of one match
// Backtracking steps of one match: some for each byte that it may look at.
constexpr size_t kStepsPerByte = 32;
constexpr size_t kMinSteps = 100'000;
constexpr size_t kMaxSteps = size_t{1} << 31;
// Steps of a match that are not counted: more than ordinary matches take.
constexpr size_t kFreeSteps = 256;
// Factor from one trial of a match to the next.
constexpr size_t kGrowth = 8;
// Steps of all other matches together (a million take up to 0.1 s).
constexpr size_t kBudget = 8'000'000;
constexpr size_t kBudgetPerByte = 256;
// Compiled bytes of a pattern that add one to the price of its steps.
constexpr size_t kBytesPerPrice = 1024;

std::string ErrorText(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof(buffer)) < 0) {
    return absl::StrCat("error ", code);
  }
  return reinterpret_cast<const char*>(buffer);
}

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};

}  // namespace

struct Regex::Impl {
  std::string pattern;    // as given
  size_t step_price = 1;  // a step runs through up to the whole pattern
  std::unique_ptr<pcre2_code, CodeDeleter> code;
};

struct Regex::Scratch::Impl {
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  size_t budget = 0;  // steps that are left
  ~Impl() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
};

Regex::Scratch::Scratch(const Regex& regex, size_t bytes) : impl_(new Impl) {
  impl_->budget = kBudget + kBudgetPerByte * bytes;
  impl_->data =
      pcre2_match_data_create_from_pattern(regex.impl_->code.get(), nullptr);
  impl_->context = pcre2_match_context_create(nullptr);
  if (impl_->context != nullptr) {
    pcre2_set_heap_limit(impl_->context, kHeapLimit);
  }
}

Regex::Scratch::~Scratch() = default;

Regex::Regex() : impl_(new Impl) {}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

absl::StatusOr<Regex> Regex::Compile(absl::string_view pattern) {
  if (pattern.size() > kMaxPattern) {
    return absl::InvalidArgumentError(
        absl::StrCat("regular expression: expected at most ", kMaxPattern,
                     " bytes, found ", pattern.size()));
  }
  LANEWISE_ASSIGN_OR_RETURN(const Pcre2Pattern translated,
                            TranslateOniguruma(pattern));
  uint32_t options =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  if (translated.nested_classes) {
#ifdef PCRE2_ALT_EXTENDED_CLASS
    options |= PCRE2_ALT_EXTENDED_CLASS;
#else
    return absl::UnimplementedError(
        absl::StrCat("regular expression ", Printable(pattern),
                     ": sets within sets need PCRE2 10.45"));
#endif
  }
  std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)>
      context(pcre2_compile_context_create(nullptr),
              &pcre2_compile_context_free);
  if (context == nullptr) {
    return absl::ResourceExhaustedError("regular expression: out of memory");
  }
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE where = 0;
  Regex regex;
  regex.impl_->pattern = std::string(pattern);
  regex.impl_->code.reset(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.text.data()),
      translated.text.size(), options, &error, &where, context.get()));
  if (regex.impl_->code == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "regular expression ", Printable(pattern), ": ", ErrorText(error),
        ", at byte ", where, " of ", Printable(translated.text)));
  }
  size_t size = 0;
  pcre2_pattern_info(regex.impl_->code.get(), PCRE2_INFO_SIZE, &size);
  regex.impl_->step_price = 1 + size / kBytesPerPrice;
  return regex;
}

// A match that starts at `at` (with PCRE2_ANCHORED) or later, PCRE2's result. A
// limit counts the steps from one start on, so a match is tried with few steps
// and, where they do not suffice, with more, which the budget pays for.
int Regex::MatchAt(absl::string_view subject, size_t at, uint32_t options,
                   Scratch& scratch) const {
  Scratch::Impl& impl = *scratch.impl_;
  const size_t most =
      std::clamp((subject.size() - at) * kStepsPerByte, kMinSteps, kMaxSteps);
  size_t steps = kFreeSteps;
  while (true) {
    pcre2_set_match_limit(impl.context, static_cast<uint32_t>(steps));
    const int code = pcre2_match(
        impl_->code.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()),
        subject.size(), at, PCRE2_NO_UTF_CHECK | options, impl.data,
        impl.context);
    if (code != PCRE2_ERROR_MATCHLIMIT || steps == most) return code;
    // Later starts would use up as many steps each.
    if ((options & PCRE2_ANCHORED) == 0) return code;
    steps = std::min(steps * kGrowth, most);
    if (impl.budget < steps * impl_->step_price) return code;
    impl.budget -= steps * impl_->step_price;
  }
}

absl::StatusOr<bool> Regex::Find(absl::string_view subject, size_t begin,
                                 Scratch& scratch, Match* match) const {
  Scratch::Impl& impl = *scratch.impl_;
  if (impl.data == nullptr || impl.context == nullptr) {
    return absl::ResourceExhaustedError("regular expression: out of memory");
  }
  int code = MatchAt(subject, begin, 0, scratch);
  if (code == PCRE2_ERROR_MATCHLIMIT) {
    // Some start needs many steps: one after the other.
    for (size_t at = begin; at <= subject.size();) {
      code = MatchAt(subject, at, PCRE2_ANCHORED, scratch);
      if (code != PCRE2_ERROR_NOMATCH) break;
      at += at < subject.size()
                ? Utf8Length(static_cast<unsigned char>(subject[at]))
                : 1;
    }
  }
  if (code == PCRE2_ERROR_NOMATCH) return false;
  if (code < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("regular expression ", Printable(impl_->pattern), " on ",
                     subject.size(), " bytes: ", ErrorText(code)));
  }
  const PCRE2_SIZE* ovector = pcre2_get_ovector_pointer(impl.data);
  // \K could move the start.
  match->begin = std::max<size_t>(begin, ovector[0]);
  match->end = std::max<size_t>(match->begin, ovector[1]);
  return true;
}

}  // namespace lanewise
