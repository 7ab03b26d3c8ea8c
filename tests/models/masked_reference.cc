#include "tests/models/masked_reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "base/json.h"
#include "base/mapped_file.h"
#include "models/family.h"

namespace paceline::testing {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double activate(Activation kind, double x) {
  switch (kind) {
    case Activation::silu:
      return x / (1.0 + std::exp(-x));
    case Activation::gelu_erf:
      return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
    case Activation::clamped_swiglu:
      return std::min(x, 7.0) / (1.0 + std::exp(-1.702 * std::min(x, 7.0)));
    case Activation::relu:
      return std::max(x, 0.0);
    case Activation::sigmoid:
      return 1.0 / (1.0 + std::exp(-x));
    case Activation::gelu_tanh:
      break;
  }
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

// The share of pair i's frequency that YaRN keeps: it falls between the pairs that make beta_fast
// and beta_slow turns over the original context, which needn't be whole ones here.
double yarn_share(int64_t i, int64_t rotary_dim, const RopeConfig& rope) {
  const auto pair_of = [&](double turns) {
    return static_cast<double>(rotary_dim) / 2.0 / std::log(rope.theta) *
           std::log(rope.original_max_position / (2.0 * std::numbers::pi * turns));
  };
  const double first = std::max(0.0, pair_of(rope.beta_fast));
  const double last = std::min(static_cast<double>(rotary_dim - 1), pair_of(rope.beta_slow));
  return 1.0 - std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
}

// The frequency of pair i with the config's scaling (linear, llama3 and yarn, the only ones of the
// goldens).
double inverse_frequency(int64_t i, int64_t rotary_dim, const RopeConfig& rope) {
  const double plain =
      1.0 / std::pow(rope.theta, static_cast<double>(2 * i) / static_cast<double>(rotary_dim));
  if (rope.scaling == RopeScaling::none) return plain;
  if (rope.scaling == RopeScaling::linear) return plain / rope.factor;
  if (rope.scaling == RopeScaling::yarn) {
    const double share = yarn_share(i, rotary_dim, rope);
    return plain * (share + (1.0 - share) / rope.factor);
  }
  const double turns = rope.original_max_position * plain / (2.0 * std::numbers::pi);
  const double blend = std::clamp(
      (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0);
  return plain * (blend + (1.0 - blend) / rope.factor);
}

std::string in_layer(int64_t layer, const std::string& name) {
  return "layers." + std::to_string(layer) + "." + name;
}

Json config_json(const std::filesystem::path& directory) {
  return parse_json(read_text_file(directory / "config.json", 1 << 20), "config.json");
}

}  // namespace

MaskedReference::MaskedReference(const std::filesystem::path& directory)
    : weights_(directory, config_json(directory), memory_, threads_),
      reader_(std::make_unique<WeightReader>(weights_.top())),
      config_(read_decoder_config(config_json(directory), *reader_, "config.json")) {}

bool MaskedReference::has(const std::string& name) const { return reader_->contains(name); }

const MaskedReference::Row& MaskedReference::weights(const std::string& name,
                                                     std::initializer_list<int64_t> shape) const {
  const auto found = cache_.find(name);
  if (found != cache_.end()) return found->second;
  const Tensor stored = reader_->read(name, Extents(shape));
  std::vector<float> elements(static_cast<size_t>(stored.num_elements()));
  copy_elements(stored, Tensor(elements.data(), DType::f32, stored.shape()));
  return cache_[name] = Row(elements.begin(), elements.end());
}

MaskedReference::Row MaskedReference::norm(const Row& x, const std::string& name) const {
  const Row& weight = weights(name + ".weight", {static_cast<int64_t>(x.size())});
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) +
                                       static_cast<double>(config_.norm_eps));
  Row out(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] * scale * (weight[i] + static_cast<double>(config_.norm_weight_offset));
  }
  return out;
}

