// Attention against recorded values that were computed in double precision.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "model/format/safetensors.h"
#include "nlohmann/json.hpp"
#include "simd/attention.h"
#include "tests/simd/attention_reference.h"
#include "tests/simd/kernel_test.h"

namespace lanewise {
namespace {

constexpr char kFolder[] = "tests/data/kernels/";

template <class T>
struct Array {
  std::vector<size_t> shape;
  std::vector<T> values;
};

// Elements of 4 bytes each: f32 or i32.
template <class T>
Array<T> ReadArray(const SafetensorsFile& file, const nlohmann::json& fields,
                   const char* field) {
  Array<T> result;
  if (!fields.contains(field)) return result;
  const Tensor* tensor = file.Find(fields[field].get<std::string>());
  if (tensor == nullptr) {
    ADD_FAILURE() << "no tensor for " << field;
    return result;
  }
  result.shape.assign(tensor->shape.begin(), tensor->shape.end());
  result.values.resize(tensor->data.size() / sizeof(T));
  std::memcpy(result.values.data(), tensor->data.data(), tensor->data.size());
  return result;
}

// The bias [1, heads, rows, keys] of a case, and −inf where key_mask [batch,
// keys] is 0.
class GoldenBias : public ScoreBias {
 public:
  GoldenBias(Array<float> bias, Array<int32_t> mask, size_t keys)
      : bias_(std::move(bias)), mask_(std::move(mask)), keys_(keys) {}
  bool needed() const { return !bias_.values.empty() || !mask_.values.empty(); }
  void Fill(size_t sequence, size_t head, size_t row, size_t first_key,
            float* bias) const override {
    for (size_t j = 0; j < kKeysPerPage; ++j) {
      const size_t key = first_key + j;
      bias[j] = 0.0f;
      if (key >= keys_) continue;
      if (!bias_.values.empty()) {
        bias[j] = bias_.values[(head * bias_.shape[2] + row) * keys_ + key];
      }
      if (!mask_.values.empty() && mask_.values[sequence * keys_ + key] == 0) {
        bias[j] = -std::numeric_limits<float>::infinity();
      }
    }
  }

 private:
  Array<float> bias_;
  Array<int32_t> mask_;
  size_t keys_;
};

// y = x Wᵀ + b for rows of x, W [outputs, inputs].
std::vector<float> Project(const Array<float>& x, const Array<float>& w,
                           const Array<float>& b) {
  const size_t outputs = w.shape[0], inputs = w.shape[1];
  std::vector<float> y;
  for (size_t row = 0; row < x.values.size() / inputs; ++row) {
    for (size_t o = 0; o < outputs; ++o) {
      double sum = b.values.empty() ? 0.0 : b.values[o];
      for (size_t i = 0; i < inputs; ++i) {
        sum += static_cast<double>(x.values[row * inputs + i]) *
               w.values[o * inputs + i];
      }
      y.push_back(static_cast<float>(sum));
    }
  }
  return y;
}

// One case, ready for the kernel: rows before heads.
struct GoldenCase {
  size_t batch, rows, keys, heads, kv_heads, qk_dim, v_dim;
  std::vector<float> q, k, v, y;
};

// [batch, heads, rows, dim] to [batch, rows, heads, dim].
std::vector<float> RowsFirst(const Array<float>& x) {
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

GoldenCase ReadCase(const SafetensorsFile& file, const nlohmann::json& json) {
  const nlohmann::json& in = json["inputs"];
  const auto array = [&](const char* field) {
    return ReadArray<float>(file, in, field);
  };
  const Array<float> y = ReadArray<float>(file, json["outputs"], "y");
  GoldenCase c;
  if (in.contains("q")) {
    const Array<float> q = array("q"), k = array("k"), v = array("v");
    c = {q.shape[0],   q.shape[2],   k.shape[2],  q.shape[1],
         k.shape[1],   q.shape[3],   v.shape[3],  RowsFirst(q),
         RowsFirst(k), RowsFirst(v), RowsFirst(y)};
  } else {
    const Array<float> x = array("x"), wq = array("wq");
    const Array<float> memory = in.contains("memory") ? array("memory") : x;
    const size_t heads = json["params"].value("heads", size_t{1});
    const size_t dim = wq.shape[0] / heads;
    c = {x.shape[0],
         x.shape[1],
         memory.shape[1],
         heads,
         heads,
         dim,
         dim,
         Project(x, wq, array("bq")),
         Project(memory, array("wk"), array("bk")),
         Project(memory, array("wv"), array("bv")),
         y.values};
  }
  return c;
}

// All sequences of the batch in one call; output [batch, rows, heads, v_dim].
std::vector<float> Run(const Context& context, const GoldenCase& c,
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

void ExpectGolden(const SafetensorsFile& file, const nlohmann::json& json,
                  const Target& target) {
  const GoldenCase c = ReadCase(file, json);
  const nlohmann::json& in = json["inputs"];
  const nlohmann::json& options = json["params"];
  const Array<float> sinks = ReadArray<float>(file, in, "sink");
  const GoldenBias bias(ReadArray<float>(file, in, "bias"),
                        ReadArray<int32_t>(file, in, "key_mask"), c.keys);
  AttentionParams params = {};
  params.heads = c.heads;
  params.kv = {c.kv_heads, c.qk_dim, c.v_dim, CacheType::kF32};
  params.scale =
      options.value("scale", 1.0f / std::sqrt(static_cast<float>(c.qk_dim)));
  params.causal = options.value("causal", false);
  params.window = options.value("window", size_t{0});
  params.softcap = options.value("softcap", 0.0f);
  params.sinks = sinks.values.empty() ? nullptr : sinks.values.data();
  params.bias = bias.needed() ? &bias : nullptr;
  std::vector<float> found = Run(*MakeContext(target), c, params);
  if (in.contains("wo")) {
    const Array<float> heads = {{}, found};
    found = Project(heads, ReadArray<float>(file, in, "wo"),
                    ReadArray<float>(file, in, "bo"));
  }
  float largest = 0.0f;
  for (const float value : c.y) largest = std::max(largest, std::fabs(value));
  ASSERT_EQ(found.size(), c.y.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], c.y[i], 1e-5f * largest) << "element " << i;
  }
}

TEST(AttentionGolden, AllCases) {
  std::ifstream stream(std::string(kFolder) + "attention.json");
  const nlohmann::json json = nlohmann::json::parse(stream, nullptr, false);
  ASSERT_TRUE(json.is_object());
  const auto file =
      SafetensorsFile::Open(std::string(kFolder) + "attention.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(json["cases"].size(), 72u);
  ForEachTarget([&](const Target& target) {
    for (const nlohmann::json& one : json["cases"]) {
      SCOPED_TRACE(one["name"].get<std::string>());
      ExpectGolden(*file, one, target);
    }
  });
}

}  // namespace
}  // namespace lanewise
