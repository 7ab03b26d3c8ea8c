#include "models/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.h"
#include "kernels/backend.h"
#include "layers/load_context.h"
#include "models/block_projections.h"

namespace paceline {
namespace {

std::string layer_name(const DecoderConfig& config, int64_t layer_index, const std::string& part) {
  const std::string layer = fmt::format("layers.{}", config.stored_layer(layer_index));
  return part.empty() ? layer : layer + "." + part;
}

const LayerConfig& layer_of(const DecoderConfig& config, int64_t layer_index) {
  return config.layers[static_cast<size_t>(layer_index)];
}

bool joins_previous(const DecoderConfig& config, int64_t layer_index) {
  return layer_index > 0 && layer_of(config, layer_index - 1).joins_next;
}

NormOptions norm_options(const DecoderConfig& config) {
  return {.kind = config.norm_kind,
          .eps = config.norm_eps,
          .weight_offset = config.norm_weight_offset,
          .bias = config.norm_bias,
          .has_weight = config.norm_weight};
}

Norm load_norm(const LoadContext& context, const DecoderConfig& config, const std::string& name) {
  return Norm(context, name, config.hidden_size, norm_options(config));
}

std::optional<Norm> load_mixer_norm(const LoadContext& context, const DecoderConfig& config,
                                    int64_t layer_index, const std::string& part) {
  if (part.empty() || layer_of(config, layer_index).mixer == MixerKind::none) return std::nullopt;
  return load_norm(context, config, layer_name(config, layer_index, part));
}

std::optional<Norm> load_mlp_norm(const LoadContext& context, const DecoderConfig& config,
                                  int64_t layer_index, const std::string& part) {
  if (part.empty() || !layer_of(config, layer_index).has_mlp) return std::nullopt;
  return load_norm(context, config, layer_name(config, layer_index, part));
}

// Of a layer that joins another, that one's norm; of the embedding perhaps none.
std::optional<Norm> load_first_norm(const LoadContext& context, const DecoderConfig& config,
                                    int64_t layer_index) {
  if (joins_previous(config, layer_index)) return std::nullopt;
  if (layer_index == 0 && !config.first_is_normed) return std::nullopt;
  return load_mixer_norm(context, config, layer_index,
                         config.norms_of(layer_index).before_attention);
}

float mixer_scale(const DecoderConfig& config, int64_t layer_index) {
  const MixerKind kind = layer_of(config, layer_index).mixer;
  const float own = kind == MixerKind::attention ? config.attention_output_scale
                    : kind == MixerKind::mamba2  ? config.mamba2.value().output_scale
                                                 : 1.0f;
  return config.residual_scale * own;
}

AttentionConfig attention_config(const DecoderConfig& config, int64_t layer_index) {
  NormOptions qk_norm = norm_options(config);
  qk_norm.bias = config.qk_norm_bias;
  if (!config.qk_norm_weight) qk_norm.has_weight = false;
  const bool has_norms =
      !config.norms_rotated_alone || layer_of(config, layer_index).rope_index != kNoRope;
  return {.hidden_size = config.hidden_size,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads_of(layer_index),
          .head_dim = config.head_dim_of(layer_index),
          .params = {.scale = config.attention_scale,
                     .soft_cap = config.attention_soft_cap,
                     .window = layer_of(config, layer_index).window,
                     .chunked = layer_of(config, layer_index).chunked,
                     .bidirectional = config.bidirectional},
          .rope_pairs = config.rope_pairs,
          .qk_norm = has_norms ? config.qk_norm : QkNorm::none,
          .value_norm = config.value_norm,
          .values_are_keys = layer_of(config, layer_index).values_are_keys,
          .shares_cache = config.shares_cache(layer_index),
          .qkv_bias = config.qkv_bias,
          .output_bias = config.output_bias,
          .sinks = config.attention_sinks,
          .has_gate = config.attention_gate,
          .head_gates = config.head_gates,
          .fused_qkv = config.fused_qkv,
          .grouped_qkv = config.grouped_qkv,
          .qkv_shards = config.qkv_shards,
          .rotates_first = config.rotates_first,
          .joined_norms = config.joined_norms,
          .clip = config.clip_qkv,
          .disentangled = config.disentangled,
          .names = config.attention_names,
          .norm = qk_norm};
}

// What its end multiplies the residual stream by.
float load_end_scale(const LoadContext& context, const DecoderConfig& config, int64_t layer_index) {
  if (!config.layer_scalars) return 1.0f;
  return load_numbers(context, layer_name(config, layer_index, "layer_scalar"), 1).front();
}

MlpConfig mlp_config(const DecoderConfig& config, int64_t layer_index) {
  return {.hidden_size = config.hidden_size,
          .intermediate_size = config.intermediate_size_of(layer_index),
          .activation = config.activation,
          .bias = config.mlp_bias,
          .down_bias = config.mlp_down_bias,
          .gated = config.gated_mlp,
          .self_gated = config.self_gated_mlp,
          .gate_scale = config.mlp_gate_scale,
          .gate_deviations = layer_of(config, layer_index).gate_deviations,
          .xielu = config.xielu,
          .fused_gate_up = config.fused_gate_up,
          .up_first = config.up_first,
          .names = config.mlp_names};
}

Mixer::Part load_mixer_part(const LoadContext& context, const DecoderConfig& config,
                            int64_t layer_index) {
  const std::string name = layer_name(config, layer_index, mixer_name(config, layer_index));
  switch (layer_of(config, layer_index).mixer) {
    case MixerKind::attention:
    case MixerKind::none:
      break;
    case MixerKind::delta_net:
      return GatedDeltaNet(context, name, config.hidden_size, config.norm_eps,
                           config.delta_net.value());
    case MixerKind::convolution:
      return GatedConvolution(context, name, config.hidden_size, config.convolution.value());
    case MixerKind::mamba1:
      return Mamba1(context, name, config.hidden_size, config.mamba1.value());
    case MixerKind::mamba2:
      return Mamba2(context, name, config.hidden_size, config.mamba2.value());
  }
  const AttentionConfig attention = attention_config(config, layer_index);
  if (config.latent) return LatentAttention(context, name, attention, *config.latent);
  return SelfAttention(context, name, attention);
}

std::optional<Mixer> load_mixer(const LoadContext& context, const DecoderConfig& config,
                                int64_t layer_index) {
  if (layer_of(config, layer_index).mixer == MixerKind::none) return std::nullopt;
  return Mixer(load_mixer_part(context, config, layer_index));
}

std::optional<FeedForward> load_feed_forward(const LoadContext& context,
                                             const DecoderConfig& config, int64_t layer_index) {
  if (!layer_of(config, layer_index).has_mlp) return std::nullopt;
  if (!layer_of(config, layer_index).is_mixture) {
    return FeedForward(GatedMlp(context, layer_name(config, layer_index, config.mlp),
                                mlp_config(config, layer_index)));
  }
  PL_CHECK(config.mixture.has_value(), "a mixture layer without its description");
  const std::string block = fmt::format("layers.{}", config.stored_layer(layer_index));
  Mixture mixture(context, block, *config.mixture, config.hidden_size, config.activation);
  if (!config.mixture->beside_mlp) return FeedForward(std::move(mixture));
  GatedMlp mlp(context, layer_name(config, layer_index, config.mlp),
               mlp_config(config, layer_index));
  return FeedForward(MlpWithExperts(context, block, std::move(mlp), std::move(mixture),
                                    config.hidden_size, norm_options(config)));
}

// Whether its feed-forward part has norms before its own parts.
bool has_mlp_with_experts(const DecoderConfig& config, int64_t layer_index) {
  return layer_of(config, layer_index).is_mixture && config.mixture.value().beside_mlp;
}

BranchInput input_of(const std::optional<Norm>& norm) {
  return norm ? BranchInput::normed : BranchInput::residual;
}

// Computes a block in place. `held` is what the next branch reads, unless that is the residual
// stream.
class ServingSteps {
 public:
  using Value = Tensor;

