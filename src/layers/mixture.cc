#include "layers/mixture.h"

#include <array>

#include "base/error.h"
#include "kernels/backend.h"
#include "layers/load_context.h"

namespace paceline {
namespace {

Linear load_router(const LoadContext& context, const std::string& block,
                   const MixtureConfig& config, int64_t hidden_size) {
  std::vector<Projection> parts = {{block + "." + config.names.router, config.routing.num_experts}};
  if (config.routing.shared == SharedExpert::gated) {
    parts.push_back({block + "." + config.names.shared_gate, 1});
  }
  LoadContext exact = context;
  exact.weight_dtype = DType::f32;
  exact.activations.reset();
  exact.quantizes = false;
  return Linear(exact, parts, hidden_size,
                config.router_bias ? Linear::Bias::stored : Linear::Bias::none);
}

Tensor take_slots(Scratch& scratch, DType dtype, int64_t rows, const MixtureConfig& config) {
  return scratch.take(dtype, {rows, config.routing.num_slots()});
}

}  // namespace

// Files of ERNIE have it as a row of one group.
OwnedTensor load_choice_bias(const LoadContext& context, const std::string& name, int64_t size) {
  const auto shape = context.prepared == nullptr ? context.weights.shape_of(name) : std::nullopt;
  if (!shape || shape->rank() != 2) return load_vector(context, name, size);
  return store_vector(context, name, read_elements(context, name, {1, size}));
}

Mixture::Mixture(const LoadContext& context, const std::string& block, const MixtureConfig& config,
                 int64_t hidden_size, Activation activation)
    : config_(config), router_(load_router(context, block, config, hidden_size)) {
  const MixtureNames& names = config.names;
  const int64_t num_experts = config.routing.num_experts;
  if (config.has_choice_bias) {
    choice_bias_ = load_choice_bias(context, block + "." + names.choice_bias, num_experts);
  }
  if (config.scales_experts) {
    expert_scales_ = load_numbers(context, block + "." + names.expert_scales, num_experts);
  }
  const bool has_latent = config.latent_size > 0;
  PL_CHECK(!(has_latent || config.scales_inputs) || config.routing.shared == SharedExpert::none,
           "a shared expert among those that read latent columns or scaled rows");
  PL_CHECK(!has_latent || !config.scales_inputs, "latent columns aren't scaled");
  MlpConfig mlp{.hidden_size = has_latent ? config.latent_size : hidden_size,
                .intermediate_size = config.expert_size,
                .activation = activation,
                .bias = config.expert_bias,
                .gated = config.gated,
                .self_gated = !config.gated,
                .names = names.projections};
  experts_.reserve(static_cast<size_t>(num_experts + 1));
  for (int64_t i = 0; i < num_experts; ++i) {
    experts_.emplace_back(context, block + "." + names.experts + "." + std::to_string(i), mlp);
  }
  if (config.routing.shared != SharedExpert::none) {
    mlp.intermediate_size = config.shared_size;
    mlp.fused_gate_up = names.fused_shared.has_value();
    mlp.names = names.fused_shared.value_or(MlpNames());
    experts_.emplace_back(context, block + "." + names.shared, mlp);
  }
  if (has_latent) {
    mlp.hidden_size = hidden_size;
    mlp.intermediate_size = config.shared_size;
    const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
      return Linear(context, std::array{Projection{block + "." + name, out}}, in,
                    config.expert_bias ? Linear::Bias::stored : Linear::Bias::none);
    };
    latent_.emplace(Latent{.to = linear(names.to_latent, hidden_size, config.latent_size),
                           .from = linear(names.from_latent, config.latent_size, hidden_size),
                           .shared = GatedMlp(context, block + "." + names.shared, mlp)});
  }
  if (config.scales_inputs && config.shared_size > 0) {
    mlp.intermediate_size = config.shared_size;
    mlp.names = MlpNames();
    beside_.emplace(context, block + "." + names.shared, mlp);
  }
  for (const GatedMlp& expert : experts_) expert_weights_.push_back(expert.weights());
  Backend::check_experts(expert_weights_);
}

void Mixture::forward(Backend& backend, const Tensor& router_input, const Tensor& x,
                      const BlockAdapters& adapters, Scratch& scratch, const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const MixtureScratch taken(scratch, config_, x.size(1), x.size(0));
  const auto& [logits, routing, inner, shared, mixed, ones] = taken;
  router_.forward(backend, router_input, logits);
  adapters.add(backend, BlockProduct::router, router_input, logits);
  choose(backend, logits, routing);
  ListExpertSegments list;
  if (adapters.change_experts()) {
    list = [&](BlockProduct product, const RowsOfExpert& rows, std::vector<LoraSegment>& segments) {
      adapters.list_expert(rows.expert, product, rows.batch_rows, rows.first_row, segments);
    };
  }
  if (config_.scales_inputs) {
    return forward_scaled(backend, x, taken, list, adapters, scratch, out);
  }
  if (!latent_) return mix(backend, routing, list, x, scratch, out);
  latent_->to.forward(backend, x, inner);
  adapters.add(backend, BlockProduct::to_latent, x, inner);
  mix(backend, routing, list, inner, scratch, inner);
  forward_shared(backend, x, adapters, scratch, shared);
  latent_->from.forward(backend, inner, out);  // `out` may be x
  adapters.add(backend, BlockProduct::from_latent, inner, out);
  backend.add(out, shared, out);
}

