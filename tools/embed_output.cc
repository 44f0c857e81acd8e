#include "tools/embed_output.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/escaped.h"
#include "tools/npy.h"

namespace lanewise {
namespace {

// Enough digits to get each float back.
std::string Numbers(absl::Span<const float> values, absl::string_view between) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    absl::StrAppendFormat(&text, "%s%.9g", i == 0 ? "" : between, values[i]);
  }
  return text;
}

double Dot(const float* x, const float* y, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += double{x[i]} * y[i];
  return sum;
}

}  // namespace

std::string RowText(const EmbedOptions& options, const EmbedRow& row) {
  switch (options.format) {
    case EmbedFormat::kNpy:
      return NpyValues(row.values);
    case EmbedFormat::kJsonl: {
      const nlohmann::json text = std::string(row.text);
      return absl::StrCat(
          "{\"text\":",
          text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
          ",\"tokens\":", row.tokens, ",\"",
          options.similarity ? "cosines" : "embedding", "\":[",
          Numbers(row.values, ","), "]}\n");
    }
    case EmbedFormat::kText:
      break;
  }
  if (!options.similarity) return absl::StrCat(Numbers(row.values, " "), "\n");
  std::string line;
  for (const float value : row.values) {
    absl::StrAppendFormat(&line, "%.6f\t", value);
  }
  return absl::StrCat(line, Escaped(row.text), "\n");
}

std::vector<float> Cosines(absl::Span<const float> vectors, size_t width,
                           size_t index) {
  const float* x = vectors.data() + index * width;
  const double squares = Dot(x, x, width);
  std::vector<float> cosines;
  for (size_t i = 0; i < vectors.size() / width; ++i) {
    const float* y = vectors.data() + i * width;
    const double lengths = std::sqrt(squares * Dot(y, y, width));
    cosines.push_back(
        lengths > 0 ? static_cast<float>(Dot(x, y, width) / lengths) : 0.0f);
  }
  return cosines;
}

}  // namespace lanewise