  ServingSteps(Backend& backend, const MixerInputs& in, Scratch& scratch, const Tensor& residual,
               const Tensor& held)
      : backend_(backend), in_(in), scratch_(scratch), residual_(residual), held_(held) {}

  Tensor read(const BlockBranch& branch) const {
    return branch.input == BranchInput::residual ? residual_ : held_;
  }

  Tensor run(const BlockBranch& branch, const Tensor& input, const BlockBranch* next) {
    const bool is_beside = next != nullptr && next->input == BranchInput::beside;
    const bool is_read_again = is_beside || (next != nullptr && next->input == BranchInput::shared);
    const Tensor out =
        is_read_again ? scratch_.take_rows(residual_.size(0), residual_.size(1)) : held_;
    if (branch.mixer != nullptr) {
      branch.mixer->forward(backend_, input, in_, scratch_, out);
    } else if (branch.feed_forward != nullptr) {
      branch.feed_forward->forward(backend_, input, in_.adapters, scratch_, out);
    } else if (branch.laurel != nullptr) {
      branch.laurel->forward(backend_, input, in_.adapters, scratch_, out);
    } else {
      branch.layer_input->forward(backend_, input, in_.layer_input, in_.adapters, scratch_, out);
    }
    if (is_beside) next->before->forward(backend_, residual_, held_);
    return out;
  }

