// Norms, activations and softmax against values computed in double by a
// reference implementation (tests/data/kernels).
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "simd/activation.h"
#include "simd/norm.h"
#include "simd/vector_ops.h"
#include "tests/simd/golden_topic.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

const float* DataOrNull(const GoldenArray* array) {
  return array == nullptr ? nullptr : array->values.data();
}

bool StartsWith(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0;
}

TEST(KernelGolden, Norms) {
  const GoldenTopic topic("norm");
  ASSERT_EQ(topic.cases().size(), 98u);
  ForEachTarget([&](const Target& target) {
    for (const auto& golden : topic.cases()) {
      const std::string name = golden["name"];
      SCOPED_TRACE(name);
      const GoldenArray* x = topic.Find(golden, "inputs", "x");
      const GoldenArray* y = topic.Find(golden, "outputs", "y");
      ASSERT_TRUE(x != nullptr && y != nullptr);
      const GoldenArray* weight = topic.Find(golden, "inputs", "weight");
      const GoldenArray* bias = topic.Find(golden, "inputs", "bias");
      const float eps = golden["params"]["eps"];
      std::vector<float> factors;
      if (weight != nullptr) factors = weight->values;
      if (StartsWith(name, "rms_norm_plus_one")) {
        for (float& factor : factors) factor += 1.0f;
      }
      std::vector<float> out(x->width);
      for (size_t r = 0; r < x->rows(); ++r) {
        const float* w = factors.empty() ? nullptr : factors.data();
        double magnitude = 0;  // of what is subtracted
        if (StartsWith(name, "layer_norm")) {
          LayerNorm(target, x->row(r), w, DataOrNull(bias), eps, x->width,
                    out.data());
          double mean = 0;
          for (size_t i = 0; i < x->width; ++i) mean += x->row(r)[i];
          mean /= static_cast<double>(x->width);
          double variance = 0;
          for (size_t i = 0; i < x->width; ++i) {
            variance += (x->row(r)[i] - mean) * (x->row(r)[i] - mean);
          }
          variance /= static_cast<double>(x->width);
          magnitude = std::abs(mean) / std::sqrt(variance + eps);
        } else {
          RmsNorm(target, x->row(r), w, eps, x->width, out.data());
        }
        // The mean is a float: its rounding, a few units of 2^-24, is scaled
        // like the row.
        for (size_t i = 0; i < x->width; ++i) {
          const double expected = y->row(r)[i];
          const double factor = w == nullptr ? 1.0 : std::abs(w[i]);
          ASSERT_NEAR(out[i], expected,
                      2e-6 * (1 + std::abs(expected)) +
                          factor * magnitude * 4 * 0x1p-24)
              << "row " << r << " column " << i;
        }
      }
    }
  });
}

TEST(KernelGolden, SoftmaxAndLogSoftmax) {
  const GoldenTopic topic("softmax");
  ASSERT_EQ(topic.cases().size(), 17u);
  ForEachTarget([&](const Target& target) {
    for (const auto& golden : topic.cases()) {
      SCOPED_TRACE(golden["name"].get<std::string>());
      const GoldenArray* x = topic.Find(golden, "inputs", "x");
      const GoldenArray* probabilities =
          topic.Find(golden, "outputs", "softmax");
      const GoldenArray* logs = topic.Find(golden, "outputs", "log_softmax");
      ASSERT_TRUE(x != nullptr && probabilities != nullptr && logs != nullptr);
      for (size_t r = 0; r < x->rows(); ++r) {
        const double sum = LogSumExp(target, x->row(r), x->width);
        std::vector<float> p(x->row(r), x->row(r) + x->width);
        Softmax(target, x->width, p.data());
        for (size_t i = 0; i < x->width; ++i) {
          // x − max is rounded to 2^-24 of at most 88 where p is not 0.
          const double expected = probabilities->row(r)[i];
          ASSERT_NEAR(p[i], expected, 6e-6 * expected + 1.2e-38)
              << "row " << r << " column " << i;
          const double log = logs->row(r)[i];
          if (std::isinf(log) || std::isinf(sum)) continue;
          // The sum is a double as large as the row's maximum.
          ASSERT_NEAR(x->row(r)[i] - sum, log,
                      1e-6 + std::abs(log) * 0x1p-24 + std::abs(sum) * 0x1p-52);
        }
      }
    }
  });
}

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

