#include "train/weight_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

#include "autodiff/new_arrays.h"
#include "base/error.h"
#include "base/siphash.h"
#include "kernels/backend.h"
#include "models/block_projections.h"

namespace paceline {
namespace {

using Kind = TrainedParameter::Kind;

// Deviations of the draws (tools/training/model.py).
constexpr float kInputGain = 0.5f;  // divided by sqrt(inputs)
constexpr float kTableDeviation = 0.02f;

// All but routers, which are float32 in any model.
void list_matrices(const DecoderBlock& block, std::vector<const PackedMatrix*>& matrices) {
  const auto add = [&](const auto& products) {
    for (const Linear* const product : products) {
      for (const PackedMatrix& matrix : product->weights()) matrices.push_back(&matrix);
    }
  };
  if (const Mixer* const mixer = block.mixer()) {
    add(mixer->products());
    if (const auto* const mamba = std::get_if<Mamba1>(&mixer->part())) add(mamba->scan_products());
  }
  if (block.mlp() == nullptr) return;
  if (const GatedMlp* const mlp = block.mlp()->dense()) return add(mlp->products());
  for (const GatedMlp& expert : block.mlp()->mixture()->experts()) add(expert.products());
}

float input_deviation(int64_t inputs) { return kInputGain / std::sqrt(static_cast<float>(inputs)); }

// What makes weights trainable that aren't.
std::string_view advice_for(const PackedMatrix& matrix) {
  if (!matrix.groups) return "load them with --dtype bfloat16";
  return matrix.groups->grouping.is_float8() ? "load them with --activations plain"
                                             : "take the model before it was quantised";
}

// The type of the decoder's matrices, which all have it.
DType trained_dtype(const Decoder& decoder, const Backend& backend) {
  expect_trainable(decoder, backend);
  expect_all_trainable(decoder, backend);
  std::vector<const PackedMatrix*> weights = {&decoder.embedding(), &decoder.head()};
  for (const DecoderBlock& block : decoder.blocks()) list_matrices(block, weights);
  for (const PackedMatrix* const one : weights) {
    const bool is_plain = !one->groups && (one->dtype == DType::f32 || one->dtype == DType::bf16);
    if (is_plain && one->dtype == weights.front()->dtype) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("full fine-tuning: found weights in {}, expected plain float32 or "
                            "bfloat16: train LoRA beside them, or {}",
                            one->format_name(), advice_for(*one)));
  }
  return weights.front()->dtype;
}

std::span<float> floats(const Tensor& tensor) {
  return {tensor.elements<float>(), static_cast<size_t>(tensor.num_elements())};
}

// Each as it is after being saved in `dtype`.
std::vector<float> rounded(const Tensor& values, DType dtype) {
  const std::span<const float> from = floats(values);
  std::vector<float> to(from.begin(), from.end());
  if (dtype == DType::bf16) {
    for (float& value : to) value = to_float(to_bfloat16(value));
  }
  return to;
}

}  // namespace

WeightSet::WeightSet(Backend& backend, Decoder& decoder)
    : memory_(backend.memory()), decoder_(decoder), dtype_(trained_dtype(decoder, backend)) {
  const std::span<DecoderBlock> blocks = decoder.blocks();
  training_.blocks.resize(blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) add_block(blocks[i], static_cast<int64_t>(i));
  add_norm(&decoder.final_norm(), decoder.config().final_norm, training_.final_norm);

  embedding_ = copy_of(decoder.embedding());
  training_.embedding = embedding_.gradient.view;
  const Start table{.deviation = kTableDeviation};
  add_parameter("embed_tokens.weight", Kind::table, embedding_.value.view, embedding_.gradient.view,
                table);
  if (decoder.has_own_head()) {
    head_ = copy_of(decoder.head());
    training_.head = head_.gradient.view;
    add_parameter("lm_head.weight", Kind::table, head_.value.view, head_.gradient.view, table);
  } else {
    tied_gradient_ = allocate_tensor(memory_, DType::f32, embedding_.value.view.shape());
    training_.head = tied_gradient_.view;
  }
  for (const auto& one : owned_) parameters_.push_back(one.get());
  std::sort(parameters_.begin(), parameters_.end(),
            [](const auto* x, const auto* y) { return x->path() < y->path(); });
}