  // The norms before and behind the addition are part of it where they can be.
  void add(const BlockBranch& branch, const Tensor& output, const BlockBranch* next) const {
    const Norm* const after = branch.norms_sum ? nullptr : branch.after;
    const Norm* const following =
        next != nullptr && next->input == BranchInput::normed ? next->before : nullptr;
    const bool is_scaled = branch.scale != 1.0f;
    const bool sum_changes = branch.norms_sum || branch.sum_scale != 1.0f;
    const bool is_apart = after != nullptr && (is_scaled || following == nullptr || sum_changes);
    if (is_apart) after->forward(backend_, output, output);
    if (is_scaled) backend_.scale(output, std::array{branch.scale}, output);
    if (following == nullptr || sum_changes) {
      backend_.add(residual_, output, residual_);
      if (branch.norms_sum) branch.after->forward(backend_, residual_, residual_);
      if (branch.sum_scale != 1.0f) {
        backend_.scale(residual_, std::array{branch.sum_scale}, residual_);
      }
      if (following != nullptr) following->forward(backend_, residual_, held_);
      return;
    }
    following->add_forward(backend_, residual_, output, is_apart ? nullptr : after, held_);
  }

 private:
  Backend& backend_;
  const MixerInputs& in_;
  Scratch& scratch_;
  const Tensor& residual_;  // [rows, hidden]
  const Tensor& held_;      // [rows, hidden]
};
static_assert(BlockSteps<ServingSteps>);

void take_mixer(Scratch& scratch, const DecoderConfig& config, int64_t layer_index, int64_t rows) {
  const Scratch::Frame frame(scratch);
  switch (layer_of(config, layer_index).mixer) {
    case MixerKind::none:
      break;
    case MixerKind::attention:
      if (config.latent) {
        LatentScratch(scratch, *config.latent, config.num_heads, rows);
        break;
      }
      AttentionScratch(scratch, attention_config(config, layer_index), rows);
      break;
    case MixerKind::delta_net:
      DeltaNetScratch(scratch, config.delta_net.value(), rows);
      break;
    case MixerKind::convolution:
      take_convolution_input(scratch, config.hidden_size, rows);
      break;
    case MixerKind::mamba1:
      Mamba1Scratch(scratch, config.mamba1.value(), rows);
      break;
    case MixerKind::mamba2:
      Mamba2Scratch(scratch, config.mamba2.value(), rows);
      break;
  }
}

void take_mlp(Scratch& scratch, const DecoderConfig& config, int64_t layer_index, int64_t rows,
              AdapterUse adapters) {
  const Scratch::Frame frame(scratch);
  const MlpConfig mlp = mlp_config(config, layer_index);
  if (mlp.has_steps() || adapters == AdapterUse::any) scratch.take_rows(rows, mlp.up_width());
}

void take_layer_input(Scratch& scratch, const DecoderConfig& config, int64_t rows) {
  const Scratch::Frame frame(scratch);
  if (config.layer_inputs) scratch.take_rows(rows, config.layer_inputs->width);
}

void take_laurel(Scratch& scratch, const DecoderConfig& config, int64_t rows) {
  const Scratch::Frame frame(scratch);
  if (config.laurel_rank > 0) LaurelScratch(scratch, config.laurel_rank, config.hidden_size, rows);
}

// At most; AltUp::correct() takes less.
void take_altup(Scratch& scratch, const DecoderConfig& config, int64_t rows) {
  const Scratch::Frame frame(scratch);
  if (config.alternating) AltUpScratch(scratch, *config.alternating, rows, config.hidden_size);
}

void take_feed_forward(Scratch& scratch, const DecoderConfig& config, int64_t layer_index,
                       int64_t rows, AdapterUse adapters) {
  const Scratch::Frame frame(scratch);
  const LayerConfig& layer = layer_of(config, layer_index);
  if (!layer.has_mlp) return;
  if (layer.is_mixture) {
    const MixtureConfig& mixture = config.mixture.value();
    if (mixture.beside_mlp) {
      MlpWithExpertsScratch(scratch, config.hidden_size, rows);
      take_mlp(scratch, config, layer_index, rows, adapters);
    }
    MixtureScratch(scratch, mixture, config.hidden_size, rows);
    if (adapters == AdapterUse::none) return;
    {
      const Scratch::Frame experts(scratch);
      take_expert_steps(scratch, mixture, mixture.input_size(config.hidden_size), rows);
    }
    if (!mixture.shared_apart()) return;
    scratch.take_rows(rows, (mixture.gated ? 2 : 1) * mixture.shared_size);
    return;
  }
  take_mlp(scratch, config, layer_index, rows, adapters);
}

std::optional<PositionEmbedding> load_positions(const LoadContext& context,
                                                const DecoderConfig& config) {
  if (config.num_positions == 0 && config.num_token_types == 0) return std::nullopt;
  return PositionEmbedding(context, {.num_positions = config.num_positions,
                                     .first = config.first_position,
                                     .sinusoids = config.sinusoids,
                                     .zero_row = config.zero_position,
                                     .num_types = config.num_token_types,
                                     .width = config.hidden_size});
}

std::optional<LayerInputs> load_layer_inputs(const LoadContext& context,
                                             const DecoderConfig& config) {
  if (!config.layer_inputs) return std::nullopt;
  return LayerInputs(context, *config.layer_inputs, config.hidden_size, config.num_layers(),
                     norm_options(config));
}

std::optional<LayerInputGate> load_layer_input(const LoadContext& context,
                                               const DecoderConfig& config, int64_t layer_index) {
  if (!config.layer_inputs) return std::nullopt;
  return LayerInputGate(context, fmt::format("layers.{}", config.stored_layer(layer_index)),
                        *config.layer_inputs, config.hidden_size, config.activation);
}

std::optional<Laurel> load_laurel(const LoadContext& context, const DecoderConfig& config,
                                  int64_t layer_index) {
  if (config.laurel_rank == 0) return std::nullopt;
  return Laurel(context, fmt::format("layers.{}", config.stored_layer(layer_index)),
                config.laurel_rank, config.hidden_size, norm_options(config));
}

std::optional<AltUpEnds> load_altup_ends(const LoadContext& context, const DecoderConfig& config) {
  if (!config.alternating) return std::nullopt;
  return AltUpEnds(context, *config.alternating, config.hidden_size);
}

std::optional<AltUp> load_altup(const LoadContext& context, const DecoderConfig& config,
                                int64_t layer_index) {
  if (!config.alternating) return std::nullopt;
  return AltUp(context, fmt::format("layers.{}", config.stored_layer(layer_index)),
               *config.alternating, config.hidden_size, norm_options(config));
}

std::optional<Norm> load_norm_if(bool exists, const LoadContext& context,
                                 const DecoderConfig& config, const std::string& name) {
  if (!exists) return std::nullopt;
  return load_norm(context, config, name);
}

// Files may have keys and values of layers that read those of another one.
void ignore_unused_keys(const LoadContext& context, const DecoderConfig& config) {
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    if (!config.shares_cache(i)) continue;
    const std::string& attention = config.attention_names.layer;
    for (const std::string_view part : {"k_proj.", "v_proj.", "k_norm."}) {
      context.weights.ignore(layer_name(config, i, fmt::format("{}.{}", attention, part)));
    }
  }
}

}  // namespace

