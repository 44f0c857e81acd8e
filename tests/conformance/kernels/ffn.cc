// Activations, and feed-forward blocks. Of a block only the activation between
// the products runs in the library here: topic `linear` has products.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "simd/activation.h"
#include "tests/conformance/kernels/kernel_checks.h"

namespace lanewise {
namespace {

const std::map<std::string, Activation>& ActivationNames() {
  static const auto& names = *new std::map<std::string, Activation>{
      {"relu", Activation::kRelu},
      {"relu2", Activation::kReluSquared},
      {"silu", Activation::kSilu},
      {"gelu", Activation::kGelu},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh},
      {"quick_gelu", Activation::kQuickGelu},
      {"tanh", Activation::kTanh},
      {"sigmoid", Activation::kSigmoid}};
  return names;
}

// x · wᵀ + b in double, rounded: [rows, w.rows()].
std::vector<float> Linear(const std::vector<float>& x, const KernelArray& w,
                          const KernelArray& b) {
  if (w.width == 0) return {};
  const size_t rows = x.size() / w.width;
  std::vector<float> y(rows * w.rows());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t n = 0; n < w.rows(); ++n) {
      double sum = b.empty() ? 0.0 : b.values[n];
      for (size_t k = 0; k < w.width; ++k) {
        sum += static_cast<double>(x[r * w.width + k]) * w.row(n)[k];
      }
      y[r * w.rows() + n] = static_cast<float>(sum);
    }
  }
  return y;
}

constexpr char kActivation[] = "act_";

}  // namespace

bool CheckFeedForward(const KernelCase& c, const Context& context,
                      CaseReport* report) {
  const bool alone = c.Is(kActivation);
  const auto activation = ActivationNames().find(
      alone ? c.name().substr(sizeof(kActivation) - 1) : c.text("act"));
  if (activation == ActivationNames().end()) return false;
  const KernelArray& x = c.input("x");
  const std::vector<float>& y = c.output("y").values;
  if (alone) {
    std::vector<float> found = x.values;
    Activate(context.target(), activation->second, found.data(), found.size());
    CompareElements(
        {c.name(), "y"}, found, y,
        [&](size_t i) { return 1e-7 + 5e-7 * std::abs(y[i]); }, report);
    return true;
  }
  std::vector<float> found;
  const KernelArray none;
  if (c.Is("gated_")) {
    std::vector<float> gate = Linear(x.values, c.input("wg"), none);
    const std::vector<float> up = Linear(x.values, c.input("wu"), none);
    ActivateGated(context.target(), activation->second, gate.data(), up.data(),
                  gate.size(), gate.data());
    found = Linear(gate, c.input("wd"), none);
  } else {
    std::vector<float> hidden = Linear(x.values, c.input("w1"), c.input("b1"));
    Activate(context.target(), activation->second, hidden.data(),
             hidden.size());
    found = Linear(hidden, c.input("w2"), c.input("b2"));
  }
  CompareToLargest({c.name(), "y"}, found, y, 1e-6, report);
  return true;
}

}  // namespace lanewise
