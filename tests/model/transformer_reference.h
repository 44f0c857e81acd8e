// torch.nn.Transformer in scalar code and double, as the formulas of the paper
// say (Vaswani et al., arXiv:1706.03762), with the tensors' names of
// model/families/vanilla.cc.
#ifndef LANEWISE_TESTS_MODEL_TRANSFORMER_REFERENCE_H_
#define LANEWISE_TESTS_MODEL_TRANSFORMER_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/format/checkpoint.h"

namespace lanewise {

class TransformerReference {
 public:
  using Row = std::vector<double>;
  using Rows = std::vector<Row>;

  struct Shape {
    size_t width = 0, heads = 0, layers = 0;  // layers of a stack
    bool norm_first = false;
  };

  TransformerReference(const Shape& shape,
                       absl::Span<const NamedTensor> tensors)
      : shape_(shape) {
    for (const NamedTensor& tensor : tensors) tensors_[tensor.name] = &tensor;
  }

  // embedding(id) · sqrt(width) + sinusoids
  Rows Embed(const std::string& table, const std::vector<int32_t>& ids) const {
    Rows rows;
    for (const int32_t id : ids) {
      Row row;
      for (size_t i = 0; i < shape_.width; ++i) {
        row.push_back(At(table, id, i) *
                      std::sqrt(static_cast<double>(shape_.width)));
      }
      rows.push_back(row);
    }
    AddSinusoids(&rows);
    return rows;
  }

  void AddSinusoids(Rows* rows) const {
    for (size_t position = 0; position < rows->size(); ++position) {
      for (size_t i = 0; i < shape_.width; ++i) {
        const double angle =
            static_cast<double>(position) /
            std::pow(10000.0, static_cast<double>(i / 2 * 2) /
                                  static_cast<double>(shape_.width));
        (*rows)[position][i] += i % 2 == 0 ? std::sin(angle) : std::cos(angle);
      }
    }
  }

  Rows Encode(Rows x) const {
    for (size_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string name =
          "transformer.encoder.layers." + std::to_string(layer) + ".";
      x = Sublayer(x, name + "norm1", [&](const Rows& in) {
        return Attention(in, in, name + "self_attn", /*causal=*/false);
      });
      x = Sublayer(x, name + "norm2",
                   [&](const Rows& in) { return FeedForward(in, name); });
    }
    return Norm(x, "transformer.encoder.norm");
  }

  Rows Decode(Rows x, const Rows& memory) const {
    for (size_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string name =
          "transformer.decoder.layers." + std::to_string(layer) + ".";
      x = Sublayer(x, name + "norm1", [&](const Rows& in) {
        return Attention(in, in, name + "self_attn", /*causal=*/true);
      });
      x = Sublayer(x, name + "norm2", [&](const Rows& in) {
        return Attention(in, memory, name + "multihead_attn",
                         /*causal=*/false);
      });
      x = Sublayer(x, name + "norm3",
                   [&](const Rows& in) { return FeedForward(in, name); });
    }
    return Linear(Norm(x, "transformer.decoder.norm"), "generator.weight",
                  "generator.bias", 0);
  }

 private:
  double At(const std::string& name, size_t row, size_t col) const {
    const NamedTensor& tensor = *tensors_.at(name);
    return tensor.values[row * tensor.shape.back() + col];
  }

  template <class Function>
  Rows Sublayer(const Rows& x, const std::string& norm,
                Function function) const {
    Rows out = function(shape_.norm_first ? Norm(x, norm) : x);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[i].size(); ++j) out[i][j] += x[i][j];
    }
    return shape_.norm_first ? out : Norm(out, norm);
  }

  Rows Norm(Rows x, const std::string& name) const {
    const double n = static_cast<double>(shape_.width);
    for (Row& row : x) {
      double mean = 0, squares = 0;
      for (const double value : row) mean += value / n;
      for (const double value : row) squares += (value - mean) * (value - mean);
      const double scale = 1.0 / std::sqrt(squares / n + 1e-5);
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] =
            (row[i] - mean) * scale * tensors_.at(name + ".weight")->values[i] +
            tensors_.at(name + ".bias")->values[i];
      }
    }
    return x;
  }

  // Rows from `first` of the weights on: all, or the `rows` that are given.
  Rows Linear(const Rows& x, const std::string& weight, const std::string& bias,
              size_t first, size_t rows = 0) const {
    if (rows == 0) rows = tensors_.at(weight)->shape[0];
    Rows out;
    for (const Row& in : x) {
      Row sums;
      for (size_t row = first; row < first + rows; ++row) {
        double sum = tensors_.at(bias)->values[row];
        for (size_t i = 0; i < in.size(); ++i)
          sum += At(weight, row, i) * in[i];
        sums.push_back(sum);
      }
      out.push_back(sums);
    }
    return out;
  }

  Rows FeedForward(const Rows& x, const std::string& layer) const {
    Rows hidden =
        Linear(x, layer + "linear1.weight", layer + "linear1.bias", 0);
    for (Row& row : hidden) {
      for (double& value : row) value = std::max(value, 0.0);
    }
    return Linear(hidden, layer + "linear2.weight", layer + "linear2.bias", 0);
  }

  Rows Attention(const Rows& x, const Rows& memory, const std::string& name,
                 bool causal) const {
    const size_t width = shape_.width;
    const std::string weight = name + ".in_proj_weight";
    const std::string bias = name + ".in_proj_bias";
    const Rows q = Linear(x, weight, bias, 0, width);
    const Rows k = Linear(memory, weight, bias, width, width);
    const Rows v = Linear(memory, weight, bias, 2 * width, width);
    const size_t head_dim = width / shape_.heads;
    Rows attended(x.size(), Row(width, 0.0));
    for (size_t i = 0; i < x.size(); ++i) {
      const size_t keys = causal ? i + 1 : memory.size();
      for (size_t first = 0; first < width; first += head_dim) {
        Row weights;
        double sum = 0;
        for (size_t j = 0; j < keys; ++j) {
          double dot = 0;
          for (size_t c = first; c < first + head_dim; ++c) {
            dot += q[i][c] * k[j][c];
          }
          weights.push_back(
              std::exp(dot / std::sqrt(static_cast<double>(head_dim))));
          sum += weights.back();
        }
        for (size_t j = 0; j < keys; ++j) {
          for (size_t c = first; c < first + head_dim; ++c) {
            attended[i][c] += weights[j] / sum * v[j][c];
          }
        }
      }
    }
    return Linear(attended, name + ".out_proj.weight", name + ".out_proj.bias",
                  0);
  }

  const Shape shape_;
  std::map<std::string, const NamedTensor*> tensors_;
};

}  // namespace lanewise

#endif  // LANEWISE_TESTS_MODEL_TRANSFORMER_REFERENCE_H_