MaskedReference::Row MaskedReference::linear(const Row& x, const std::string& name,
                                             int64_t out_features) const {
  const auto in_features = static_cast<int64_t>(x.size());
  const Row& weight = weights(name + ".weight", {out_features, in_features});
  Row out(static_cast<size_t>(out_features), 0.0);
  if (has(name + ".bias")) out = weights(name + ".bias", {out_features});
  const double* inputs = x.data();
  const double* row = weight.data();
  for (double& sum : out) {
    for (int64_t i = 0; i < in_features; ++i) sum += row[i] * inputs[i];
    row += in_features;
  }
  return out;
}

void MaskedReference::norm_heads(Row& heads, const std::string& name) const {
  const auto head_dim = static_cast<std::ptrdiff_t>(config_.head_dim);
  for (auto head = heads.begin(); head != heads.end(); head += head_dim) {
    const Row normed = norm(Row(head, head + head_dim), name);
    std::ranges::copy(normed, head);
  }
}

void MaskedReference::rotate(Row& heads, int64_t position, const RopeConfig& rope) const {
  const auto half = static_cast<size_t>(config_.rotary_dim / 2);
  const auto head_dim = static_cast<size_t>(config_.head_dim);
  for (size_t head = 0; head < heads.size(); head += head_dim) {
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) *
                           inverse_frequency(static_cast<int64_t>(i), config_.rotary_dim, rope);
      const double first = heads[head + i], second = heads[head + i + half];
      const double cosine = rope.attention_factor * std::cos(angle);
      const double sine = rope.attention_factor * std::sin(angle);
      heads[head + i] = first * cosine - second * sine;
      heads[head + i + half] = second * cosine + first * sine;
    }
  }
}

MaskedReference::Mask MaskedReference::mask_of(int64_t padded_length, int64_t length,
                                               int64_t window) const {
  Mask mask(static_cast<size_t>(padded_length), Row(static_cast<size_t>(padded_length), kNever));
  for (int64_t q = 0; q < padded_length; ++q) {
    for (int64_t k = 0; k <= q && k < length; ++k) {
      const bool in_window = window == 0 || k > q - window;
      if (in_window) mask[static_cast<size_t>(q)][static_cast<size_t>(k)] = 0.0;
    }
  }
  return mask;
}

MaskedReference::Rows MaskedReference::attention(const Rows& x, int64_t layer,
                                                 const Mask& mask) const {
  const std::string name = in_layer(layer, "self_attn");
  const RopeConfig& rope =
      config_.ropes[static_cast<size_t>(config_.layers[static_cast<size_t>(layer)].rope_index)];
  Rows q, k, v;
  for (size_t t = 0; t < x.size(); ++t) {
    q.push_back(linear(x[t], name + ".q_proj", config_.num_heads * config_.head_dim));
    k.push_back(linear(x[t], name + ".k_proj", config_.num_kv_heads * config_.head_dim));
    v.push_back(linear(x[t], name + ".v_proj", config_.num_kv_heads * config_.head_dim));
    if (config_.qk_norm == QkNorm::head) {
      norm_heads(q[t], name + ".q_norm");
      norm_heads(k[t], name + ".k_norm");
    } else if (config_.qk_norm == QkNorm::width) {
      q[t] = norm(q[t], name + ".q_norm");
      k[t] = norm(k[t], name + ".k_norm");
    }
    rotate(q[t], static_cast<int64_t>(t), rope);
    rotate(k[t], static_cast<int64_t>(t), rope);
  }
  Rows out;
  for (size_t t = 0; t < x.size(); ++t) {
    const Row sinks =
        config_.attention_sinks ? weights(name + ".sinks", {config_.num_heads}) : Row();
    out.push_back(
        linear(attend(q[t], k, v, mask[t], sinks), name + ".o_proj", config_.hidden_size));
  }
  return out;
}

