// The definitions of the choice of experts and of their weighted sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "kernels/reference/reference_backend.h"

namespace paceline {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

std::vector<double> scores_of(const float* logits, const RoutingParams& params) {
  std::vector<double> scores(logits, logits + params.num_experts);
  if (params.score == ExpertScore::sigmoid) {
    for (double& score : scores) score = sigmoid(score);
    return scores;
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  for (double& score : scores) score = std::exp(score - max);
  const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
  for (double& score : scores) score /= sum;
  return scores;
}

// The indices of the `count` highest values, the lower index first among equal ones.
std::vector<int64_t> highest(const std::vector<double>& values, int64_t count) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(count));
  return order;
}

// Lowers the values of all experts outside the best groups to -infinity.
void keep_groups(std::vector<double>& values, const RoutingParams& params) {
  const int64_t size = params.num_experts / params.num_groups;
  std::vector<double> sums;
  for (int64_t group = 0; group < params.num_groups; ++group) {
    std::vector<double> members(values.begin() + group * size, values.begin() + (group + 1) * size);
    std::sort(members.rbegin(), members.rend());
    sums.push_back(members[0] + (size > 1 && !params.groups_by_highest ? members[1] : 0.0));
  }
  const std::vector<int64_t> kept = highest(sums, params.groups_kept);
  for (int64_t i = 0; i < params.num_experts; ++i) {
    if (std::find(kept.begin(), kept.end(), i / size) != kept.end()) continue;
    values[static_cast<size_t>(i)] = -std::numeric_limits<double>::infinity();
  }
}

std::vector<int64_t> choose(const std::vector<double>& scores, const RoutingParams& params,
                            const Tensor* choice_bias) {
  std::vector<double> values = scores;
  for (size_t i = 0; choice_bias != nullptr && i < values.size(); ++i) {
    values[i] += double{choice_bias->elements<float>()[i]};
  }
  if (params.num_groups > 1) keep_groups(values, params);
  std::vector<int64_t> chosen = highest(values, params.experts_per_token);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void write_shared(const float* logits, const RoutingParams& params, const ChosenRow& out) {
  if (params.shared == SharedExpert::none) return;
  const bool is_gated = params.shared == SharedExpert::gated;
  out.experts[params.experts_per_token] = static_cast<int32_t>(params.num_experts);
  out.weights[params.experts_per_token] =
      is_gated ? static_cast<float>(sigmoid(double{logits[params.num_experts]})) : 1.0f;
}

void mix_sparsely(const float* logits, const RoutingParams& params, const ChosenRow& out) {
  std::vector<int64_t> left(static_cast<size_t>(params.num_experts));
  std::iota(left.begin(), left.end(), int64_t{0});
  std::map<int64_t, double> weights;
  for (int64_t slot = 0; slot < params.experts_per_token; ++slot) {
    const auto best = std::max_element(left.begin(), left.end(),
                                       [&](int64_t a, int64_t b) { return logits[a] < logits[b]; });
    const float highest = logits[*best];
    double sum = 0.0;
    for (const int64_t i : left) {
      const float share = (highest - logits[i]) / std::max(std::abs(logits[i]), highest);
      if (!(share > 2.0f * params.jitter)) sum += std::exp(double{logits[i]} - double{highest});
    }
    weights[*best] = double{params.scale} / sum;
    left.erase(best);
  }
  size_t slot = 0;
  for (const auto& [expert, weight] : weights) {
    out.experts[slot] = static_cast<int32_t>(expert);
    out.weights[slot++] = static_cast<float>(weight);
  }
}

void route_row(const float* logits, const RoutingParams& params, const Tensor* choice_bias,
               const ChosenRow& out) {
  if (params.score == ExpertScore::sparse_mixer) return mix_sparsely(logits, params, out);
  const std::vector<double> scores = scores_of(logits, params);
  const std::vector<int64_t> chosen = choose(scores, params, choice_bias);
  // transformers adds it to sums of sigmoids, which may be 0.
  double sum = params.score == ExpertScore::sigmoid ? 1e-20 : 0.0;
  for (const int64_t expert : chosen) sum += scores[static_cast<size_t>(expert)];
  for (size_t slot = 0; slot < chosen.size(); ++slot) {
    const double score = scores[static_cast<size_t>(chosen[slot])];
    out.experts[slot] = static_cast<int32_t>(chosen[slot]);
    out.weights[slot] =
        static_cast<float>((params.normalise ? score / sum : score) * double{params.scale});
  }
  write_shared(logits, params, out);
}

}  // namespace

void ReferenceBackend::do_route(const Tensor& logits, const RoutingParams& params,
                                const Tensor* choice_bias, const Routing& out) {
  for (int64_t r = 0; r < logits.size(0); ++r) {
    const float* const row = logits.row<float>(r);
    const ChosenRow chosen = out.row(r);
    if (std::all_of(row, row + params.num_logits(), [](float x) { return std::isfinite(x); })) {
      route_row(row, params, choice_bias, chosen);
    } else {
      spoil_row(params, chosen);
    }
  }
}

HostRouting ReferenceBackend::do_read_routing(const Routing& routing) {
  return copy_routing(routing);
}

void ReferenceBackend::do_mix_experts(std::span<const GatedMlpWeights> experts,
                                      const Routing& routing, const Tensor& x, const Tensor& out) {
  const int64_t n = out.size(1);
  std::vector<float> product(static_cast<size_t>(n));
  std::vector<float> sums(static_cast<size_t>(n));
  for (int64_t r = 0; r < x.size(0); ++r) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int64_t slot = 0; slot < routing.num_slots(); ++slot) {
      const int32_t expert = routing.experts.row<int32_t>(r)[slot];
      PL_CHECK(expert >= 0 && expert < std::ssize(experts), "mix_experts: no such expert");
      do_gated_mlp(experts[static_cast<size_t>(expert)], x.slice(0, r, r + 1),
                   Tensor(product.data(), DType::f32, {1, n}));
      const float weight = routing.weights.row<float>(r)[slot];
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = std::fma(weight, product[i], sums[i]);
    }
    std::copy(sums.begin(), sums.end(), out.row<float>(r));
  }
}

}  // namespace paceline