void Mixture::mix_experts(Backend& backend, const Tensor& x, const Tensor& inputs,
                          const ListExpertSegments& list_segments, Scratch& scratch,
                          const Tensor& out) const {
  const Scratch::Frame frame(scratch);
  const MixtureScratch taken(scratch, config_, x.size(1), x.size(0));
  route(backend, x, taken.logits, taken.routing);
  mix(backend, taken.routing, list_segments, inputs, scratch, out);
}

void Mixture::mix(Backend& backend, const Routing& routing, const ListExpertSegments& list_segments,
                  const Tensor& inputs, Scratch& scratch, const Tensor& out) const {
  if (list_segments == nullptr) return backend.mix_experts(expert_weights_, routing, inputs, out);
  mix_adapted_experts(backend, experts_, routing, list_segments, inputs, scratch, out);
}

void Mixture::forward_shared(Backend& backend, const Tensor& x, const BlockAdapters& adapters,
                             Scratch& scratch, const Tensor& out) const {
  if (adapters.change(BlockProduct::gate_up) || adapters.change(BlockProduct::down)) {
    return shared_apart().forward(backend, x, adapters, scratch, out);
  }
  backend.gated_mlp(shared_apart().weights(), x, out);
}

// Each slot's experts read rows times its weights, and add what they write with a weight of 1.
void Mixture::forward_scaled(Backend& backend, const Tensor& x, const MixtureScratch& taken,
                             const ListExpertSegments& list_segments, const BlockAdapters& adapters,
                             Scratch& scratch, const Tensor& out) const {
  const auto num_rows = static_cast<size_t>(x.size(0));
  const HostRouting chosen = backend.read_routing(taken.routing);
  const auto num_slots = static_cast<size_t>(chosen.num_slots);
  backend.write(std::vector<float>(num_rows, 1.0f), taken.ones);
  if (beside_) forward_shared(backend, x, adapters, scratch, taken.shared);
  std::vector<float> factors(num_rows);
  for (size_t slot = 0; slot < num_slots; ++slot) {
    for (size_t row = 0; row < num_rows; ++row) {
      factors[row] = chosen.weights[row * num_slots + slot];
    }
    const auto at = static_cast<int64_t>(slot);
    const Routing of_slot = {.experts = taken.routing.experts.slice(1, at, at + 1),
                             .weights = taken.ones};
    backend.scale(x, factors, taken.inner);
    const bool is_first = slot == 0 && !beside_;
    const Tensor& to = is_first ? taken.shared : taken.mixed;
    mix(backend, of_slot, list_segments, taken.inner, scratch, to);
    if (!is_first) backend.add(taken.shared, to, taken.shared);
  }
  backend.scale(taken.shared, std::array{1.0f}, out);
}

void Mixture::route(Backend& backend, const Tensor& x, const Tensor& logits,
                    const Routing& out) const {
  router_.forward(backend, x, logits);
  choose(backend, logits, out);
}

void Mixture::choose(Backend& backend, const Tensor& logits, const Routing& out) const {
  backend.route(logits, config_.routing, choice_bias_ ? &choice_bias_->view : nullptr, out);
  if (!expert_scales_.empty()) scale_weights(backend, out);
}

void Mixture::scale_weights(Backend& backend, const Routing& routing) const {
  HostRouting chosen = backend.read_routing(routing);
  for (size_t i = 0; i < chosen.weights.size(); ++i) {
    chosen.weights[i] *= expert_scales_[static_cast<size_t>(chosen.experts[i])];
  }
  backend.write(chosen.weights, routing.weights);
}

void Mixture::list_weights(std::vector<const PackedMatrix*>& weights) const {
  const auto add = [&](const Linear& linear) {
    for (const PackedMatrix& matrix : linear.weights()) weights.push_back(&matrix);
  };
  add(router_);
  if (latent_ || beside_) {
    for (const Linear* const product : shared_apart().products()) add(*product);
  }
  if (latent_) {
    add(latent_->to);
    add(latent_->from);
  }
  const auto slots = static_cast<size_t>(config_.routing.num_slots());
  for (size_t i = experts_.size() - slots; i < experts_.size(); ++i) {
    for (const Linear* const product : experts_[i].products()) add(*product);
  }
}

MixtureScratch::MixtureScratch(Scratch& scratch, const MixtureConfig& config, int64_t hidden_size,
                               int64_t rows)
    : logits(scratch.take_rows(rows, config.routing.num_logits())),
      routing{.experts = take_slots(scratch, DType::i32, rows, config),
              .weights = take_slots(scratch, DType::f32, rows, config)} {
  if (config.latent_size == 0 && !config.scales_inputs) return;
  inner = scratch.take_rows(rows, config.input_size(hidden_size));
  shared = scratch.take_rows(rows, hidden_size);
  if (!config.scales_inputs) return;
  mixed = scratch.take_rows(rows, hidden_size);
  ones = scratch.take(DType::f32, {rows, 1});
}

}  // namespace paceline