WeightSet::Values WeightSet::allocate(const Extents& shape) const {
  return {.value = allocate_tensor(memory_, DType::f32, shape),
          .gradient = allocate_tensor(memory_, DType::f32, shape)};
}

WeightSet::Values WeightSet::copy_of(const PackedMatrix& matrix) const {
  Values values = allocate({matrix.n, matrix.k});
  for (int64_t row = 0; row < matrix.n; ++row) {
    unpack_row(matrix, row, values.value.view.row<float>(row));
  }
  return values;
}

std::string WeightSet::path_of(int64_t layer, const std::string& part) const {
  return fmt::format("layers.{}.{}", decoder_.config().stored_layer(layer), part);
}

void WeightSet::add_block(DecoderBlock& block, int64_t layer) {
  BlockTraining& training = training_.blocks[static_cast<size_t>(layer)];
  if (Mixer* const mixer = block.mixer()) add_mixer(*mixer, layer, training);
  if (FeedForward* const mlp = block.mlp()) {
    if (mlp->mixture() != nullptr) {
      add_mixture(*mlp->mixture(), layer, training.mixture);
    } else {
      add_product(mlp->dense()->gate_up(), layer, BlockProduct::gate_up, training.gate_up);
      add_product(mlp->dense()->down(), layer, BlockProduct::down, training.down);
    }
  }
  const BlockNorms& names = decoder_.config().norms_of(layer);
  const auto norm = [&](Norm* one, const std::string& part, NormGradient& gradient) {
    add_norm(one, path_of(layer, part), gradient);
  };
  norm(block.before_mixer(), names.before_attention, training.before_mixer);
  norm(block.after_mixer(), names.after_attention, training.after_mixer);
  norm(block.before_mlp(), names.before_mlp, training.before_mlp);
  norm(block.after_mlp(), names.after_mlp, training.after_mlp);
}

void WeightSet::add_mixer(Mixer& mixer, int64_t layer, BlockTraining& training) {
  const auto [first, last] = mixer.products();
  add_product(*first, layer, BlockProduct::qkv, training.qkv);
  add_product(*last, layer, BlockProduct::output, training.output);
  if (Mamba1* const mamba = mixer.mamba1()) {
    const auto [parts, steps] = mamba->scan_products();
    add_product(*parts, layer, BlockProduct::scan_parts, training.scan_parts);
    add_product(*steps, layer, BlockProduct::scan_steps, training.scan_steps);
  }
  const std::string name = path_of(layer, mixer_name(decoder_.config(), layer)) + ".";
  if (SelfAttention* const attention = mixer.attention()) {
    const AttentionNames& names = decoder_.config().attention_names;
    add_head_norms(attention->q_norms(), name + names.q_norm, training.head_norms.q);
    add_head_norms(attention->k_norms(), name + names.k_norm, training.head_norms.k);
  }
  TrainedMixer trained{.mixer = &mixer};
  for (const OwnWeight& one : mixer.own_weights()) {
    add_own_weight(name, one, trained);
    training.own_weights.push_back(trained.weights.back().gradient.view);
  }
  if (!trained.weights.empty()) mixers_.push_back(std::move(trained));
}

void WeightSet::add_own_weight(const std::string& layer, const OwnWeight& weight,
                               TrainedMixer& mixer) {
  const auto count = std::ssize(weight.values);
  const Values& values = mixer.weights.emplace_back(allocate({count}));
  std::ranges::copy(weight.values, floats(values.value.view).begin());
  const int64_t last = weight.shape[weight.shape.rank() - 1];
  PackedOrder order;
  if (weight.is_transposed) order = PackedOrder::transposed(count / last, last);
  const auto [value, gradient] =
      in_order(std::move(order), weight.shape, values.value.view, values.gradient.view);
  add_parameter(layer + weight.part, Kind::vector, value, gradient,
                {.mean = weight.mean, .deviation = weight.deviation});
}

std::pair<Tensor, Tensor> WeightSet::in_order(PackedOrder order, const Extents& shape,
                                              const Tensor& value, const Tensor& gradient) {
  if (order.is_stored()) return {value, gradient};
  const Reordered& one = reordered_.emplace_back(Reordered{
      .order = std::move(order), .stored = allocate(shape), .value = value, .gradient = gradient});
  one.order.to_stored(value, one.stored.value.view);
  return {one.stored.value.view, one.stored.gradient.view};
}