MaskedReference::Row MaskedReference::attend(const Row& query, const Rows& keys, const Rows& values,
                                             const Row& mask, const Row& sinks) const {
  const auto head_dim = static_cast<size_t>(config_.head_dim);
  const auto cap = static_cast<double>(config_.attention_soft_cap);
  Row out(query.size(), 0.0);
  for (int64_t head = 0; head < config_.num_heads; ++head) {
    const size_t first = static_cast<size_t>(head) * head_dim;
    const int64_t kv_head = head * config_.num_kv_heads / config_.num_heads;
    const size_t kv_first = static_cast<size_t>(kv_head) * head_dim;
    Row scores(keys.size());
    for (size_t s = 0; s < keys.size(); ++s) {
      double dot = 0;
      for (size_t d = 0; d < head_dim; ++d) dot += query[first + d] * keys[s][kv_first + d];
      dot *= static_cast<double>(config_.attention_scale);
      if (cap > 0) dot = cap * std::tanh(dot / cap);
      scores[s] = dot + mask[s];
    }
    const double largest = *std::ranges::max_element(scores);
    if (largest == kNever) continue;  // a row of padding that sees nothing
    double total = 0;
    if (!sinks.empty()) total = std::exp(sinks[static_cast<size_t>(head)] - largest);
    for (double& score : scores) total += score = std::exp(score - largest);
    for (size_t s = 0; s < keys.size(); ++s) {
      for (size_t d = 0; d < head_dim; ++d) {
        out[first + d] += scores[s] / total * values[s][kv_first + d];
      }
    }
  }
  return out;
}

MaskedReference::Row MaskedReference::gated(const Row& x, const std::string& name,
                                            const MlpNames& names, int64_t width) const {
  Row gate = linear(x, name + "." + names.gate, width);
  const Row up = linear(x, name + "." + names.up, width);
  for (size_t i = 0; i < gate.size(); ++i) {
    const bool is_clamped = config_.activation == Activation::clamped_swiglu;
    const double factor = is_clamped ? std::clamp(up[i], -7.0, 7.0) + 1.0 : up[i];
    gate[i] = activate(config_.activation, gate[i]) * factor;
  }
  return linear(gate, name + "." + names.down, config_.hidden_size);
}

MaskedReference::Row MaskedReference::mlp(const Row& x, int64_t layer) const {
  if (config_.layers[static_cast<size_t>(layer)].is_mixture) return mixture(x, layer);
  return gated(x, in_layer(layer, "mlp"), {}, config_.intermediate_size);
}

// Every expert is computed; those that weren't chosen have the weight 0.
MaskedReference::Row MaskedReference::mixture(const Row& x, int64_t layer) const {
  const MixtureConfig& config = *config_.mixture;
  const RoutingParams& routing = config.routing;
  const auto sigmoid = [](double value) { return 1.0 / (1.0 + std::exp(-value)); };
  const auto part = [&](const std::string& name) { return in_layer(layer, name); };
  Row scores = linear(x, part(config.names.router), routing.num_experts);
  double total = 0;
  for (double& score : scores) total += score = std::exp(score);
  for (double& score : scores) {
    // With s = exp(x), sigmoid(x) is s / (1 + s).
    score = routing.score == ExpertScore::softmax ? score / total : score / (1.0 + score);
  }
  const Row factors = choice(scores, layer);
  Row out(x.size(), 0.0);
  const auto add = [&](const Row& product, double weight) {
    for (size_t i = 0; i < out.size(); ++i) out[i] += weight * product[i];
  };
  for (size_t i = 0; i < factors.size(); ++i) {
    add(gated(x, part(config.names.experts + "." + std::to_string(i)), config.names.projections,
              config.expert_size),
        factors[i]);
  }
  if (routing.shared == SharedExpert::none) return out;
  const bool is_gated = routing.shared == SharedExpert::gated;
  add(gated(x, part(config.names.shared), {}, config.shared_size),
      is_gated ? sigmoid(linear(x, part(config.names.shared_gate), 1)[0]) : 1.0);
  return out;
}

