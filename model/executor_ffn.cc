// Feed-forward sublayers of the forward pass: dense ones and mixtures of
// experts (Shazeer et al., arXiv:1701.06538; Jiang et al., arXiv:2401.04088).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "model/executor.h"
#include "model/limits.h"
#include "model/routing.h"
#include "simd/activation.h"
#include "simd/vector_ops.h"

namespace lanewise {
namespace {

// y[i] = fma(factor, x[i], y[i])
void AddScaled(float factor, const float* x, size_t n, float* y) {
  for (size_t i = 0; i < n; ++i) y[i] = std::fma(factor, x[i], y[i]);
}

}  // namespace

void Executor::Hidden(const FfnSpec& ffn, size_t width,
                      const Projection& projection, const RowView& in) {
  const size_t stride = ffn.gated ? 2 * width : width;
  Project(projection, in, hidden_.get(), stride, false);
  // A gated row shrinks in place: its result goes over its own gate half, and
  // the next projection reads with the stride of the wide rows.
  ForRows(in.rows, [&](size_t row) {
    float* gate = hidden_.get() + row * stride;
    if (!ffn.gated) {
      Activate(context_.target(), ffn.activation, gate, width);
      return;
    }
    float* up = gate + width;
    if (ffn.gate_limit > 0.0f) {
      for (size_t i = 0; i < width; ++i) {
        gate[i] = std::min(gate[i], ffn.gate_limit);
        up[i] = std::clamp(up[i], -ffn.gate_limit, ffn.gate_limit);
      }
    }
    if (ffn.up_offset != 0.0f) {
      for (size_t i = 0; i < width; ++i) up[i] += ffn.up_offset;
    }
    ActivateGated(context_.target(), ffn.activation, gate, up, width, gate);
  });
}

void Executor::RunFfn(size_t layer, const float* input) {
  const FfnSpec& ffn = model_.spec().layers[layer].ffn;
  const size_t width = model_.spec().width;
  if (ffn.moe.has_value()) return RunMoe(layer, input);
  Hidden(ffn, ffn.width, model_.layer_weights(layer).ffn.in,
         {input, width, rows_, width});
}

// Fills routes_: which rows go to which expert, with what weight.
void Executor::Route(size_t layer, const float* input) {
  const MoeSpec& moe = *model_.spec().layers[layer].ffn.moe;
  const size_t width = model_.spec().width;
  Project(model_.layer_weights(layer).moe.router, {input, width, rows_, width},
          router_.get(), moe.experts, false);
  for (std::vector<Routed>& route : routes_) route.clear();
  for (size_t row = 0; row < rows_; ++row) {
    IndexedValue routes[kMaxExpertsPerToken];
    RouteRow(context_.target(), moe, router_.get() + row * moe.experts, routes);
    for (size_t i = 0; i < moe.top_k; ++i) {
      routes_[static_cast<size_t>(routes[i].index)].push_back(
          {row, routes[i].value});
    }
  }
}

void Executor::MixIn(const FfnSpec& ffn, size_t width,
                     const FfnWeights& weights, const float* input,
                     absl::Span<const Routed> routed) {
  if (routed.empty()) return;
  const size_t model_width = model_.spec().width;
  for (size_t i = 0; i < routed.size(); ++i) {
    std::memcpy(expert_in_.get() + i * model_width,
                input + routed[i].row * model_width,
                model_width * sizeof(float));
  }
  Hidden(ffn, width, weights.in,
         {expert_in_.get(), model_width, routed.size(), model_width});
  Project(weights.out, {hidden_.get(), weights.in.rows(), routed.size(), width},
          expert_out_.get(), model_width, false);
  ForRows(routed.size(), [&](size_t i) {
    AddScaled(routed[i].weight, expert_out_.get() + i * model_width,
              model_width, mixed_.get() + routed[i].row * model_width);
  });
}

void Executor::RunMoe(size_t layer, const float* input) {
  const FfnSpec& ffn = model_.spec().layers[layer].ffn;
  const MoeWeights& weights = model_.layer_weights(layer).moe;
  const size_t width = model_.spec().width;
  Route(layer, input);
  std::memset(mixed_.get(), 0, rows_ * width * sizeof(float));
  for (size_t expert = 0; expert < weights.experts.size(); ++expert) {
    MixIn(ffn, ffn.width, weights.experts[expert], input, routes_[expert]);
  }
  if (!ffn.moe->shared.has_value()) return;
  std::fill_n(router_.get(), rows_, 1.0f);
  if (ffn.moe->shared->gate) {
    Project(weights.shared_weight, {input, width, rows_, width}, router_.get(),
            1, false);
    Activate(context_.target(), Activation::kSigmoid, router_.get(), rows_);
  }
  shared_routes_.clear();
  for (size_t row = 0; row < rows_; ++row) {
    shared_routes_.push_back({row, router_[row]});
  }
  MixIn(ffn, ffn.moe->shared->width, weights.shared, input, shared_routes_);
}

}  // namespace lanewise