DecoderBlock::DecoderBlock(const LoadContext& context, const DecoderConfig& config,
                           int64_t layer_index)
    : norms_sums_(config.norms_sums),
      mixer_scale_(mixer_scale(config, layer_index)),
      mlp_scale_(config.residual_scale * config.mlp_output_scale),
      end_scale_(load_end_scale(context, config, layer_index)),
      before_mixer_(load_first_norm(context, config, layer_index)),
      mixer_(load_mixer(context, config, layer_index)),
      after_mixer_(load_mixer_norm(context, config, layer_index,
                                   config.norms_of(layer_index).after_attention)),
      laurel_(load_laurel(context, config, layer_index)),
      before_mlp_(has_mlp_with_experts(config, layer_index)
                      ? std::nullopt
                      : load_mlp_norm(context, config, layer_index,
                                      config.norms_of(layer_index).before_mlp)),
      mlp_(load_feed_forward(context, config, layer_index)),
      after_mlp_(
          load_mlp_norm(context, config, layer_index, config.norms_of(layer_index).after_mlp)),
      layer_input_(load_layer_input(context, config, layer_index)),
      after_layer_input_(
          load_norm_if(config.layer_inputs.has_value(), context, config,
                       layer_name(config, layer_index, "post_per_layer_input_norm"))),
      altup_(load_altup(context, config, layer_index)) {
  if (altup_) active_stream_ = static_cast<size_t>(config.alternating->active);
  mixer_input_ =
      joins_previous(config, layer_index) ? BranchInput::shared : input_of(before_mixer_);
  mlp_input_ = input_of(before_mlp_);
  if (config.parallel_block && mixer_) {
    mlp_input_ = before_mlp_ ? BranchInput::beside : BranchInput::shared;
  }
}