void WeightSet::add_product(Linear& linear, int64_t layer, BlockProduct product,
                            LinearTraining& training) {
  const bool writes_residual = product == BlockProduct::output || product == BlockProduct::down;
  std::vector<Part> parts;
  for (const BlockProjection& one : block_projections(decoder_.config(), layer)) {
    if (one.product != product) continue;
    parts.push_back({.path = path_of(layer, one.part),
                     .first_row = one.first_column,
                     .num_rows = one.out_features,
                     .deviation = writes_residual ? 0.0f : input_deviation(one.in_features),
                     .order = PackedOrder(one.order),
                     .has_bias = one.has_bias});
  }
  add_linear(linear, parts, training);
}

void WeightSet::add_mixture(Mixture& mixture, int64_t layer, MixtureTraining& training) {
  const MixtureConfig& config = mixture.config();
  const int64_t hidden = decoder_.config().hidden_size, num_experts = config.routing.num_experts;
  const float deviation = input_deviation(hidden);
  const auto path = [&](const std::string& name) { return path_of(layer, name); };
  std::vector<Part> router = {
      {.path = path(config.names.router), .num_rows = num_experts, .deviation = deviation}};
  if (config.routing.shared == SharedExpert::gated) {
    router.push_back({.path = path(config.names.shared_gate),
                      .first_row = num_experts,
                      .num_rows = 1,
                      .deviation = deviation});
  }
  add_linear(mixture.router(), router, training.router);
  training.experts.resize(mixture.experts().size());
  for (size_t i = 0; i < training.experts.size(); ++i) {
    GatedMlp& expert = mixture.experts()[i];
    const std::string name = path(expert_name(config, static_cast<int64_t>(i))) + ".";
    const MlpNames names = expert_mlp_names(config, static_cast<int64_t>(i));
    const int64_t width = expert.config().intermediate_size;
    const auto part = [&](const std::string& projection, int64_t first, int64_t rows) {
      return Part{
          .path = name + projection, .first_row = first, .num_rows = rows, .deviation = deviation};
    };
    std::vector<Part> gate_up = {part(names.gate, 0, width), part(names.up, width, width)};
    if (expert.config().fused_gate_up) gate_up = {part(names.gate_up, 0, 2 * width)};
    if (!expert.config().gated) gate_up = {part(names.up, 0, width)};
    add_linear(expert.gate_up(), gate_up, training.experts[i].gate_up);
    add_linear(expert.down(), {{.path = name + names.down, .num_rows = hidden}},
               training.experts[i].down);
  }
}

void WeightSet::add_linear(Linear& linear, const std::vector<Part>& parts,
                           LinearTraining& training) {
  PL_CHECK(linear.weights().size() == 1, "plain projections are packed together");
  TrainedLinear trained{.linear = &linear, .weight = copy_of(linear.weights()[0]), .bias = {}};
  training.weight_gradient = trained.weight.gradient.view;
  if (const Tensor* const bias = linear.bias()) {
    trained.bias = allocate(bias->shape());
    copy_elements(*bias, trained.bias.value.view);
    training.bias_gradient = trained.bias.gradient.view;
  }
  for (const Part& one : parts) {
    const auto rows_of = [&](const OwnedTensor& all) {
      return all.view.slice(0, one.first_row, one.first_row + one.num_rows);
    };
    const Tensor rows = rows_of(trained.weight.value);
    const auto [value, gradient] =
        in_order(one.order, rows.shape(), rows, rows_of(trained.weight.gradient));
    add_parameter(one.path + ".weight", Kind::matrix, value, gradient,
                  {.deviation = one.deviation});
    if (!training.bias_gradient || !one.has_bias) continue;
    const Tensor bias = rows_of(trained.bias.value);
    const auto [bias_value, bias_gradient] =
        in_order(one.order, bias.shape(), bias, rows_of(trained.bias.gradient));
    add_parameter(one.path + ".bias", Kind::vector, bias_value, bias_gradient, {});
  }
  linears_.push_back(std::move(trained));
}

void WeightSet::add_head_norms(std::span<Norm> norms, const std::string& name,
                               std::vector<NormGradient>& gradients) {
  const bool each_head = decoder_.config().qk_norm == QkNorm::each_head;
  gradients.resize(norms.size());
  for (size_t i = 0; i < norms.size(); ++i) {
    const std::string part = each_head ? fmt::format(".norms.{}", i) : "";
    add_norm(&norms[i], name + part, gradients[i]);
  }
}

