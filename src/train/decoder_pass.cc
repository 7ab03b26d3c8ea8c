#include "train/decoder_pass.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "autodiff/new_arrays.h"
#include "autodiff/transforms.h"
#include "base/error.h"
#include "kernels/backend.h"
#include "train/head_loss.h"
#include "train/mixer_operation.h"
#include "train/mixture_operation.h"

namespace paceline {

using autodiff::Array;
using autodiff::Arrays;

namespace {

// About what gradients read of a row's activations in a block: the outputs of its operations.
int64_t activation_bytes(const Mixer& mixer, const GatedMlp& mlp, int64_t hidden_size) {
  constexpr int64_t kHiddenOutputs = 6;  // norms, branches and sums
  const int64_t inner = mlp.gate_up().out_features() + mlp.config().intermediate_size;
  const int64_t kept = std::visit(
      [&]<class Part>(const Part& part) -> int64_t {
        if constexpr (HasMixGradient<Part>) return part.kept_width();
        if constexpr (std::is_same_v<Part, SelfAttention>) {
          const AttentionConfig& config = part.config();
          return config.has_gate ? config.num_heads * config.head_dim : 0;
        }
        return 0;
      },
      mixer.part());
  const int64_t outputs =
      kHiddenOutputs * hidden_size + mixer.products().front()->out_features() + kept + inner;
  return outputs * int64_t{sizeof(float)};
}

int64_t most_state_elements(const DecoderConfig& config) {
  int64_t most = 0;
  for (int64_t i = 0; i < config.num_layers(); ++i) {
    most = std::max(most, state_elements(config, i));
  }
  return most;
}

}  // namespace

// What all blocks share.
struct DecoderPass::Prepared {
  std::vector<OwnedTensor> angles;
  std::vector<RotaryTables> tables;  // by rope
  std::vector<float> query_factors;
  std::unique_ptr<SequenceStore> store;
  std::unique_ptr<SequenceStates> states;  // where layers have some
  Dropout dropout;
};

DecoderPass::DecoderPass(Backend& backend, ThreadPool& threads, const Decoder& decoder,
                         const DecoderTraining& training, const PassOptions& options)
    : backend_(backend),
      context_{.memory = backend.memory(), .pool = &threads},
      decoder_(decoder),
      training_(training),
      options_(options) {
  PL_CHECK(training.blocks.size() == decoder.blocks().size(), "an entry for each block");
  expect_trainable(decoder);
}

DecoderPass::~DecoderPass() = default;

std::unique_ptr<DecoderPass::Prepared> DecoderPass::prepare(const TrainBatch& batch) const {
  auto prepared = std::make_unique<Prepared>();
  std::vector<int32_t> negated;
  for (const int32_t position : batch.positions) negated.push_back(-position);
  std::vector<StretchedRows> stretched;
  for (const SequenceRows& rows : batch.sequences) {
    const int64_t length = decoder_.config().stretched_length(rows.num_rows);
    if (length > 0) stretched.push_back({rows.first_row, rows.num_rows, length});
  }
  for (const Rope& rope : decoder_.ropes()) {
    const auto table = [&](const std::vector<int32_t>& positions) {
      OwnedTensor& owned = prepared->angles.emplace_back(allocate_tensor(
          backend_.memory(), DType::f32, {batch.num_rows(), rope.num_frequencies(), 2}));
      rope.write_table(backend_, positions, stretched, owned.view);
      return owned.view;
    };
    const Tensor forward = table(batch.positions);
    prepared->tables.push_back({.forward = forward, .backward = table(negated)});
  }
  const DecoderConfig& config = decoder_.config();
  prepared->query_factors = config.query_factors(batch.positions);
  prepared->store = std::make_unique<SequenceStore>(
      batch.sequences, config.num_kv_heads, config.head_dim, options_.kv_dtype, backend_.memory());
  if (config.has_states()) {
    prepared->states = std::make_unique<SequenceStates>(
        batch.sequences, most_state_elements(config), backend_.memory());
  }
  return prepared;
}

Array DecoderPass::embed(const TrainBatch& batch) const {
  Array x(context_, DType::f32, {batch.num_rows(), decoder_.config().hidden_size},
          Contents::undefined);
  backend_.embedding(decoder_.embedding(), batch.tokens, decoder_.config().embedding_scale,
                     x.writable());
  return x;
}

Array DecoderPass::feed_forward(const Prepared& prepared, const FeedForward& layer,
                                const BlockTraining& trained, const Array& x,
                                Elements elements) const {
  if (layer.mixture() != nullptr) {
    return apply_mixture(backend_, *layer.mixture(), trained.mixture, prepared.dropout, x);
  }
  const GatedMlp& mlp = *layer.dense();
  const Activation activation = mlp.config().activation;
  const Array inner = mlp.config().gated
                          ? apply_gated_linear(backend_, mlp.gate_up(), trained.gate_up,
                                               prepared.dropout, activation, x)
                          : apply_activation(backend_, activation,
                                             apply_linear(backend_, mlp.gate_up(), trained.gate_up,
                                                          prepared.dropout, x));
  return apply_linear(backend_, mlp.down(), trained.down, prepared.dropout, inner, elements);
}

// What a mixer does between its products.
Array DecoderPass::mix(const Prepared& prepared, size_t index, const Array& x) const {
  const DecoderConfig& config = decoder_.config();
  const int rope = config.layers[index].rope_index;
  const auto one = [&]<class Part>(const Part& part) -> Array {
    if constexpr (HasMixGradient<Part>) {
      const LayerStates states{*prepared.states,
                               state_elements(config, static_cast<int64_t>(index))};
      return apply_mix(backend_, part, states, x);
    } else if constexpr (std::is_same_v<Part, SelfAttention>) {
      const PositionTables positions = {
          .rope = rope == kNoRope ? nullptr : &prepared.tables[static_cast<size_t>(rope)],
          .query_factors = prepared.query_factors};
      return apply_attention(backend_, part, training_.blocks[index].head_norms, positions,
                             *prepared.store, x);
    } else {
      PL_CHECK(false, "expect_trainable refuses a layer without a gradient");
      __builtin_unreachable();
    }
  };
  return std::visit(one, decoder_.blocks()[index].mixer().part());
}

// DecoderBlock::forward.
Array DecoderPass::block(const Prepared& prepared, size_t index, const Array& x,
                         Elements elements) const {
  const DecoderBlock& block = decoder_.blocks()[index];
  const BlockTraining& trained = training_.blocks[index];
  const DecoderConfig& config = decoder_.config();
  const auto [first, last] = block.mixer().products();
  const auto normed = [&](const Norm* norm, const NormGradient& gradient, const Array& of) {
    return norm != nullptr ? apply_norm(backend_, *norm, gradient, of) : of;
  };

  const Array before = normed(block.before_attention(), trained.before_attention, x);
  Array branch = apply_linear(backend_, *first, trained.qkv, prepared.dropout, before);
  branch = mix(prepared, index, branch);
  branch = apply_linear(backend_, *last, trained.output, prepared.dropout, branch);
  branch = normed(block.after_attention(), trained.after_attention, branch);
  const Array residual = apply_sum(backend_, x, branch, config.residual_scale);

  branch =
      config.parallel_block ? before : normed(block.before_mlp(), trained.before_mlp, residual);
  if (block.after_mlp() == nullptr) {
    branch = feed_forward(prepared, block.mlp(), trained, branch, elements);
  } else {  // its gradient reads what it normalises
    branch = feed_forward(prepared, block.mlp(), trained, branch, Elements::computed);
    branch = apply_norm(backend_, *block.after_mlp(), trained.after_mlp, branch, elements);
  }
  return apply_sum(backend_, residual, branch, config.residual_scale, elements);
}

size_t DecoderPass::num_checkpoints(int64_t rows) const {
  if (options_.kept_bytes == kAllActivations) return 0;
  // The last block's activations would be computed again at once.
  size_t count = decoder_.blocks().size() - 1;
  for (int64_t kept = 0; count > 0; --count) {
    const DecoderBlock& block = decoder_.blocks()[count - 1];
    const GatedMlp* const mlp = block.mlp().dense();
    if (mlp == nullptr) break;  // what experts need depends on the rows' choices
    kept += rows * activation_bytes(block.mixer(), *mlp, decoder_.config().hidden_size);
    if (kept > options_.kept_bytes) break;
  }
  return count;
}

Array DecoderPass::all_blocks(const Prepared& prepared, Array x) const {
  const size_t checkpoints = num_checkpoints(x.shape()[0]);
  for (size_t i = 0; i < decoder_.blocks().size(); ++i) {
    if (i >= checkpoints) {
      x = block(prepared, i, x);
      continue;
    }
    const auto one = autodiff::checkpoint([this, &prepared, i](const Arrays& inputs) {
      const bool is_again = inputs[0].traced() != nullptr;
      return Arrays{block(prepared, i, inputs[0], is_again ? Elements::none : Elements::computed)};
    });
    x = one({x}).front();
  }
  return x;
}

void DecoderPass::run(const TrainBatch& batch, const Dropout& dropout, std::vector<float>& losses) {
  const auto prepared = prepare(batch);
  prepared->dropout = dropout;
  const auto loss = [&](const Arrays& inputs) {
    return Arrays{apply_head_loss(backend_, decoder_, training_, batch, losses,
                                  all_blocks(*prepared, inputs[0]))};
  };
  const autodiff::Vjp pulled =
      autodiff::vjp(loss, {embed(batch)}, {autodiff::ones(context_, Extents{})});
  if (!training_.embedding) return;
  backend_.gradients().embedding_gradient(batch.tokens, decoder_.config().embedding_scale,
                                          pulled.gradients[0].tensor(), *training_.embedding);
}

void DecoderPass::evaluate(const TrainBatch& batch, std::vector<float>& losses) {
  apply_head_loss(backend_, decoder_, training_, batch, losses, states(batch));
}

Array DecoderPass::states(const TrainBatch& batch) {
  const auto prepared = prepare(batch);
  return all_blocks(*prepared, embed(batch));
}

}  // namespace paceline