BlockBranches DecoderBlock::branches() const {
  const auto norm = [](const std::optional<Norm>& one) { return one ? &*one : nullptr; };
  BlockBranches branches;
  if (mixer_) {
    branches.push_back({.mixer = &*mixer_,
                        .input = mixer_input_,
                        .before = norm(before_mixer_),
                        .after = norm(after_mixer_),
                        .scale = mixer_scale_,
                        .norms_sum = norms_sums_});
  }
  if (laurel_) {
    static const float kHalfPower = 1.0f / std::sqrt(2.0f);
    branches.push_back(
        {.laurel = &*laurel_, .input = BranchInput::shared, .sum_scale = kHalfPower});
  }
  if (mlp_) {
    branches.push_back({.feed_forward = &*mlp_,
                        .input = mlp_input_,
                        .before = norm(before_mlp_),
                        .after = norm(after_mlp_),
                        .scale = mlp_scale_,
                        .norms_sum = norms_sums_});
  }
  if (layer_input_ && !altup_) {
    branches.push_back({.layer_input = &*layer_input_, .after = norm(after_layer_input_)});
  }
  branches.back().sum_scale *= end_scale_;
  return branches;
}

void DecoderBlock::forward(Backend& backend, const MixerInputs& in, Scratch& scratch,
                           const Tensor& residual, const Tensor& branch,
                           const DecoderBlock* next) const {
  const Scratch::Frame frame(scratch);
  ServingSteps steps(backend, in, scratch, residual, branch);
  const BlockBranches following = next != nullptr ? next->branches() : BlockBranches();
  walk_block(branches().all(), next != nullptr ? &following.front() : nullptr, steps);
}

void DecoderBlock::forward_streams(Backend& backend, const MixerInputs& in, Scratch& scratch,
                                   const Tensor& residual, const Tensor& branch, Streams& streams,
                                   Streams& others) const {
  altup_->predict(backend, streams, scratch, others);
  const Tensor& active = others[active_stream_];
  backend.scale(active, std::array{1.0f}, residual);
  if (before_mixer_) before_mixer_->forward(backend, residual, branch);
  forward(backend, in, scratch, residual, branch, nullptr);
  altup_->correct(backend, residual, scratch, others);
  if (layer_input_) {
    altup_->scale_corrected(backend, active, branch);
    layer_input_->forward(backend, branch, in.layer_input, in.adapters, scratch, branch);
    after_layer_input_->forward(backend, branch, branch);
    for (size_t i = 1; i < others.size(); ++i) backend.add(others[i], branch, others[i]);
  }
  std::swap(streams, others);
}

void DecoderBlock::list_weights(std::vector<const PackedMatrix*>& weights) const {
  if (mixer_) mixer_->list_weights(weights);
  if (mlp_) mlp_->list_weights(weights);
  const auto list = [&](std::span<const Linear* const> products) {
    for (const Linear* const product : products) {
      for (const PackedMatrix& matrix : product->weights()) weights.push_back(&matrix);
    }
  };
  if (laurel_) list(laurel_->products());
  if (layer_input_) list(layer_input_->products());
}