void WeightSet::add_norm(Norm* norm, const std::string& name, NormGradient& gradient) {
  if (norm == nullptr || !norm->has_weight()) return;
  TrainedNorm trained{.norm = norm, .weight = allocate(norm->weight().shape()), .bias = {}};
  copy_elements(norm->weight(), trained.weight.value.view);
  for (float& value : floats(trained.weight.value.view)) value -= norm->weight_offset();
  gradient.weight = trained.weight.gradient.view;
  add_parameter(name + ".weight", Kind::vector, trained.weight.value.view,
                trained.weight.gradient.view, {.mean = 1.0f - norm->weight_offset()});
  if (const Tensor* const bias = norm->bias()) {
    trained.bias = allocate(bias->shape());
    copy_elements(*bias, trained.bias.value.view);
    gradient.bias = trained.bias.gradient.view;
    add_parameter(name + ".bias", Kind::vector, trained.bias.value.view, trained.bias.gradient.view,
                  {});
  }
  norms_.push_back(std::move(trained));
}

void WeightSet::add_parameter(const std::string& path, Kind kind, const Tensor& value,
                              const Tensor& gradient, const Start& start) {
  owned_.push_back(std::make_unique<TrainedParameter>(path, kind, value, gradient));
  starts_.push_back(start);
}

void WeightSet::draw(Backend& backend, uint64_t seed) {
  const autodiff::Context context{.memory = memory_};
  for (size_t i = 0; i < owned_.size(); ++i) {
    const TrainedParameter& one = *owned_[i];
    const Hash128 key = siphash128_bytes(kPublicSipKey, std::as_bytes(std::span(one.path())));
    copy_elements(autodiff::normal(context, one.value().shape(), {.seed = seed ^ key.low},
                                   starts_[i].mean, starts_[i].deviation)
                      .tensor(),
                  one.value());
  }
  pack(backend);
}

void WeightSet::clear_gradients() {
  TrainedSet::clear_gradients();
  for (const Reordered& one : reordered_) {
    std::memset(one.gradient.raw(), 0, one.gradient.size_bytes());
  }
  if (tied_gradient_.view.rank() > 0) {
    std::memset(tied_gradient_.view.raw(), 0, tied_gradient_.view.size_bytes());
  }
}

void WeightSet::complete_gradients() {
  TrainedSet::complete_gradients();
  for (const Reordered& one : reordered_) {
    one.order.to_stored(one.gradient, one.stored.gradient.view);
  }
  if (tied_gradient_.view.rank() == 0) return;
  const std::span<float> sum = floats(embedding_.gradient.view);
  const std::span<const float> of_logits = floats(tied_gradient_.view);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += of_logits[i];
}

void WeightSet::pack(Backend& backend) {
  for (const Reordered& one : reordered_) one.order.to_packed(one.stored.value.view, one.value);
  const auto rounded_bias = [&](const Tensor* bias, const Tensor& value) {
    return bias != nullptr ? rounded(value, dtype_) : std::vector<float>();
  };
  for (const TrainedLinear& one : linears_) {
    // Routers are float32, whatever the type that is saved.
    const Tensor& value = one.weight.value.view;
    std::vector<float> as_saved;
    if (one.linear->weights()[0].dtype != dtype_) as_saved = rounded(value, dtype_);
    one.linear->set_values(
        backend, as_saved.empty() ? value : Tensor(as_saved.data(), DType::f32, value.shape()),
        rounded_bias(one.linear->bias(), one.bias.value.view));
  }
  for (const TrainedNorm& one : norms_) {
    one.norm->set_values(backend, rounded(one.weight.value.view, dtype_),
                         rounded_bias(one.norm->bias(), one.bias.value.view));
  }
  for (const TrainedMixer& one : mixers_) {
    std::vector<std::vector<float>> values;
    for (const Values& each : one.weights) values.push_back(rounded(each.value.view, dtype_));
    one.mixer->set_own_weights(backend, values);
  }
  decoder_.set_embedding(backend, embedding_.value.view);
  if (decoder_.has_own_head()) decoder_.set_head(backend, head_.value.view);
}

}  // namespace paceline
