// Attention over a paged cache: heads of their own or behind projections.
#include "simd/attention.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/kernels/kernel_checks.h"
#include "tests/simd/attention_cache.h"

namespace lanewise {
namespace {

// The bias [1, heads, rows, keys] of a case, and −inf where key_mask [batch,
// keys] is 0.
class GoldenBias : public ScoreBias {
 public:
  GoldenBias(const KernelArray& bias, const KernelArray& mask, size_t keys)
      : bias_(bias), mask_(mask), keys_(keys) {}
  bool needed() const { return !bias_.empty() || !mask_.empty(); }
  void Fill(size_t sequence, size_t head, size_t row, size_t first_key,
            float* bias) const override {
    for (size_t j = 0; j < kKeysPerPage; ++j) {
      const size_t key = first_key + j;
      bias[j] = 0.0f;
      if (key >= keys_) continue;
      if (!bias_.empty()) {
        bias[j] = bias_.values[(head * bias_.shape[2] + row) * keys_ + key];
      }
      if (!mask_.empty() && mask_.values[sequence * keys_ + key] == 0) {
        bias[j] = -std::numeric_limits<float>::infinity();
      }
    }
  }

 private:
  const KernelArray& bias_;
  const KernelArray& mask_;
  size_t keys_;
};

// y = x Wᵀ + b for rows of x, W [outputs, inputs].
std::vector<float> Project(const std::vector<float>& x, const KernelArray& w,
                           const KernelArray& b) {
  const size_t outputs = w.rows(), inputs = w.width;
  std::vector<float> y;
  for (size_t row = 0; row < x.size() / inputs; ++row) {
    for (size_t o = 0; o < outputs; ++o) {
      double sum = b.empty() ? 0.0 : b.values[o];
      for (size_t i = 0; i < inputs; ++i) {
        sum += static_cast<double>(x[row * inputs + i]) * w.row(o)[i];
      }
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

// One case, ready for the kernel: rows before heads.
struct Inputs {
  size_t batch, rows, keys, heads, kv_heads, qk_dim, v_dim;
  std::vector<float> q, k, v, y;
};

// [batch, heads, rows, dim] to [batch, rows, heads, dim].
std::vector<float> RowsFirst(const KernelArray& x) {
  std::vector<float> result;
  const auto& s = x.shape;
  for (size_t b = 0; b < s[0]; ++b) {
    for (size_t r = 0; r < s[2]; ++r) {
      for (size_t h = 0; h < s[1]; ++h) {
        const float* from =
            x.values.data() + ((b * s[1] + h) * s[2] + r) * s[3];
        result.insert(result.end(), from, from + s[3]);
      }
    }
  }
  return result;
}

Inputs ReadInputs(const KernelCase& c) {
  const KernelArray& y = c.output("y");
  if (c.has("q")) {
    const KernelArray &q = c.input("q"), &k = c.input("k"), &v = c.input("v");
    return {q.shape[0],   q.shape[2],   k.shape[2],  q.shape[1],
            k.shape[1],   q.shape[3],   v.shape[3],  RowsFirst(q),
            RowsFirst(k), RowsFirst(v), RowsFirst(y)};
  }
  const KernelArray &x = c.input("x"), &wq = c.input("wq");
  const KernelArray& memory = c.has("memory") ? c.input("memory") : x;
  const size_t heads = c.count("heads", 1);
  const size_t dim = wq.shape[0] / heads;
  return {x.shape[0],
          x.shape[1],
          memory.shape[1],
          heads,
          heads,
          dim,
          dim,
          Project(x.values, wq, c.input("bq")),
          Project(memory.values, c.input("wk"), c.input("bk")),
          Project(memory.values, c.input("wv"), c.input("bv")),
          y.values};
}

// All sequences of the batch in one call; output [batch, rows, heads, v_dim].
std::vector<float> Run(const Context& context, const Inputs& c,
                       const AttentionParams& params) {
  std::vector<float> out(c.batch * c.rows * c.heads * c.v_dim);
  std::vector<TestCache> caches;
  std::vector<AttentionSequence> sequences;
  const size_t q_row = c.heads * c.qk_dim, out_row = c.heads * c.v_dim;
  const size_t k_row = c.kv_heads * c.qk_dim, v_row = c.kv_heads * c.v_dim;
  for (size_t b = 0; b < c.batch; ++b) {
    caches.emplace_back(params.kv, c.keys);
    StoreKv(context, params.kv, caches.back().view(), 0, c.keys,
            c.k.data() + b * c.keys * k_row, k_row,
            c.v.data() + b * c.keys * v_row, v_row);
    sequences.push_back({c.q.data() + b * c.rows * q_row, q_row,
                         out.data() + b * c.rows * out_row, out_row, c.rows,
                         c.keys >= c.rows ? c.keys - c.rows : 0, c.keys,
                         caches.back().view()});
  }
  RunSequences(context, params, sequences);
  return out;
}

// Every axis that ReadInputs goes by.
bool HasShapes(const KernelCase& c) {
  if (!c.has("q")) return c.input("x").shape.size() == 3 && c.has("wq");
  for (const char* field : {"q", "k", "v"}) {
    if (c.input(field).shape.size() != 4) return false;
  }
  return c.output("y").shape.size() == 4;
}

}  // namespace

bool CheckAttention(const KernelCase& c, const Context& context,
                    CaseReport* report) {
  if (!HasShapes(c)) {
    AddExact({c.name(), "y"}, "arrays of other shapes", report);
    return true;
  }
  const Inputs inputs = ReadInputs(c);
  const KernelArray& sinks = c.input("sink");
  const GoldenBias bias(c.input("bias"), c.input("key_mask"), inputs.keys);
  AttentionParams params = {};
  params.heads = inputs.heads;
  params.kv = {inputs.kv_heads, inputs.qk_dim, inputs.v_dim, CacheType::kF32};
  params.scale = static_cast<float>(
      c.number("scale", 1.0f / std::sqrt(static_cast<float>(inputs.qk_dim))));
  params.causal = c.flag("causal");
  params.window = c.count("window");
  params.softcap = static_cast<float>(c.number("softcap"));
  params.sinks = sinks.empty() ? nullptr : sinks.values.data();
  params.bias = bias.needed() ? &bias : nullptr;
  std::vector<float> found = Run(context, inputs, params);
  if (c.has("wo")) found = Project(found, c.input("wo"), c.input("bo"));
  CompareToLargest({c.name(), "y"}, found, inputs.y, 1e-5, report);
  return true;
}

}  // namespace lanewise