Decoder::Decoder(const LoadContext& context, DecoderConfig config)
    : config_(std::move(config)),
      embedding_(
          load_table(context, "embed_tokens.weight", config_.vocab_size, config_.hidden_size)),
      positions_(load_positions(context, config_)),
      layer_inputs_(load_layer_inputs(context, config_)),
      altup_ends_(load_altup_ends(context, config_)),
      embedding_norm_(load_norm_if(config_.embedding_norm, context, config_, "embed_norm")),
      final_norm_(load_norm_if(!config_.final_norm.empty(), context, config_, config_.final_norm)) {
  const bool is_untied = config_.has_head && !config_.tied_head;
  if (is_untied || context.weights.contains("lm_head.weight")) {
    head_ = load_table(context, "lm_head.weight", config_.vocab_size, config_.hidden_size);
  }
  if (config_.has_head && config_.head_bias) {
    head_bias_ = load_vector(context, "lm_head.bias", config_.vocab_size);
  }
  for (const RopeConfig& rope : config_.ropes) {
    ropes_.emplace_back(rope, config_.rotary_dim_of(rope), context.backend);
  }
  if (config_.distance_scores) distance_scores_.emplace(context, *config_.distance_scores);
  blocks_.reserve(config_.layers.size());
  for (int64_t i = 0; i < config_.num_layers(); ++i) {
    blocks_.emplace_back(context, config_, i);
    block_groups_.push_back(cache_group_of(config_, i));
  }
  if (context.prepared != nullptr) {
    num_parameters_ = context.prepared->num_parameters();
    return;
  }
  ignore_unused_keys(context, config_);
  for (int64_t i = 0; i < config_.num_unused_layers; ++i) {
    context.weights.ignore(
        fmt::format("layers.{}.", config_.stored_layer(config_.num_layers()) + i));
  }
  context.weights.expect_all_read();
  num_parameters_ = context.weights.num_elements_read();
}

void Decoder::forward(Backend& backend, const BatchView& batch, const KvStorage& kv,
                      Scratch& scratch, const ForwardResult& result) const {
  const Scratch::Frame frame(scratch);
  const int64_t rows = batch.arrays.num_rows();
  const Tensor residual = scratch.take_rows(rows, config_.hidden_size);
  backend.embedding(embedding_, batch.arrays.tokens, config_.embedding_scale, residual);
  const Tensor branch = result.out.slice(0, 0, rows);
  Tensor layer_inputs;
  if (layer_inputs_) {
    layer_inputs = layer_inputs_->make(backend, batch.arrays.tokens, residual, scratch);
  }
  if (positions_) positions_->add_forward(backend, batch.arrays, residual, branch);
  if (embedding_norm_) embedding_norm_->forward(backend, residual, residual);
  std::vector<Tensor> rope_tables;
  for (const Rope& rope : ropes_) {
    rope_tables.push_back(rope.table(backend, batch.arrays.positions, batch.stretched, scratch));
  }
  const std::vector<float> query_factors = config_.query_factors(batch.arrays.positions);
  const PositionScores scores = distance_scores_ ? distance_scores_->scores() : PositionScores();
  const AdaptedRows adapted = adapted_rows(batch.adapters);
  for (const AdapterRows& one : adapted.rows) {
    const size_t num_blocks = adapted.weights_of(one).blocks.size();
    PL_CHECK(num_blocks == blocks_.size(), "an adapter of another decoder");
  }
  std::vector<LoraSegment> segments;
  Streams streams, others;
  if (altup_ends_) {
    streams = take_streams(scratch, *config_.alternating, rows, config_.hidden_size);
    others = take_streams(scratch, *config_.alternating, rows, config_.hidden_size);
    altup_ends_->begin(backend, residual, streams);
  }
  const BlockBranch first = blocks_.front().branches().front();
  if (first.before != nullptr && !altup_ends_) first.before->forward(backend, residual, branch);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const BlockAdapters adapters(batch.adapters, i, segments);
    const auto group = static_cast<size_t>(block_groups_[i]);
    const int rope = config_.layers[i].rope_index;
    const PositionInputs positions = {
        .rope_table = rope == kNoRope ? nullptr : &rope_tables[static_cast<size_t>(rope)],
        .query_factors = config_.grows_queries(layer) ? std::span<const float>(query_factors)
                                                      : std::span<const float>(),
        .scores = distance_scores_ ? &scores : nullptr};
    const MixerInputs in{
        .positions = positions,
        .group = batch.arrays.groups[group],
        .adapters = adapters,
        .memory = kv,
        .layer = layer,
        .layer_input = layer_inputs_ ? layer_inputs_->of_layer(layer_inputs, layer) : Tensor()};
    if (altup_ends_) {
      blocks_[i].forward_streams(backend, in, scratch, residual, branch, streams, others);
      continue;
    }
    const DecoderBlock* const next = i + 1 < blocks_.size() ? &blocks_[i + 1] : nullptr;
    blocks_[i].forward(backend, in, scratch, residual, branch, next);
  }
  if (altup_ends_) altup_ends_->end(backend, streams, residual);
  // A row attends to itself, so its state shows a NaN or an infinity in its keys or values.
  if (result.finite.size() > 0) backend.finite_rows(residual, result.finite);
  const Tensor outputs = result.out.slice(0, 0, batch.arrays.output_rows.size());
  backend.gather_rows(residual, batch.arrays.output_rows, outputs);
  if (final_norm_) final_norm_->forward(backend, outputs, outputs);
}