// The weight of each expert: a score counts if fewer than experts_per_token are higher.
MaskedReference::Row MaskedReference::choice(const Row& scores, int64_t layer) const {
  const MixtureConfig& config = *config_.mixture;
  const RoutingParams& routing = config.routing;
  Row values = scores;
  if (config.has_choice_bias) {
    const Row& bias = weights(in_layer(layer, config.names.choice_bias), {routing.num_experts});
    for (size_t i = 0; i < values.size(); ++i) values[i] += bias[i];
  }
  const auto rank = [](const Row& all, double value) {
    return std::ranges::count_if(all, [value](double other) { return other > value; });
  };
  const auto group_size = static_cast<std::ptrdiff_t>(routing.num_experts / routing.num_groups);
  Row sums;
  for (auto group = values.begin(); group != values.end(); group += group_size) {
    Row members(group, group + group_size);
    std::ranges::sort(members, std::greater());
    sums.push_back(members[0] + (members.size() > 1 ? members[1] : 0.0));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const double sum = sums[i / static_cast<size_t>(group_size)];
    if (rank(sums, sum) >= routing.groups_kept) values[i] = kNever;
  }
  Row factors(scores.size(), 0.0);
  double total = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (rank(values, values[i]) < routing.experts_per_token) total += factors[i] = scores[i];
  }
  const double divisor = routing.normalise ? total : 1.0;
  for (double& factor : factors) factor *= static_cast<double>(routing.scale) / divisor;
  return factors;
}

std::vector<std::vector<double>> MaskedReference::forward(
    const std::vector<std::vector<int32_t>>& tokens, const std::vector<int64_t>& lengths) const {
  const auto hidden = static_cast<size_t>(config_.hidden_size);
  const Row embedding = weights("embed_tokens.weight", {config_.vocab_size, config_.hidden_size});
  const auto add = [](Row& to, const Row& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  };
  std::vector<std::vector<double>> all;
  for (size_t n = 0; n < tokens.size(); ++n) {
    Rows x;
    for (const int32_t token : tokens[n]) {
      const auto first = embedding.begin() +
                         static_cast<std::ptrdiff_t>(token) * static_cast<std::ptrdiff_t>(hidden);
      x.emplace_back(first, first + static_cast<std::ptrdiff_t>(hidden));
      for (double& value : x.back()) value *= static_cast<double>(config_.embedding_scale);
    }
    for (int64_t layer = 0; layer < config_.num_layers(); ++layer) {
      const Mask mask = mask_of(static_cast<int64_t>(x.size()), lengths[n],
                                config_.layers[static_cast<size_t>(layer)].window);
      const BlockNorms& norms = config_.norms;
      Rows normed;
      for (const Row& row : x) normed.push_back(norm(row, in_layer(layer, norms.before_attention)));
      const Rows attended = attention(normed, layer, mask);
      for (size_t t = 0; t < x.size(); ++t) {
        const bool post = !norms.after_attention.empty();
        add(x[t], post ? norm(attended[t], in_layer(layer, norms.after_attention)) : attended[t]);
        const Row branch = mlp(norm(x[t], in_layer(layer, norms.before_mlp)), layer);
        add(x[t],
            norms.after_mlp.empty() ? branch : norm(branch, in_layer(layer, norms.after_mlp)));
      }
    }
    Row logits;
    const std::string head = has("lm_head.weight") ? "lm_head" : "embed_tokens";
    for (const Row& row : x) {
      Row one = linear(norm(row, "norm"), head, config_.vocab_size);
      const auto cap = static_cast<double>(config_.final_soft_cap);
      if (cap > 0) {
        for (double& value : one) value = cap * std::tanh(value / cap);
      }
      logits.insert(logits.end(), one.begin(), one.end());
    }
    all.push_back(std::move(logits));
  }
  return all;
}

}  // namespace paceline::testing