TEST(KernelGolden, Activations) {
  // No model that the library reads has these.
  const std::set<std::string> absent = {"erf", "exp", "softplus", "mish"};
  const GoldenTopic topic("ffn");
  ForEachTarget([&](const Target& target) {
    size_t checked = 0;
    for (const auto& golden : topic.cases()) {
      const std::string name = golden["name"];
      if (!StartsWith(name, "act_") || absent.count(name.substr(4)) != 0) {
        continue;
      }
      SCOPED_TRACE(name);
      const auto activation = ActivationNames().find(name.substr(4));
      ASSERT_NE(activation, ActivationNames().end());
      const GoldenArray* x = topic.Find(golden, "inputs", "x");
      const GoldenArray* y = topic.Find(golden, "outputs", "y");
      ASSERT_TRUE(x != nullptr && y != nullptr);
      std::vector<float> out = x->values;
      Activate(target, activation->second, out.data(), out.size());
      for (size_t i = 0; i < out.size(); ++i) {
        const double expected = y->values[i];
        ASSERT_NEAR(out[i], expected, 1e-7 + 5e-7 * std::abs(expected))
            << x->values[i];
      }
      ++checked;
    }
    EXPECT_EQ(checked, 9u);
  });
}

// x · wᵀ + b in double, rounded: [rows, w.rows()].
std::vector<float> Linear(const std::vector<float>& x, const GoldenArray& w,
                          const GoldenArray* b) {
  const size_t rows = x.size() / w.width;
  std::vector<float> y(rows * w.rows());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t n = 0; n < w.rows(); ++n) {
      double sum = b == nullptr ? 0.0 : b->values[n];
      for (size_t k = 0; k < w.width; ++k) {
        sum += static_cast<double>(x[r * w.width + k]) * w.row(n)[k];
      }
      y[r * w.rows() + n] = static_cast<float>(sum);
    }
  }
  return y;
}

// Only the activation between the products runs in the library here.
TEST(KernelGolden, FeedForwardBlocks) {
  const GoldenTopic topic("ffn");
  ASSERT_EQ(topic.cases().size(), 43u);
  ForEachTarget([&](const Target& target) {
    size_t checked = 0;
    for (const auto& golden : topic.cases()) {
      const std::string name = golden["name"];
      if (StartsWith(name, "act_")) continue;
      SCOPED_TRACE(name);
      const auto activation =
          ActivationNames().find(golden["params"]["act"].get<std::string>());
      ASSERT_NE(activation, ActivationNames().end());
      const GoldenArray* x = topic.Find(golden, "inputs", "x");
      const GoldenArray* y = topic.Find(golden, "outputs", "y");
      ASSERT_TRUE(x != nullptr && y != nullptr);
      std::vector<float> out;
      if (StartsWith(name, "gated_")) {
        const GoldenArray* wg = topic.Find(golden, "inputs", "wg");
        const GoldenArray* wu = topic.Find(golden, "inputs", "wu");
        const GoldenArray* wd = topic.Find(golden, "inputs", "wd");
        ASSERT_TRUE(wg != nullptr && wu != nullptr && wd != nullptr);
        std::vector<float> gate = Linear(x->values, *wg, nullptr);
        const std::vector<float> up = Linear(x->values, *wu, nullptr);
        ActivateGated(target, activation->second, gate.data(), up.data(),
                      gate.size(), gate.data());
        out = Linear(gate, *wd, nullptr);
      } else {
        const GoldenArray* w1 = topic.Find(golden, "inputs", "w1");
        const GoldenArray* w2 = topic.Find(golden, "inputs", "w2");
        ASSERT_TRUE(w1 != nullptr && w2 != nullptr);
        std::vector<float> hidden =
            Linear(x->values, *w1, topic.Find(golden, "inputs", "b1"));
        Activate(target, activation->second, hidden.data(), hidden.size());
        out = Linear(hidden, *w2, topic.Find(golden, "inputs", "b2"));
      }
      ASSERT_EQ(out.size(), y->values.size());
      double largest = 0;
      for (const float value : y->values) {
        largest = std::max<double>(largest, std::abs(value));
      }
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_NEAR(out[i], y->values[i], 1e-6 * largest);
      }
      ++checked;
    }
    EXPECT_EQ(checked, 30u);
  });
}

}  // namespace
}  // namespace lanewise
