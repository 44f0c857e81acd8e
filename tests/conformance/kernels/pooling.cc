// Pooling of rows into one vector, and cross entropy.
#include "simd/pooling.h"

#include <map>
#include <vector>

#include "simd/vector_ops.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

// The negative log-likelihood of each row's label, and their mean.
void CheckCrossEntropy(const KernelCase& c, const Context& context,
                       CaseReport* report) {
  const KernelArray& logits = c.input("logits");
  const KernelArray& labels = c.input("labels");
  std::vector<double> found;
  double sum = 0;
  for (size_t r = 0; r < logits.rows() && r < labels.values.size(); ++r) {
    const float* row = logits.row(r);
    found.push_back(LogSumExp(context.target(), row, logits.width) -
                    row[static_cast<size_t>(labels.values[r])]);
    sum += found.back();
  }
  CompareElements(
      {c.name(), "nll"}, absl::MakeConstSpan(found), c.output("nll").values,
      [](size_t) { return 1e-5; }, report);
  const std::vector<double> mean = {sum / static_cast<double>(found.size())};
  CompareElements(
      {c.name(), "mean"}, absl::MakeConstSpan(mean), c.output("mean").values,
      [](size_t) { return 1e-6; }, report);
}

}  // namespace

bool CheckPooling(const KernelCase& c, const Context& context,
                  CaseReport* report) {
  if (c.name() == "cross_entropy") {
    CheckCrossEntropy(c, context, report);
    return true;
  }
  const std::map<std::string, RowPooling> names = {{"mean", RowPooling::kMean},
                                                   {"max", RowPooling::kMax},
                                                   {"cls", RowPooling::kFirst},
                                                   {"last", RowPooling::kLast}};
  const auto pooling = names.find(c.name());
  if (pooling == names.end()) return false;
  const KernelArray &x = c.input("x"), &mask = c.input("mask");
  const KernelArray &y = c.output("y"), &unit = c.output("normalized");
  std::vector<float> found, found_unit;
  for (size_t b = 0; b < y.rows(); ++b) {
    const size_t length = x.rows() / y.rows();
    std::vector<float> rows;  // of the tokens that are there
    for (size_t r = 0; r < length; ++r) {
      if (!mask.empty() && mask.row(b)[r] == 0.0f) continue;
      const float* row = x.row(b * length + r);
      rows.insert(rows.end(), row, row + x.width);
    }
    std::vector<float> out(x.width);
    Pool(context.target(), pooling->second,
         {rows.data(), rows.size() / x.width, x.width, x.width}, out.data());
    found.insert(found.end(), out.begin(), out.end());
    L2Normalize(context.target(), out.data(), x.width);
    found_unit.insert(found_unit.end(), out.begin(), out.end());
  }
  const auto allowed = [](size_t) { return 1e-6; };
  CompareElements({c.name(), "y"}, found, y.values, allowed, report);
  if (!unit.empty()) {
    CompareElements({c.name(), "normalized"}, found_unit, unit.values, allowed,
                    report);
  }
  return true;
}

}  // namespace lanewise