void Decoder::logits(Backend& backend, const Tensor& hidden, const Tensor& out) const {
  column_logits(backend, hidden, head(), head_bias(), out);
}

void Decoder::column_logits(Backend& backend, const Tensor& hidden, const PackedMatrix& columns,
                            const Tensor* bias, const Tensor& out) const {
  backend.matmul(hidden, columns, bias, out);
  if (config_.logits_scale != 1.0f) backend.scale(out, std::array{config_.logits_scale}, out);
  if (config_.final_soft_cap > 0) backend.soft_cap(out, config_.final_soft_cap, out);
}

void Decoder::set_embedding(Backend& backend, const Tensor& values) {
  embedding_ = backend.pack_matrix(std::array{values}, embedding_.dtype);
}

void Decoder::set_head(Backend& backend, const Tensor& values) {
  PL_CHECK(has_own_head(), "a head of its own");
  head_ = backend.pack_matrix(std::array{values}, head_->dtype);
}

std::vector<const PackedMatrix*> Decoder::weights() const {
  std::vector<const PackedMatrix*> weights;
  const auto list = [&](const Linear& product) {
    for (const PackedMatrix& matrix : product.weights()) weights.push_back(&matrix);
  };
  if (layer_inputs_) list(layer_inputs_->projection());
  if (altup_ends_) {
    for (const Linear& product : altup_ends_->projections()) list(product);
    for (const Linear& product : altup_ends_->unembeddings()) list(product);
  }
  for (const DecoderBlock& block : blocks_) block.list_weights(weights);
  weights.push_back(&head());
  return weights;
}

std::vector<KvLayer> Decoder::kv_layers(std::span<const int64_t> group_num_blocks,
                                        DType state_dtype) const {
  std::vector<KvLayer> layers;
  for (int64_t i = 0; i < config_.num_layers(); ++i) {
    const auto group = static_cast<size_t>(cache_group(i));
    KvLayer layer = kv_layer(config_, i, state_dtype);
    layer.num_blocks = group_num_blocks[group];
    if (layer.has_states()) layer.num_open_blocks = group_num_blocks[group + 1];
    layers.push_back(layer);
  }
  return layers;
}

size_t forward_scratch_bytes(const DecoderConfig& config, int64_t max_rows, AdapterUse adapters) {
  Scratch dry_run;
  dry_run.take_rows(max_rows, config.hidden_size);
  if (config.layer_inputs) {
    LayerInputScratch(dry_run, config.num_layers() * config.layer_inputs->width, max_rows);
  }
  if (config.alternating) {
    take_streams(dry_run, *config.alternating, max_rows, config.hidden_size);
    take_streams(dry_run, *config.alternating, max_rows, config.hidden_size);
  }
  for (const RopeConfig& rope : config.ropes) {
    take_rope_table(dry_run, max_rows, config.rotary_dim_of(rope) / 2);
  }
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    const Scratch::Frame frame(dry_run);
    // ServingSteps::run
    const bool shares_input =
        config.parallel_block || layer_of(config, i).joins_next || config.laurel_rank > 0;
    if (shares_input) dry_run.take_rows(max_rows, config.hidden_size);
    take_mixer(dry_run, config, i, max_rows);
    take_feed_forward(dry_run, config, i, max_rows, adapters);
    take_laurel(dry_run, config, max_rows);
    take_layer_input(dry_run, config, max_rows);
    take_altup(dry_run, config, max_rows);
  }
  return dry_run.most_used_bytes();
}

}  // namespace paceline
