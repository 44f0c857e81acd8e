#include "tests/conformance/model_runner.h"

#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "model/format/json.h"
#include "simd/status_macros.h"
#include "tests/conformance/beam_runner.h"
#include "tests/conformance/case_folder.h"
#include "tests/conformance/decoder_runner.h"
#include "tests/conformance/encoder_runner.h"
#include "tests/conformance/seq2seq_runner.h"

namespace lanewise {
namespace {

constexpr size_t kMaxRows = 512;  // of a forward pass of beam search

void Append(CaseReport more, CaseReport* report) {
  report->comparisons.insert(report->comparisons.end(),
                             std::make_move_iterator(more.comparisons.begin()),
                             std::make_move_iterator(more.comparisons.end()));
}

absl::StatusOr<CaseReport> RunDecoder(const CaseFolder& golden,
                                      const Context& context) {
  LANEWISE_ASSIGN_OR_RETURN(
      CaseReport report,
      RunDecoderCase(golden.path(), context,
                     {"forward", "perplexity", "generate", "text"}));
  report.skipped.clear();  // the rest are those with beams
  bool beams = false;
  for (const nlohmann::json& run : golden.runs()) beams |= HasBeams(run);
  if (beams) {
    LANEWISE_ASSIGN_OR_RETURN(CaseReport found,
                              RunBeamCase(golden.path(), context, kMaxRows));
    Append(std::move(found), &report);
  }
  return report;
}

absl::StatusOr<CaseReport> Run(const std::string& folder,
                               const Context& context) {
  LANEWISE_ASSIGN_OR_RETURN(const CaseFolder golden, CaseFolder::Open(folder));
  LANEWISE_ASSIGN_OR_RETURN(const std::string family,
                            GetString(golden.json(), folder, "family"));
  if (family == "decoder") return RunDecoder(golden, context);
  if (family == "encoder") return RunEncoderCase(folder, context);
  if (family == "encoder-decoder") return RunSeq2SeqCase(folder, context);
  return absl::UnimplementedError(
      absl::StrCat("models of the kind ", family, " are not run"));
}

}  // namespace

absl::StatusOr<CaseReport> RunModelCase(const std::string& folder,
                                        const Context& context) {
  LANEWISE_ASSIGN_OR_RETURN(CaseReport report, Run(folder, context));
  if (!LegacyFolder::Exists(folder)) return report;
  LANEWISE_ASSIGN_OR_RETURN(const LegacyFolder legacy,
                            LegacyFolder::Create(folder));
  absl::StatusOr<CaseReport> second = Run(legacy.path(), context);
  if (!second.ok()) {
    AddExact({"legacy config.json", "load"},
             std::string(second.status().message()), &report);
    return report;
  }
  for (Comparison& c : second->comparisons) c.run = "legacy " + c.run;
  Append(*std::move(second), &report);
  return report;
}

}  // namespace lanewise
