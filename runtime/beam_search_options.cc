#include "runtime/beam_search_options.h"

#include "absl/strings/str_cat.h"

namespace lanewise {

absl::Status Validate(const BeamOptions& options) {
  if (options.num_beams < 1 || options.num_beams > BeamOptions::kMaxBeams) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_beams: expected 1 to ", BeamOptions::kMaxBeams,
                     ", found ", options.num_beams));
  }
  if (options.num_return_sequences < 1 ||
      options.num_return_sequences > options.num_beams) {
    return absl::InvalidArgumentError(absl::StrCat(
        "num_return_sequences: expected 1 to num_beams (", options.num_beams,
        "), found ", options.num_return_sequences));
  }
  const double penalty = options.length_penalty;
  if (!(-BeamOptions::kMaxLengthPenalty <= penalty &&
        penalty <= BeamOptions::kMaxLengthPenalty)) {  // NaN too
    return absl::InvalidArgumentError(absl::StrCat(
        "length_penalty: expected ", -BeamOptions::kMaxLengthPenalty, " to ",
        BeamOptions::kMaxLengthPenalty, ", found ", penalty));
  }
  switch (options.early_stopping) {
    case EarlyStopping::kNo:
    case EarlyStopping::kYes:
    case EarlyStopping::kNever:
      return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("early_stopping: expected 0 to 2, found ",
                   static_cast<int>(options.early_stopping)));
}

}  // namespace lanewise
